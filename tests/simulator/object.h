/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One object as JSON text. Stored is its item form: for built-in kinds without kind and apiVersion,
 * for custom kinds with both. Only the members named here are ever touched; all other bytes stay.
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

/* What the server gives an object. */
struct object_stamp {
	uint64_t rv;
	const char *uid;     /* put only where the object has none */
	const char *created; /* RFC 3339; likewise */
};

/* "namespace/name" or "name" from metadata; false when metadata.name (or the namespace of a
 * namespaced kind) is missing or empty. */
bool object_key(const struct kind *kind, struct bytes text, struct buf *out);

/* TEXT as it is stored, stamped. TEXT has a metadata object. */
void object_store(const struct kind *kind, struct bytes text, const struct object_stamp *stamp,
	struct buf *out);

/* The same object with another resourceVersion. */
void object_restamp(struct bytes stored, uint64_t rv, struct buf *out);

void object_show(
	const struct kind *kind, enum object_form form, struct bytes stored, struct buf *out);

/* A random (version 4) uuid. */
void object_new_uid(char ret_uid[OBJECT_UID_SIZE]);

#endif
