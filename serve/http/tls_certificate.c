/* SPDX-License-Identifier: Apache-2.0 */
/* kinf-serve's own CA and certificate: P-256 keys, PEM files. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/proc.h"
#include "serve/http/tls.h"
#include "serve/http/tls_internal.h"
#include "store/env/text_file.h"

#define DAY_S     (24 * 60 * 60L)
#define CA_DAYS   3650
#define LEAF_DAYS 1825
#define RENEW_S   (30 * DAY_S)
#define CLOCK_SET INT64_C(1767225600) /* 2026-01-01: there was no kinf-serve before */

struct tls_identity {
	X509 *certificate;
	EVP_PKEY *key;
};

static void identity_release(struct tls_identity *identity)
{
	X509_free(identity->certificate);
	EVP_PKEY_free(identity->key);
	*identity = (struct tls_identity){0};
}

/* ---- files -------------------------------------------------------------- */

static FILE *identity_open_file(int directory_fd, const char *name)
{
	int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (!file && fd >= 0)
		(void)close(fd);
	return file;
}

/* Reads a certificate and its key. Returns whether both are there and belong together. */
static bool identity_read(int directory_fd, const char *certificate, const char *key,
	struct tls_identity *ret_identity)
{
	struct tls_identity found = {0};
	FILE *file = identity_open_file(directory_fd, certificate);

	if (file) {
		found.certificate = PEM_read_X509(file, NULL, NULL, NULL);
		(void)fclose(file);
	}
	file = identity_open_file(directory_fd, key);
	if (file) {
		found.key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
		(void)fclose(file);
	}
	bool good = found.certificate && found.key &&
		    X509_check_private_key(found.certificate, found.key) == 1;
	ERR_clear_error();
	if (good)
		*ret_identity = found;
	else
		identity_release(&found);
	return good;
}

static int identity_replace_file(int directory_fd, const char *name, BIO *memory, unsigned mode)
{
	CLEANUP(buf_release) struct buf text = BUF_SECRET;
	char *data = NULL;
	long size = BIO_get_mem_data(memory, &data);

	if (size <= 0)
		return tls_fail("writing '%s'", name);
	buf_put(&text, data, (size_t)size);
	int r = buf_error(&text);
	return r < 0 ? r : text_file_replace(directory_fd, name, buf_cstr(&text), mode);
}

/* Writes the key first: a certificate without its key would be made again. */
static int identity_write(int directory_fd, const char *certificate, const char *key,
	const struct tls_identity *identity)
{
	BIO *secret = BIO_new(BIO_s_secmem()), *memory = BIO_new(BIO_s_mem());
	bool made = secret && memory && PEM_write_bio_X509(memory, identity->certificate) &&
		    PEM_write_bio_PKCS8PrivateKey(secret, identity->key, NULL, NULL, 0, NULL, NULL);
	int r = made ? identity_replace_file(directory_fd, key, secret, 0600)
		     : tls_fail("writing '%s'", key);

	if (r == 0)
		r = identity_replace_file(directory_fd, certificate, memory, 0644);
	BIO_free(secret);
	BIO_free(memory);
	return r;
}

/* ---- making ------------------------------------------------------------- */

static bool identity_add_extension(
	X509 *certificate, X509V3_CTX *context, int nid, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, context, nid, value);
	bool added = extension && X509_add_ext(certificate, extension, -1);

	X509_EXTENSION_free(extension);
	return added;
}

/* Fills the fields of both kinds of certificates. */
static bool identity_fill(struct tls_identity *identity, const struct tls_identity *issuer,
	const char *name, long days)
{
	X509 *c = identity->certificate;
	X509_NAME *subject = X509_get_subject_name(c);
	uint8_t serial[16];
	BIGNUM *number = proc_random(serial, sizeof(serial)) < 0
				 ? NULL
				 : BN_bin2bn(serial, sizeof(serial), NULL);
	bool good = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(c));

	BN_free(number);
	/* A client with a slow clock must not refuse a new certificate. */
	return good && X509_set_version(c, X509_VERSION_3) &&
	       X509_gmtime_adj(X509_getm_notBefore(c), -DAY_S) &&
	       X509_gmtime_adj(X509_getm_notAfter(c), days * DAY_S) &&
	       X509_set_pubkey(c, identity->key) &&
	       X509_NAME_add_entry_by_txt(
		       subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0) &&
	       X509_set_issuer_name(
		       c, issuer ? X509_get_subject_name(issuer->certificate) : subject);
}

