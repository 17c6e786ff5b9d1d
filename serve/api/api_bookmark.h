/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bookmarks of the API server's own kinds: a resourceVersion, and the zero values of the kind's
 * structure. Custom resources have none, nor have kinds without required members.
 */
#ifndef SERVE_API_API_BOOKMARK_H
#define SERVE_API_API_BOOKMARK_H

/* Returns the members after metadata, as JSON after a comma; "" for none. */
const char *api_bookmark_rest(const char *group, const char *version, const char *kind);
/* Returns the annotation of every object of the kind, as a member in JSON; "" for none. */
const char *api_bookmark_annotation(const char *group, const char *kind);

#endif
