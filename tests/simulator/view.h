/* SPDX-License-Identifier: Apache-2.0 */
/* The objects a list or watch selects by namespace and selectors, and their form. */
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

/* NAMESPACE: NULL for all. Returns false if a selector was refused; ANSWER then has the reason. */
bool view_init(struct view *view, const char *namespace, const char *labels, const char *fields,
	struct http_answer *answer);
void view_release(struct view *view);

/* Returns true if KEY is in the namespace. */
bool view_covers(const struct view *view, const char *key);

/* Returns true if the selectors select the object, with its key covered; false for NULL and a
 * deleted object. */
bool view_selects(const struct view *view, const struct version *version);

bool view_has_selector(const struct view *view);

#endif
