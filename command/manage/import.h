/* SPDX-License-Identifier: Apache-2.0 */
/* Makes stores of dumps, for `kinf import` and `kinf open`. */
#ifndef COMMAND_MANAGE_IMPORT_H
#define COMMAND_MANAGE_IMPORT_H

#include "common/config/config.h"

/* Makes the store of FLAGS of the SOURCES up to NULL. SIGNALS are of signals_open(). Returns: 0;
 * PROC_PARTLY: without what was named; other exit statuses of a program that has said why;
 * errors. */
int import_store(char *const *sources, const struct config_flags *flags, int signals);

#endif
