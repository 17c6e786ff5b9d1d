/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bookmarks of the API server's own kinds: an object of the kind that has a resourceVersion, and
 * else the zero values of its structure. Custom resources have no such values, and kinds without
 * required members none either.
 */
#ifndef SERVE_API_API_BOOKMARK_H
#define SERVE_API_API_BOOKMARK_H

/* Returns the members after metadata, as JSON that begins with a comma; "" if there are none. */
const char *api_bookmark_rest(const char *group, const char *version, const char *kind);
/* Returns the annotation that each object of the kind has, as a member in JSON; "" if there is
 * none. */
const char *api_bookmark_annotation(const char *group, const char *kind);

#endif
