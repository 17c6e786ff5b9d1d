/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ExecCredential of client.authentication.k8s.io, v1 and v1beta1 (docs/protocol.md 15.4): what
 * an exec plugin is told in KUBERNETES_EXEC_INFO, and what it prints.
 */
#ifndef REFLECTOR_EXEC_CREDENTIAL_H
#define REFLECTOR_EXEC_CREDENTIAL_H

#include "common/buf.h"
#include "reflector/access/kubeconfig.h"

struct exec_credential {
	char *token;             /* secret; NULL: none */
	char *certificate, *key; /* PEM, both or none; the key is secret */
	uint64_t expires_ns;     /* wall clock; UINT64_MAX: when a server refuses it */
};

void exec_credential_release(struct exec_credential *credential);

/* Appends the value of KUBERNETES_EXEC_INFO. A CA file becomes data. 0, the error of reading that, or
 * of OUT. */
int exec_credential_info(const struct kubeconfig *config, struct buf *out);

/* TEXT is what the plugin printed. 0; ERR_CREDENTIALS with a sentence that holds nothing secret;
 * -ENOMEM. */
int exec_credential_read(struct bytes text, const char *api_version,
	struct exec_credential *ret_credential);

/* "2030-01-01T00:00:00.5+01:00" as nanoseconds since 1970 (years from 1970; after 2500 UINT64_MAX).
 * 0 or ERR_SYNTAX, without a sentence. */
int exec_credential_time(struct bytes text, uint64_t *ret_ns);

#endif
