/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PEM texts for TLS, in memory: the cluster's CA, and the client certificate with its key. They
 * come from the kubeconfig's data or files, or from an exec plugin.
 *
 * Files may be rotated. Taking a set reads them again if it is older than 10 s or expired. A
 * change makes a new set; calls hold a reference to the old one. libcurl shares a connection only
 * between calls with the same bytes, so calls with a new set open a new connection, and the old one
 * ends with its last call. No call is cut off.
 *
 * When a file can't be read or is not PEM, for instance in the middle of a rotation, the old set
 * stays.
 */
#ifndef REFLECTOR_NET_CERTIFICATES_H
#define REFLECTOR_NET_CERTIFICATES_H

#include "common/buf.h"
#include "reflector/net/kubeconfig.h"

/* Never changes after it was handed out. */
struct certificate_set {
	unsigned references;
	struct buf ca, certificate, key; /* PEM; empty: none */
};

struct certificates;

/* Reads CONFIG's certificates; borrows CONFIG. An unreadable file is an error here only. Returns:
 * 0, ERR_CONFIG, ERR_TOO_LARGE, -errno. */
int certificates_new(const struct kubeconfig *config, struct certificates **ret_certificates);
void certificates_free(struct certificates **certificates);

/* Returns: the newest set at NOW_NS (monotonic). The caller releases it, perhaps after
 * certificates_free(). */
struct certificate_set *certificates_take(struct certificates *certificates, uint64_t now_ns);
void certificate_set_release(struct certificate_set **set);

/* Returns: the newest CA at NOW_NS, borrowed until the next call; empty if there is none.
 * *RET_CHANGES counts its changes. */
struct bytes certificates_ca(
	struct certificates *certificates, uint64_t now_ns, uint64_t *ret_changes);

/* Makes the next take read the files again: the server refused our certificate, or we refused
 * its. */
void certificates_expire(struct certificates *certificates);

/* Replaces the client certificate by an exec plugin's; both NULL: none. Returns: 0, -ENOMEM. */
int certificates_show(struct certificates *certificates, const char *certificate, const char *key);

#endif
