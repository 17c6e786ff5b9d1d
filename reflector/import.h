/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a journal of the objects in a file, for `kinf import`: a List as `kubectl get -o json` or
 * `kinf export` print it. Each kind becomes a feed with one list. The journal names no existing
 * cluster, so a reflector started on it begins another one.
 */
#ifndef REFLECTOR_IMPORT_H
#define REFLECTOR_IMPORT_H

#include "common/config/config.h"

/* Reads FILE ("-": standard input) into CONFIG's store. It must not have a journal. Returns: 0;
 * errors. After an error the store is incomplete. */
int import_file(const struct config *config, const char *file);

#endif
