/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Label and field selectors: grammar, canonical form and matching as the API server does them
 * (labels/selector.go and fields/selector.go; docs/protocol.md 10). Parsed once, matched against
 * stored bodies where they lie.
 */
#ifndef COMMON_VALUE_SELECTOR_H
#define COMMON_VALUE_SELECTOR_H

#include "common/value/value.h"

struct selector;

enum selector_op {
	SELECTOR_IN,     /* = == in: present and one of the values */
	SELECTOR_NOT_IN, /* != notin: absent, or none of the values */
	SELECTOR_EXISTS,
	SELECTOR_NOT_EXISTS,
	SELECTOR_GREATER,
	SELECTOR_LESS,
	SELECTOR_OP_MAX
};

struct selector_requirement {
	struct bytes key;
	enum selector_op op;
	const struct bytes *values; /* sorted */
	size_t n_values;
	bool is_label; /* of fields: more than the path it reads as (common/value/field.h) */
};

/* Empty text: matches everything. ERR_SYNTAX with the API server's message form. */
int selector_parse_labels(const char *text, struct selector **ret_selector);

/* Field selector: keys are field paths; any path is accepted, not only those the API server knows.
 * ERR_SYNTAX with the API server's message form. */
int selector_parse_fields(const char *text, struct selector **ret_selector);

void selector_free(struct selector **selector);

/* Requirements sorted by key, set values sorted, in the API server's spelling. Borrowed. */
const char *selector_text(const struct selector *selector);

size_t selector_count(const struct selector *selector);
const struct selector_requirement *selector_at(const struct selector *selector, size_t i);

/* 1 when the body matches, 0 when not, ERR_CORRUPT. A label selector looks at metadata.labels, a
 * field selector at the fields (common/value/field.h); most that are absent count as "". */
int selector_match(const struct selector *selector, struct bytes document);

#endif
