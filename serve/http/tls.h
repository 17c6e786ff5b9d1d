/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS of the listeners, and kinf-serve's own certificates. The tls group: tls.c (contexts and
 * sessions), tls_certificate.c (making certificates); OpenSSL is used by tls_internal.h only.
 *
 * A context is shared by all workers and is never changed: tls_reload() after SIGHUP makes another
 * one, and sessions keep their first one (OpenSSL counts the references). Only the client's
 * certificate is checked again, against the CAs of the newest one.
 */
#ifndef SERVE_HTTP_TLS_H
#define SERVE_HTTP_TLS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/bytes.h"

struct buf;
struct exchange_peer;
struct tls;
struct tls_session;

/* ---- contexts ----------------------------------------------------------- */

struct tls_files {
	const char *certificate, *key; /* PEM; the chain after the server's certificate */
	const char *client_ca;         /* NULL: no certificates of clients are asked for */
};
int tls_open(const struct tls_files *files, struct tls **ret_tls);
/* Reads the files again for handshakes from now on; of running sessions only
 * tls_session_is_trusted() changes. On failure all is as before. From the main thread, while
 * workers use TLS. */
int tls_reload(struct tls *tls, const struct tls_files *files);
void tls_close(struct tls **tls);
/* Checks FILES without using them; each may be NULL here. RET_PART: the faulty file. */
enum tls_part { TLS_PART_CERTIFICATE, TLS_PART_KEY, TLS_PART_CLIENT_CA };
int tls_check(const struct tls_files *files, enum tls_part *ret_part);

/* ---- sessions ----------------------------------------------------------- */

/* Borrows FD. */
int tls_session_new(struct tls *tls, int fd, struct tls_session **ret_session);
void tls_session_free(struct tls_session **session);
#define TLS_AGAIN  (-EAGAIN)
#define TLS_BROKEN (-EPIPE)
#define TLS_PLAIN  (-EPROTO)
/* Return 0 (the handshake is complete), or a number of bytes (0: the end); TLS_AGAIN; TLS_BROKEN:
 * the connection is of no use; TLS_PLAIN, of the handshake: the client speaks HTTP without TLS.
 * These codes have no sentence: they are a client's. */
int tls_session_handshake(struct tls_session *session);
ssize_t tls_session_read(struct tls_session *session, void *bytes, size_t size);
ssize_t tls_session_write(struct tls_session *session, const void *bytes, size_t size);
/* Sends close_notify if there is room for it. */
void tls_session_end(struct tls_session *session);
/* Returns true if ALPN chose HTTP/2. */
bool tls_session_is_h2(const struct tls_session *session);

/* Adds the names of the client's certificate, if it has sent one, to PEER; they live as long as the
 * session. After the handshake. */
int tls_session_peer(struct tls_session *session, struct exchange_peer *peer);
/* Returns true if the current client_ca has signed the client's certificate. For a session with
 * one. Cheap while client_ca stays the same. */
bool tls_session_is_trusted(struct tls_session *session);

/* ---- certificates: tls_certificate.c ------------------------------------ */

#define TLS_CA_CERTIFICATE "ca.crt"
#define TLS_CA_KEY         "ca.key"
#define TLS_CERTIFICATE    "server.crt"
#define TLS_KEY            "server.key"

/*
 * Makes a CA in the directory if it has none, and a server's certificate for NAMES (addresses and
 * host names, each with a NUL) if it has none, or if that one lacks a name, belongs to another CA,
 * expires within 30 days or was made by a wrong clock. Keys have mode 0600. Files are replaced
 * whole.
 */
int tls_make_certificates(int directory_fd, struct buf *names);
/* Returns true if tls_make_certificates() would now replace a certificate because of the time. An
 * old CA is no reason: a clock ahead for a minute must not cost the CA known to clients. A start
 * replaces it. */
bool tls_certificates_are_due(int directory_fd);

/* ---- digests ------------------------------------------------------------ */

#define TLS_SHA1_SIZE 20

/* Computes SHA-1 of BYTES, for protocols without a secret. Returns false if OpenSSL refuses it. */
bool tls_sha1(struct bytes bytes, uint8_t ret_digest[TLS_SHA1_SIZE]);

#endif
