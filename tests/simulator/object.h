/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object as JSON text. The simulator stores it as it appears in a list: objects of built-in
 * kinds without kind and apiVersion, objects of custom kinds with both. It changes only the members
 * named here; all other bytes stay.
 */
#ifndef SIMULATOR_OBJECT_H
#define SIMULATOR_OBJECT_H

#include "tests/simulator/kind.h"

enum object_form {
	OBJECT_ITEM,     /* as in a list */
	OBJECT_FULL,     /* as a single object: always kind and apiVersion */
	OBJECT_METADATA, /* PartialObjectMetadata */
};

#define OBJECT_UID_SIZE 37

/* The members of metadata set by the server. */
struct object_stamp {
	uint64_t rv;
	const char *uid;     /* set only if the object has none */
	const char *created; /* RFC 3339; set only if the object has no creationTimestamp */
};

/* Appends "namespace/name" or "name" from metadata. Returns false if the name, or the namespace of
 * a namespaced kind, is missing or empty. */
bool object_key(const struct kind *kind, struct bytes text, struct buf *out);

/* Appends TEXT in its stored form, with STAMP. TEXT must have metadata. */
void object_store(const struct kind *kind, struct bytes text, const struct object_stamp *stamp,
	struct buf *out);

/* Appends the stored object with another resourceVersion. */
void object_restamp(struct bytes stored, uint64_t rv, struct buf *out);

void object_show(
	const struct kind *kind, enum object_form form, struct bytes stored, struct buf *out);

/* Makes a random (version 4) UUID. */
void object_new_uid(char ret_uid[OBJECT_UID_SIZE]);

#endif