/* Makes a certificate signed by ISSUER; NULL: a CA's, signed by itself. */
static int identity_make(const struct tls_identity *issuer, const char *name,
	const char *alternatives, struct tls_identity *ret_identity)
{
	CLEANUP(identity_release)
	struct tls_identity made = {.certificate = X509_new(), .key = EVP_EC_gen("P-256")};
	X509 *c = made.certificate;
	X509V3_CTX context;

	if (!c || !made.key || !identity_fill(&made, issuer, name, issuer ? LEAF_DAYS : CA_DAYS))
		return tls_fail("making a certificate");
	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, issuer ? issuer->certificate : c, c, NULL, NULL, 0);
	bool good =
		identity_add_extension(c, &context, NID_subject_key_identifier, "hash") &&
		identity_add_extension(c, &context, NID_authority_key_identifier, "keyid:always");
	if (issuer)
		good = good &&
		       identity_add_extension(
			       c, &context, NID_basic_constraints, "critical,CA:FALSE") &&
		       identity_add_extension(
			       c, &context, NID_key_usage, "critical,digitalSignature") &&
		       identity_add_extension(c, &context, NID_ext_key_usage, "serverAuth") &&
		       identity_add_extension(c, &context, NID_subject_alt_name, alternatives);
	else
		good = good &&
		       identity_add_extension(
			       c, &context, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
		       identity_add_extension(
			       c, &context, NID_key_usage, "critical,keyCertSign,cRLSign");
	if (!good || !X509_sign(c, issuer ? issuer->key : made.key, EVP_sha256()))
		return tls_fail("making a certificate");
	*ret_identity = made;
	made = (struct tls_identity){0};
	return 0;
}

/* ---- existing certificates ----------------------------------------------- */

static bool name_is_address(const char *name)
{
	uint8_t bytes[16];

	return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

enum identity_age { IDENTITY_CURRENT, IDENTITY_OLD, IDENTITY_OF_WRONG_CLOCK };

/* While the clock is not set (1970, after a start without a battery), a certificate stays: clients
 * know the CA. One made then, or not valid yet, was made by a wrong clock. */
static enum identity_age identity_age(const struct tls_identity *identity)
{
	const ASN1_TIME *begin = X509_get0_notBefore(identity->certificate);
	time_t now = (time_t)(proc_realtime_ns() / 1000000000u), soon = now + RENEW_S,
	       first = CLOCK_SET - DAY_S;

	if (now < CLOCK_SET)
		return IDENTITY_CURRENT;
	if (X509_cmp_time(begin, &first) < 0 || X509_cmp_time(begin, &now) > 0)
		return IDENTITY_OF_WRONG_CLOCK;
	return X509_cmp_time(X509_get0_notAfter(identity->certificate), &soon) > 0
		       ? IDENTITY_CURRENT
		       : IDENTITY_OLD;
}

bool tls_certificates_are_due(int directory_fd)
{
	CLEANUP(identity_release) struct tls_identity ca = {0}, server = {0};
	bool due = false;

	if (identity_read(directory_fd, TLS_CA_CERTIFICATE, TLS_CA_KEY, &ca) &&
		identity_read(directory_fd, TLS_CERTIFICATE, TLS_KEY, &server))
		due = identity_age(&ca) == IDENTITY_OF_WRONG_CLOCK ||
		      (identity_age(&ca) == IDENTITY_CURRENT &&
			      identity_age(&server) != IDENTITY_CURRENT);
	ERR_clear_error();
	return due;
}

static bool identity_covers(const struct tls_identity *identity, struct buf *names)
{
	X509 *c = identity->certificate;
	const char *name = buf_cstr(names), *end = name + names->size;

	for (; name < end; name += strlen(name) + 1)
		if ((name_is_address(name) ? X509_check_ip_asc(c, name, 0)
					   : X509_check_host(c, name, 0, 0, NULL)) != 1)
			return false;
	return true;
}

int tls_make_certificates(int directory_fd, struct buf *names)
{
	CLEANUP(identity_release) struct tls_identity ca = {0}, server = {0};
	CLEANUP(buf_release) struct buf alternatives = BUF_INIT;
	char host[256] = "", name[300];
	int r = 0;

	r = buf_error(names);
	if (r < 0)
		return r;
	(void)gethostname(host, sizeof(host) - 1);
	bool ca_found = identity_read(directory_fd, TLS_CA_CERTIFICATE, TLS_CA_KEY, &ca);
	if (ca_found && identity_age(&ca) != IDENTITY_CURRENT) {
		identity_release(&ca);
		ca_found = false;
	}
	if (!ca_found) {
		(void)snprintf(name, sizeof(name), "kinf-serve CA of %.40s", host);
		r = identity_make(NULL, name, NULL, &ca);
		if (r == 0)
			r = identity_write(directory_fd, TLS_CA_CERTIFICATE, TLS_CA_KEY, &ca);
	}
	if (r < 0)
		return r;
	if (identity_read(directory_fd, TLS_CERTIFICATE, TLS_KEY, &server) &&
		identity_age(&server) == IDENTITY_CURRENT &&
		X509_verify(server.certificate, ca.key) == 1 && identity_covers(&server, names))
		return 0;
	ERR_clear_error();
	identity_release(&server);
	const char *n = buf_cstr(names), *end = n + names->size;
	for (; n < end; n += strlen(n) + 1)
		buf_printf(&alternatives, "%s%s:%s", alternatives.size ? "," : "",
			name_is_address(n) ? "IP" : "DNS", n);
	r = buf_error(&alternatives);
	if (r == 0)
		r = identity_make(&ca, "kinf-serve", buf_cstr(&alternatives), &server);
	return r < 0 ? r : identity_write(directory_fd, TLS_CERTIFICATE, TLS_KEY, &server);
}
