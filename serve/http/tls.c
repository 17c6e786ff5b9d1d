/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "serve/exchange.h"
#include "serve/http/tls_internal.h"

#define TLS_MAGIC 0x736c7474u
/* in a row; an honest client updates its key once in millions of records */
#define TLS_MESSAGES_MAX   32
#define TLS_TICKET_SECONDS 600 /* a client's certificate may expire meanwhile */

/* tls_reload() replaces all of it at once. */
struct tls_setting {
	SSL_CTX *context;
	unsigned char client_ca[SSL_MAX_SID_CTX_LENGTH]; /* a digest of the file */
};

struct tls {
	uint32_t magic;
	pthread_mutex_t lock;
	struct tls_setting setting;
	uint64_t client_cas; /* counts the different client_ca; also read without the lock */
};

struct tls_session {
	SSL *ssl;
	struct tls *tls;
	uint64_t client_ca; /* the tls->client_cas of the check */
	bool distrusted;    /* it was not signed by the client_ca of the check */
	unsigned messages;  /* since the last data */
	bool broken;        /* after a fatal error OpenSSL must not be asked to end the session */
	/* In the client's certificate. */
	char *common_name, **organizations;
	size_t n_organizations;
};

int tls_fail(const char *format, ...)
{
	char text[400], reason[200] = "unknown error";
	unsigned long code = ERR_peek_error();
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (code)
		ERR_error_string_n(code, reason, sizeof(reason));
	ERR_clear_error();
	return err_say(ERR_TLS, "%s: %s", text, reason);
}

/* ---- contexts ----------------------------------------------------------- */

/* Chooses among the client's protocols: HTTP/2, else HTTP/1.1. */
static int tls_choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_size,
	const unsigned char *offered, unsigned offered_size, void *arg)
{
	static const unsigned char ours[] = "\x02h2\x08http/1.1";
	unsigned char *chosen;

	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto(&chosen, out_size, ours, sizeof(ours) - 1, offered,
		    offered_size) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* Binds sessions to the CA of clients: a ticket holds the client's verified certificate, and a
 * server with another CA, also this one after a reload, must not take it. */
static int tls_bind_sessions(struct tls_setting *setting, const char *client_ca)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	AUTO_FD int fd = client_ca ? open(client_ca, O_RDONLY | O_CLOEXEC) : -1;
	int r = !client_ca ? 0
		: fd < 0   ? err_set(-errno, "opening it")
			   : buf_read_file(&text, fd, "it");

	if (r < 0)
		return err_add(r, "'%s' (serve.tls.clientCA)", client_ca);
	return EVP_Q_digest(NULL, "SHA256", NULL, text.data, text.size, setting->client_ca, NULL) &&
			       SSL_CTX_set_session_id_context(setting->context, setting->client_ca,
				       sizeof(setting->client_ca))
		       ? 0
		       : tls_fail("setting TLS up");
}

/* Reads FILES; each may be NULL. RET_PART: the faulty one. */
static int tls_load_files(SSL_CTX *context, const struct tls_files *files, enum tls_part *ret_part)
{
	const char *certificate = files->certificate, *key = files->key;

	*ret_part = TLS_PART_CERTIFICATE;
	if (certificate && SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
		return tls_fail("reading the certificate '%s'", certificate);
	*ret_part = TLS_PART_KEY;
	if (certificate && SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
		return tls_fail("reading the key '%s' of the certificate '%s'", key, certificate);
	if (certificate && SSL_CTX_check_private_key(context) != 1)
		return tls_fail(
			"the key '%s' does not belong to the certificate '%s'", key, certificate);
	*ret_part = TLS_PART_CLIENT_CA;
	if (!files->client_ca)
		return 0;
	if (SSL_CTX_load_verify_locations(context, files->client_ca, NULL) != 1)
		return tls_fail("reading the CA '%s'", files->client_ca);
	SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(files->client_ca));
	/* A client without a certificate is welcome; one with a wrong certificate is not. */
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_CLIENT_ONCE, NULL);
	return 0;
}

