/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a kubeconfig's entry: each is taken by its key, checked for its type, and copied. What
 * is absent leaves the target as it is. 0, ERR_CONFIG with a sentence that names file, entry and key
 * (never the value, which may be secret), -ENOMEM.
 */
#ifndef REFLECTOR_KUBECONFIG_MEMBER_H
#define REFLECTOR_KUBECONFIG_MEMBER_H

#include <stdbool.h>
#include <stddef.h>

#include "reflector/access/kubeconfig_entry.h"

/* "'/x/config': user 'u': KEY: WHAT". */
int kubeconfig_bad(const struct kubeconfig_entry *entry, const char *key, const char *what, ...)
	__attribute__((format(printf, 3, 4), cold));
int kubeconfig_no_memory(const struct kubeconfig_entry *entry);

/* An absent and an empty text are the same thing: NULL. */
int kubeconfig_text(const struct kubeconfig_entry *entry, const char *key, char **ret_text);
int kubeconfig_bool(const struct kubeconfig_entry *entry, const char *key, bool *ret_bool);
/* Relative to the directory of the file that holds the entry. */
int kubeconfig_path(const struct kubeconfig_entry *entry, const char *key, char **ret_path);
/* Texts of LIST, the value of KEY or of something in it. */
int kubeconfig_texts(const struct kubeconfig_entry *entry, const char *key,
	const struct yaml_node *list, char ***ret_texts, size_t *ret_count);
/* Header lines are made of these: no control characters. */
int kubeconfig_one_line(const struct kubeconfig_entry *entry, const char *key, const char *text);

#endif
