/* SPDX-License-Identifier: Apache-2.0 */
/* The values of Secrets are never printed, except by commands for whole objects. */
#ifndef PRINT_REDACT_H
#define PRINT_REDACT_H

#include <stdbool.h>

#include "common/bytes.h"

/* The annotation of kubectl apply with the whole object. */
#define REDACT_LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

#define REDACT_TEXT_SIZE 40
/* Writes "<N bytes>", the size of VALUE, perhaps base64, as kubectl describe does. */
void redact_size_text(struct bytes value, bool base64, char text[REDACT_TEXT_SIZE]);

/* Returns true if the field at PATH (common/value/field_diff.h) of a Secret holds values. */
bool redact_hides(const char *path);

#endif