static int tls_load(struct tls_setting *setting, const struct tls_files *files)
{
	static const char *const part_keys[] = {[TLS_PART_CERTIFICATE] = "serve.tls.cert",
		[TLS_PART_KEY] = "serve.tls.key",
		[TLS_PART_CLIENT_CA] = "serve.tls.clientCA"};
	SSL_CTX *context = setting->context;
	enum tls_part part;

	SSL_CTX_set_alpn_select_cb(context, tls_choose_protocol, NULL);
	(void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
						SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* So that SSL_read() returns after control messages, for tls_session_read() to count. */
	(void)SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
	(void)SSL_CTX_set_options(context,
		SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	/* One read(2) for all records, in place of two for each. */
	SSL_CTX_set_read_ahead(context, 1);
	/* Sessions are resumed by tickets, without memory here. */
	(void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	if (!SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) ||
		!SSL_CTX_set_num_tickets(context, 1))
		return tls_fail("setting TLS up");
	(void)SSL_CTX_set_timeout(context, TLS_TICKET_SECONDS);
	int r = tls_bind_sessions(setting, files->client_ca);
	if (r < 0)
		return r;
	r = tls_load_files(context, files, &part);
	return r < 0 ? err_add(r, "%s", part_keys[part]) : 0;
}

static int tls_new_setting(const struct tls_files *files, struct tls_setting *ret_setting)
{
	struct tls_setting setting = {.context = SSL_CTX_new(TLS_server_method())};

	if (!setting.context)
		return tls_fail("setting TLS up");
	int r = tls_load(&setting, files);
	if (r < 0)
		SSL_CTX_free(setting.context);
	else
		*ret_setting = setting;
	return r;
}

int tls_open(const struct tls_files *files, struct tls **ret_tls)
{
	CLEANUP(tls_close) struct tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return err_set(-ENOMEM, "setting TLS up");
	tls->magic = TLS_MAGIC;
	(void)pthread_mutex_init(&tls->lock, NULL);
	int r = tls_new_setting(files, &tls->setting);
	if (r == 0)
		*ret_tls = TAKE(tls);
	return r;
}

int tls_reload(struct tls *tls, const struct tls_files *files)
{
	struct tls_setting setting;

	CHECK_OBJ(tls, TLS_MAGIC);
	int r = tls_new_setting(files, &setting);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&tls->lock);
	struct tls_setting old = tls->setting;
	tls->setting = setting;
	if (memcmp(old.client_ca, setting.client_ca, sizeof(old.client_ca)) != 0)
		__atomic_store_n(&tls->client_cas, tls->client_cas + 1, __ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&tls->lock);
	SSL_CTX_free(old.context);
	return 0;
}

int tls_check(const struct tls_files *files, enum tls_part *ret_part)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	int r = context ? 0 : tls_fail("setting TLS up");

	*ret_part = TLS_PART_CERTIFICATE;
	if (r == 0)
		r = tls_load_files(context, files, ret_part);
	SSL_CTX_free(context);
	return r;
}

void tls_close(struct tls **tls)
{
	struct tls *t = TAKE(*tls);

	if (!t)
		return;
	CHECK_OBJ(t, TLS_MAGIC);
	SSL_CTX_free(t->setting.context);
	(void)pthread_mutex_destroy(&t->lock);
	t->magic = 0;
	free(t);
}

/* ---- sessions ----------------------------------------------------------- */

/* Counts a client's messages other than data: key updates, and requests for another handshake. */
static void tls_count_message(
	int written, int version, int type, const void *bytes, size_t size, SSL *ssl, void *arg)
{
	struct tls_session *session = arg;

	(void)version;
	(void)bytes;
	(void)size;
	(void)ssl;
	session->messages += !written && type == SSL3_RT_HANDSHAKE;
}

int tls_session_new(struct tls *tls, int fd, struct tls_session **ret_session)
{
	CLEANUP(tls_session_free) struct tls_session *session = calloc(1, sizeof(*session));

	CHECK_OBJ(tls, TLS_MAGIC);
	if (!session)
		return err_set(-ENOMEM, "beginning a TLS session");
	(void)pthread_mutex_lock(&tls->lock);
	session->ssl = SSL_new(tls->setting.context);
	session->tls = tls;
	session->client_ca = tls->client_cas;
	(void)pthread_mutex_unlock(&tls->lock);
	if (!session->ssl || SSL_set_fd(session->ssl, fd) != 1)
		return tls_fail("beginning a TLS session");
	SSL_set_msg_callback(session->ssl, tls_count_message);
	SSL_set_msg_callback_arg(session->ssl, session);
	SSL_set_accept_state(session->ssl);
	*ret_session = TAKE(session);
	return 0;
}

void tls_session_free(struct tls_session **session)
{
	struct tls_session *s = TAKE(*session);

	if (!s)
		return;
	SSL_free(s->ssl);
	free(s->common_name);
	for (size_t i = 0; i < s->n_organizations; i++)
		free(s->organizations[i]);
	free(s->organizations);
	free(s);
}

/* Returns the meaning of R, a failure of the last call on SESSION. */
static ssize_t tls_session_result(struct tls_session *s, int r)
{
	int error = SSL_get_error(s->ssl, r);

	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return TLS_AGAIN;
	if (error == SSL_ERROR_ZERO_RETURN)
		return 0;
	s->broken = true;
	ERR_clear_error();
	return TLS_BROKEN;
}

int tls_session_handshake(struct tls_session *s)
{
	ERR_clear_error();
	int r = SSL_do_handshake(s->ssl);
	if (r == 1)
		return 0;
	if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST) {
		s->broken = true;
		ERR_clear_error();
		return TLS_PLAIN;
	}
	ssize_t result = tls_session_result(s, r);
	return result == 0 ? TLS_BROKEN : (int)result;
}

ssize_t tls_session_read(struct tls_session *s, void *bytes, size_t size)
{
	unsigned before;
	ssize_t result;

	do {
		size_t n = 0;

		before = s->messages;
		ERR_clear_error();
		int r = SSL_read_ex(s->ssl, bytes, size, &n);
		if (r == 1) {
			s->messages = 0;
			return (ssize_t)n;
		}
		result = tls_session_result(s, r);
	} while (result == TLS_AGAIN && s->messages != before && s->messages <= TLS_MESSAGES_MAX);
	if (s->messages <= TLS_MESSAGES_MAX)
		return result;
	s->broken = true;
	return TLS_BROKEN;
}

