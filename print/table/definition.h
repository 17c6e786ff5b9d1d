/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a resource's columns of its CustomResourceDefinition: in the cached object of the
 * definition, if a feed holds it, else in the feed of the resource, where the reflector keeps a
 * copy.
 */
#ifndef PRINT_TABLE_DEFINITION_H
#define PRINT_TABLE_DEFINITION_H

#include "print/table/printer.h"
#include "reader/kinf.h"

/* Makes the printer of the objects of a feed of SNAPSHOT like INFO. Returns: 0, errors of
 * printer_new() and of finding the feed. */
int definition_printer(struct kinf_snapshot *snapshot, const struct kinf_feed_info *info,
	struct printer **ret_printer);

#endif
