/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ExecCredential of client.authentication.k8s.io, v1 and v1beta1 (docs/protocol.md 15.4): an
 * exec plugin gets one in KUBERNETES_EXEC_INFO, and prints one.
 */
#ifndef REFLECTOR_NET_EXEC_CREDENTIAL_H
#define REFLECTOR_NET_EXEC_CREDENTIAL_H

#include "common/buf.h"
#include "reflector/net/kubeconfig.h"

struct exec_credential {
	char *token;             /* secret; NULL: none */
	char *certificate, *key; /* PEM, both or none; the key is secret */
	uint64_t expires_ns;     /* wall clock; UINT64_MAX: valid until a server refuses it */
};

void exec_credential_release(struct exec_credential *credential);

/* Appends the value of KUBERNETES_EXEC_INFO, with the content of the CA file as data.
 * Returns: 0, an error of small_file_read(), -ENOMEM. */
int exec_credential_info(const struct kubeconfig *config, struct buf *out);

/* Reads TEXT, the plugin's output. Returns: 0, -ENOMEM, ERR_CREDENTIALS. The sentence repeats no
 * secret. */
int exec_credential_read(
	struct bytes text, const char *api_version, struct exec_credential *ret_credential);

#endif