ssize_t tls_session_write(struct tls_session *s, const void *bytes, size_t size)
{
	size_t n = 0;

	ERR_clear_error();
	int r = SSL_write_ex(s->ssl, bytes, size, &n);
	if (r == 1)
		return (ssize_t)n;
	ssize_t result = tls_session_result(s, r);
	return result == 0 ? TLS_BROKEN : result;
}

void tls_session_end(struct tls_session *s)
{
	if (s->broken || SSL_in_init(s->ssl))
		return;
	ERR_clear_error();
	(void)SSL_shutdown(s->ssl); /* the client may be gone */
	ERR_clear_error();
}

bool tls_session_is_h2(const struct tls_session *s)
{
	const unsigned char *name = NULL;
	unsigned size = 0;

	SSL_get0_alpn_selected(s->ssl, &name, &size);
	return size == 2 && memcmp(name, "h2", 2) == 0;
}

/* ---- the client's certificate ------------------------------------------- */

/* Returns whether CONTEXT would accept the client's certificate in a handshake. */
static bool tls_verify_again(SSL_CTX *context, SSL *ssl)
{
	X509_STORE_CTX *check = X509_STORE_CTX_new();
	bool good = check &&
		    X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(context),
			    SSL_get0_peer_certificate(ssl), SSL_get_peer_cert_chain(ssl)) == 1 &&
		    X509_STORE_CTX_set_default(check, "ssl_client") == 1;

	if (good)
		X509_VERIFY_PARAM_set_auth_level(
			X509_STORE_CTX_get0_param(check), SSL_get_security_level(ssl));
	good = good && X509_verify_cert(check) == 1;
	X509_STORE_CTX_free(check);
	ERR_clear_error();
	return good;
}

bool tls_session_is_trusted(struct tls_session *s)
{
	struct tls *tls = s->tls;

	if (__atomic_load_n(&tls->client_cas, __ATOMIC_ACQUIRE) == s->client_ca)
		return !s->distrusted;
	(void)pthread_mutex_lock(&tls->lock);
	SSL_CTX *context = tls->setting.context;
	bool held = SSL_CTX_up_ref(context) == 1;
	uint64_t client_ca = tls->client_cas;
	(void)pthread_mutex_unlock(&tls->lock);
	s->distrusted = !held || !tls_verify_again(context, s->ssl);
	s->client_ca = client_ca;
	if (held)
		SSL_CTX_free(context);
	return !s->distrusted;
}

/* Copies a name's text as UTF-8. A NUL in it would let one client pass for another. */
static int tls_copy_entry(X509_NAME *subject, int at, char **ret_text)
{
	unsigned char *utf8 = NULL;
	int size = ASN1_STRING_to_UTF8(
		&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));

	if (size < 0 || memchr(utf8, '\0', (size_t)size)) {
		OPENSSL_free(utf8);
		return tls_fail("a client's certificate has a malformed subject");
	}
	*ret_text = strndup((char *)utf8, (size_t)size);
	OPENSSL_free(utf8);
	return *ret_text ? 0 : err_set(-ENOMEM, "reading a client's certificate");
}

int tls_session_peer(struct tls_session *s, struct exchange_peer *peer)
{
	const X509 *certificate = SSL_get0_peer_certificate(s->ssl);
	struct tm until = {0};
	size_t room = 0;
	int r = 0, at = -1;

	if (!certificate || SSL_get_verify_result(s->ssl) != X509_V_OK)
		return 0;
	X509_NAME *subject = X509_get_subject_name(certificate);
	if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &until) != 1)
		return tls_fail("a client's certificate has no time of its end");
	/* The API server takes the last one of several names. */
	for (int next = -1;
		(next = X509_NAME_get_index_by_NID(subject, NID_commonName, next)) >= 0;)
		at = next;
	if (at >= 0)
		r = tls_copy_entry(subject, at, &s->common_name);
	for (at = -1; r == 0 &&
		      (at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at)) >= 0;) {
		char *text = NULL;

		r = tls_copy_entry(subject, at, &text);
		if (r == 0)
			r = ARRAY_ADD(s->organizations, s->n_organizations, room, text,
				"the organizations of a client");
		if (r < 0)
			free(text);
	}
	if (r < 0)
		return r;
	peer->certificate = s;
	peer->until_s = timegm(&until);
	peer->common_name = s->common_name ? s->common_name : "";
	peer->organizations = (const char *const *)s->organizations;
	peer->n_organizations = s->n_organizations;
	return 0;
}

/* ---- digests ------------------------------------------------------------ */

bool tls_sha1(struct bytes bytes, uint8_t ret_digest[TLS_SHA1_SIZE])
{
	size_t size = TLS_SHA1_SIZE;
	bool is_made =
		EVP_Q_digest(NULL, "SHA1", NULL, bytes.data, bytes.size, ret_digest, &size) == 1;

	ERR_clear_error();
	return is_made;
}
