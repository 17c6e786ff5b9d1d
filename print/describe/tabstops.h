/* SPDX-License-Identifier: Apache-2.0 */
/* Aligns text at tabs, as Go's text/tabwriter does for kubectl: cells below each other in
 * consecutive lines have the width of the widest and two blanks. Other controls are made
 * visible. */
#ifndef PRINT_DESCRIBE_TABSTOPS_H
#define PRINT_DESCRIBE_TABSTOPS_H

#include "common/buf.h"

/* Appends TEXT, whole lines, to OUT. Returns: 0, -ENOMEM. */
int tabstops_put(struct bytes text, struct buf *out);

#endif
