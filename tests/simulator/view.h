/* SPDX-License-Identifier: Apache-2.0 */
/* What a request is about: a part of a collection, chosen by namespace and selectors, and the form
 * in which it wants objects. */
#ifndef SIMULATOR_VIEW_H
#define SIMULATOR_VIEW_H

#include "tests/simulator/http.h"
#include "tests/simulator/world.h"

struct selector;
struct json_parser;

struct view {
	struct world *world;
	struct collection *collection;
	char *prefix; /* "namespace/", or "" for all */
	enum object_form form;
	struct selector *labels, *fields; /* NULL: all */
	struct json_parser *parser;       /* with selectors only */
};

/* NAMESPACE: NULL for all. False when a selector was refused: ANSWER says why. */
bool view_init(struct view *view, const char *namespace, const char *labels, const char *fields,
	struct http_answer *answer);
void view_release(struct view *view);

/* KEY is in the namespace. */
bool view_covers(const struct view *view, const char *key);

/* An object of a key that is covered is chosen by the selectors; one that does not exist (NULL) or
 * is deleted is not. */
bool view_selects(const struct view *view, const struct version *version);

bool view_has_selector(const struct view *view);

#endif
