/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What TLS trusts and shows, as PEM in memory: the cluster's CA, and our certificate with its key,
 * from the kubeconfig's data or files, or given by an exec plugin.
 *
 * Rotation: files are compared with what was read when that is 10 s old or in doubt, and only when
 * somebody asks. A change makes a new set; the sets before live as long as a call holds them. libcurl
 * puts a call only on a connection that was opened with the same bytes, so calls of a new set open a
 * new connection, and an old connection ends with the last of its calls: nothing is cut off.
 *
 * Files that can't be read or are not PEM, in the middle of a rotation say, leave the old set.
 */
#ifndef REFLECTOR_CERTIFICATES_H
#define REFLECTOR_CERTIFICATES_H

#include <stddef.h>
#include <stdint.h>

#include "reflector/access/kubeconfig.h"

/* PEM; NULL: none. */
struct certificate_text {
	char *data;
	size_t size;
};

/* Never changed once it is handed out. */
struct certificate_set {
	unsigned references;
	struct certificate_text ca, certificate, key; /* the key is secret */
};

struct certificates;

/* Borrows CONFIG. Unreadable files are an error here, and only here. */
int certificates_new(const struct kubeconfig *config, struct certificates **ret_certificates);
void certificates_free(struct certificates **certificates);

/* The newest set at NOW_NS (monotonic). The caller's until certificate_set_release(), which may come
 * after certificates_free(). */
struct certificate_set *certificates_take(struct certificates *certificates, uint64_t now_ns);
void certificate_set_release(struct certificate_set **set);

/* The server refused us, or we the server: look at the files before the next call. */
void certificates_doubt(struct certificates *certificates);

/* From now on this certificate is shown (an exec plugin's); both NULL: none. 0, -ENOMEM. */
int certificates_show(struct certificates *certificates, const char *certificate, const char *key);

#endif
