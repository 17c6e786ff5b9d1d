/* SPDX-License-Identifier: Apache-2.0 */
/* The tls group's one include of OpenSSL. */
#ifndef SERVE_HTTP_TLS_INTERNAL_H
#define SERVE_HTTP_TLS_INTERNAL_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* Sets a sentence with OpenSSL's reason, and empties OpenSSL's queue of errors. Returns ERR_TLS. */
int tls_fail(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

#endif
