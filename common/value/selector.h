/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Label and field selectors: grammar, canonical form and matching of the API server
 * (labels/selector.go and fields/selector.go of apimachinery; docs/protocol.md 10). A selector is
 * parsed once and matched against stored bodies in place.
 */
#ifndef COMMON_VALUE_SELECTOR_H
#define COMMON_VALUE_SELECTOR_H

#include "common/value/path.h"

struct selector;

enum selector_op {
	SELECTOR_IN,     /* =, ==, in: present and one of the values */
	SELECTOR_NOT_IN, /* !=, notin: absent, or none of the values */
	SELECTOR_EXISTS,
	SELECTOR_NOT_EXISTS,
	SELECTOR_GREATER,
	SELECTOR_LESS,
	SELECTOR_GREATER_EQUAL, /* this and the next: only of selector_parse_query() */
	SELECTOR_LESS_EQUAL,
	SELECTOR_OP_MAX
};

struct selector_requirement {
	struct bytes key;
	enum selector_op op;
	const struct bytes *values; /* sorted */
	size_t n_values;
	bool is_label; /* in a field selector: KEY is a field label (common/value/field.h) */
	const struct path *path; /* of a field; NULL: of a label */
};

/* Parses a label selector. Empty text matches everything.
 * Returns: 0, or ERR_SYNTAX in the words of the API server. */
int selector_parse_labels(const char *text, struct selector **ret_selector);

/* Parses a field selector. Its keys are field paths, also ones unknown to the API server. Returns:
 * 0, or ERR_SYNTAX in the words of the API server. */
int selector_parse_fields(const char *text, struct selector **ret_selector);

/* Parses a field selector of a reader: it also compares, KEY>VALUE with one of < <= > >=. VALUE
 * is
 *
 * 	a number or a quantity       spec.replicas>3, spec.resources.requests.memory>=1.5Gi
 * 	a time, RFC 3339 or a date   status.startTime<2026-11-22
 * 	now, now-D                   status.startTime>now-1h30m
 * 	D, only for the key age      age<10m: the object was created in the last ten minutes
 *
 * and matches fields of its type only: an absent field never matches. Blanks before keys and beside
 * these operators do not count. Returns: 0, or ERR_SYNTAX. */
int selector_parse_query(const char *text, struct selector **ret_selector);

/* Return true if SELECTOR (NULL: none) has a comparison, or one with the present time: its matches
 * change without any event. */
bool selector_compares(const struct selector *selector);
bool selector_is_relative(const struct selector *selector);

void selector_free(struct selector **selector);

/* Returns the canonical text, borrowed: requirements sorted by key, values of sets sorted, in
 * the API server's spelling. */
const char *selector_text(const struct selector *selector);

/* Appends VALUE with a backslash before '\\', ',' and '=', as in a field selector. */
void selector_put_field_value(struct bytes value, struct buf *text);

size_t selector_count(const struct selector *selector);
const struct selector_requirement *selector_at(const struct selector *selector, size_t i);

/* Returns the one value of KEY required by SELECTOR (NULL: none), borrowed; BYTES_NONE if there is
 * none or several are allowed. */
struct bytes selector_value(const struct selector *selector, const char *key);

/* Matches a label selector against metadata.labels, a field selector against fields
 * (common/value/field.h); one matching value of a field is enough. Returns: 1 if the body matches,
 * 0 if not, ERR_CORRUPT. */
int selector_match(const struct selector *selector, struct bytes document);

#endif
