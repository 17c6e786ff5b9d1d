/* SPDX-License-Identifier: Apache-2.0 */
/* A random selection of objects, as a query for libkinf and as a predicate for the model. */
#ifndef TESTS_MODEL_SELECTION_H
#define TESTS_MODEL_SELECTION_H

#include "reader/kinf.h"
#include "tests/model/model.h"

struct world;

struct selection {
	int group; /* of the namespace; -1: all */
	int tens;  /* prefix "k0" or "k1"; -1: none */
	enum selection_label {
		LABEL_ANY,
		LABEL_IS,
		LABEL_IS_NOT,
		LABEL_IN,
		LABEL_NOT_IN,
		LABEL_EXISTS,
		LABEL_KINDS
	} label;
	enum selection_field {
		FIELD_ANY,
		FIELD_NODE,
		FIELD_NOT_NODE,
		FIELD_NOT_NAME,
		FIELD_BOTH,
		FIELD_KINDS
	} field;
	enum selection_term {
		TERM_NONE,
		TERM_NAMESPACE,
		TERM_LABEL,
		TERM_NODE,
		TERM_PAIR,
		TERM_KINDS
	} term;
	unsigned label_node, other_label, field_node, term_node;
	int field_key, term_key;
	/* The same as texts; "": no condition. */
	char namespace_[16], prefix[16], labels[48], fields[64], value[48];
};

/* TERMS false: uses only built-in indexes. */
void selection_random(struct world *world, bool terms, struct selection *ret_selection);
bool selection_takes(const struct selection *selection, int key, const struct object *object);
/* Makes the query, with pointers into SELECTION and TERM. */
void selection_query(const struct selection *selection, const char *feed, struct kinf_term *term,
	struct kinf_query *ret_query);
/* Returns the name of the selection's index; NULL: none. */
const char *selection_index(const struct selection *selection);

#endif
