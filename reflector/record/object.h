/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who an API object is, read from its JSON text without parsing the rest: that is all a relist needs
 * of an object that did not change, and it is known even of one that can't be stored.
 */
#ifndef REFLECTOR_RECORD_OBJECT_H
#define REFLECTOR_RECORD_OBJECT_H

#include "common/bytes.h"

/* Bytes of a resourceVersion that a list or bookmark may name; a server's have 20, of objects too. */
#define RV_MAX 1024

struct object_identity {
	struct bytes kind; /* empty where the text has none */
	struct bytes name_space, name, uid, rv;
};

/* Texts borrowed from OBJECT. Only what is not a plain string where one must be, or not JSON, is an
 * error (ERR_PROTOCOL); what is absent is empty. */
int object_identity(struct bytes object, struct object_identity *ret_identity);
/* The same of an object of which there is only the BEGINNING: what that does not hold is absent. */
int object_identity_cut(struct bytes beginning, struct object_identity *ret_identity);

/* The bookmark that ends a stream's initial events (docs/protocol.md 7.5): its annotation
 * k8s.io/initial-events-end is the text "true". */
bool object_ends_initial(struct bytes bookmark);

#endif
