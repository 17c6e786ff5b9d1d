/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a journal of the objects in dumps, for `kinf import`: files, directories and archives
 * (source.h) of Lists and objects in JSON and YAML. Each kind becomes a feed, each source a list of
 * its kinds, so that several dumps of a cluster in their order become history. The journal names no
 * existing cluster: a reflector started on it begins another one.
 */
#ifndef REFLECTOR_IMPORT_IMPORT_H
#define REFLECTOR_IMPORT_IMPORT_H

#include "common/config/config.h"

/* Reads the N SOURCES ("-": standard input) into CONFIG's store. It must not have a journal.
 * Returns: 0; GONE: something could not be read, and was named; errors. After an error the store is
 * incomplete. */
int import_sources(const struct config *config, const char *const *sources, size_t n);

#endif
