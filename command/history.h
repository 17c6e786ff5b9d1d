/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMAND_HISTORY_H
#define COMMAND_HISTORY_H

#include "common/config/config.h"

/* Prints the fields in which the object that OPERANDS name (FEED NAME) differs now from its
 * state as of event FROM. Returns the exit status: PROC_FAILED also if it differs. */
int history_diff(const struct options *options, const struct config_flags *flags, char **operands,
	size_t n, const char *namespace_, uint64_t from);

#endif
