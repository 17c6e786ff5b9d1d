/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads single members of a kubeconfig's entry: checks a member's type and copies its value. An
 * absent member leaves the target as it is. All return 0, -ENOMEM, or ERR_CONFIG with a sentence
 * that names file, entry and key, never the value, which may be secret.
 */
#ifndef REFLECTOR_NET_KUBECONFIG_MEMBER_H
#define REFLECTOR_NET_KUBECONFIG_MEMBER_H

#include <stdbool.h>
#include <stddef.h>

#include "reflector/net/kubeconfig_entry.h"

/* Says "'/x/config': user 'u': KEY: TEXT". Returns: ERR_CONFIG. */
int kubeconfig_bad(const struct kubeconfig_entry *entry, const char *key, const char *text, ...)
	__attribute__((format(printf, 3, 4), cold));
/* Returns: -ENOMEM, with a sentence. */
int kubeconfig_no_memory(const struct kubeconfig_entry *entry);

/* Copies a text; an empty text counts as absent. */
int kubeconfig_text(const struct kubeconfig_entry *entry, const char *key, char **ret_text);
int kubeconfig_bool(const struct kubeconfig_entry *entry, const char *key, bool *ret_bool);
/* Copies a path; a relative path is relative to the directory of the entry's file. */
int kubeconfig_path(const struct kubeconfig_entry *entry, const char *key, char **ret_path);
/* Copies the texts of LIST, which is the value of KEY or a part of it. */
int kubeconfig_texts(const struct kubeconfig_entry *entry, const char *key,
	const struct yaml_node *list, char ***ret_texts, size_t *ret_count);
/* Checks that TEXT, which becomes a part of a header, has no control characters. */
int kubeconfig_one_line(const struct kubeconfig_entry *entry, const char *key, const char *text);

#endif
