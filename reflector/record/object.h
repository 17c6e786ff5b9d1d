/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the identity of an API object from its JSON text without parsing the rest. For objects
 * unfit for json_parse(): cut, unreadable, or with escapes in their identity.
 */
#ifndef REFLECTOR_RECORD_OBJECT_H
#define REFLECTOR_RECORD_OBJECT_H

#include "common/bytes.h"
#include "common/value/json.h"

/* The longest resourceVersion accepted from a list or bookmark. A kube-apiserver's have at most 20
 * bytes. */
#define RV_MAX 1024

/* for texts with escapes: all of the largest stored sizes */
#define OBJECT_ROOM      2048
#define OBJECT_STALE_MAX 240

#define OBJECT_NAME_HAS_NUL "its name has a NUL, with which no program could ask for it"

struct object_identity {
	struct bytes kind; /* empty where the text has none */
	struct bytes name_space, name, uid, rv;
	/* Their texts, where the object's JSON has escapes in them; hence an identity is not
	 * copied. */
	size_t used;
	char room[OBJECT_ROOM];
};

/* Fills in IDENTITY. Its texts are borrowed from OBJECT or its own; absent ones are empty. Returns:
 * 0; ERR_PROTOCOL: it is no JSON, or one of them is no string. CUT: OBJECT is only a beginning. */
int object_identity(struct bytes object, bool cut, struct object_identity *identity);

/* Takes over an identity from json_parse(), unless it is odd. */
static inline void object_set_identity(
	const struct json_identity *found, struct object_identity *identity)
{
	identity->kind = found->kind;
	identity->name_space = found->name_space;
	identity->name = found->name;
	identity->uid = found->uid;
	identity->rv = found->rv;
	identity->used = 0;
}

/* Returns true for the bookmark after a stream's initial events (docs/protocol.md 7.5): its
 * annotation k8s.io/initial-events-end is the text "true". */
bool object_ends_initial(struct bytes bookmark);

/* Returns true for a bookmark of a kinf-serve without its own server, by the annotation
 * kinformer/stale, "AGE WHY". Sets the age in seconds, 0 if unknown. */
bool object_is_stale(struct bytes bookmark, uint64_t *ret_age_s, char ret_why[OBJECT_STALE_MAX]);

#endif
