/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a bbolt file, as etcd keeps its keys in (member/snap/db) and `etcdctl snapshot save` writes
 * it: the rows of one bucket in the order of their keys. Each page is read at most once, so a
 * damaged or hostile file ends with an error. It is mapped, and must not become shorter meanwhile.
 * No library in C reads these files.
 */
#ifndef REFLECTOR_IMPORT_BOLT_H
#define REFLECTOR_IMPORT_BOLT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes.h"

/* Returns true if a file that begins with the SIZE bytes of HEAD is one. */
bool bolt_is_known(const void *head, size_t size);

/* A negative result ends the walk and is returned by it. KEY and VALUE are borrowed. */
typedef int bolt_row_fn(void *arg, struct bytes key, struct bytes value);

/* Calls FN for each row of BUCKET in the file FD. Returns: 0; ERR_CORRUPT; ERR_PROTOCOL: there is
 * no such bucket; errors. */
int bolt_walk(int fd, const char *bucket, bolt_row_fn *fn, void *arg);

#endif
