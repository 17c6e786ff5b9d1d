/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/certificates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

#define CERTIFICATES_MAGIC 0x43455254u
#define AGE_NS             (10ull * 1000 * 1000 * 1000)

struct certificates {
	uint32_t magic;
	const struct kubeconfig *config;
	struct certificate_set *set;
	uint64_t read_ns; /* when the files were last read */
	bool expired;
	uint64_t ca_changes;
};

void certificate_set_release(struct certificate_set **set)
{
	struct certificate_set *s = *set;

	*set = NULL;
	if (!s || --s->references)
		return;
	buf_release(&s->ca);
	buf_release(&s->certificate);
	buf_release(&s->key);
	free(s);
}

/* ---- reading ------------------------------------------------------------ */

static struct certificate_set *certificate_set_new(void)
{
	struct certificate_set *set = malloc(sizeof(*set));

	if (set)
		*set = (struct certificate_set){1, BUF_SECRET, BUF_SECRET, BUF_SECRET};
	return set;
}

static int certificate_text_read(const struct kubeconfig_pem *pem, struct buf *text)
{
	int r = kubeconfig_pem_text(pem, text);

	if (r < 0)
		return r;
	if (pem->file && !strstr(buf_cstr(text), "-----BEGIN "))
		return err_say(ERR_CONFIG, "'%s' is not PEM", pem->file);
	return 0;
}

static int certificate_set_read(const struct kubeconfig *config, struct certificate_set **ret_set)
{
	CLEANUP(certificate_set_release) struct certificate_set *set = certificate_set_new();
	int r;

	if (!set)
		return err_set(-ENOMEM, "certificates");
	r = certificate_text_read(&config->ca, &set->ca);
	if (!r)
		r = certificate_text_read(&config->client_certificate, &set->certificate);
	if (!r)
		r = certificate_text_read(&config->client_key, &set->key);
	if (r < 0)
		return r;
	*ret_set = TAKE(set);
	return 0;
}

static int certificate_set_error(const struct certificate_set *set)
{
	bool failed = buf_error(&set->ca) < 0 || buf_error(&set->certificate) < 0 ||
		      buf_error(&set->key) < 0;

	return failed ? err_set(-ENOMEM, "certificates") : 0;
}

/* ---- keeping ------------------------------------------------------------ */

/* Keeps the old set if *SET is equal: its connections stay good. */
static void certificates_adopt(struct certificates *certificates, struct certificate_set **set)
{
	const struct certificate_set *a = certificates->set, *b = *set;

	if (bytes_equal(buf_bytes(&a->ca), buf_bytes(&b->ca)) &&
		bytes_equal(buf_bytes(&a->certificate), buf_bytes(&b->certificate)) &&
		bytes_equal(buf_bytes(&a->key), buf_bytes(&b->key)))
		return;
	certificates->ca_changes += !bytes_equal(buf_bytes(&a->ca), buf_bytes(&b->ca));
	certificate_set_release(&certificates->set);
	certificates->set = TAKE(*set);
}

/* Reads the files again when it is time to. Keeps the set when they can't be read. */
static void certificates_renew(struct certificates *certificates, uint64_t now_ns)
{
	CLEANUP(certificate_set_release) struct certificate_set *set = NULL;
	const struct certificate_set *old = certificates->set;
	const struct kubeconfig *config = certificates->config;
	int r;

	if (!config->ca.file && !config->client_certificate.file && !config->client_key.file)
		return;
	if (!certificates->expired && now_ns - certificates->read_ns < AGE_NS)
		return;
	certificates->read_ns = now_ns;
	certificates->expired = false;
	r = certificate_set_read(config, &set);
	/* An exec plugin's certificate is in no file: it is kept. */
	if (!r && !set->certificate.size) {
		buf_bytes_put(&set->certificate, buf_bytes(&old->certificate));
		buf_bytes_put(&set->key, buf_bytes(&old->key));
		r = certificate_set_error(set);
	}
	if (r < 0)
		err_ignore(r, "the certificates that were read before stay in use");
	else
		certificates_adopt(certificates, &set);
}

struct certificate_set *certificates_take(struct certificates *certificates, uint64_t now_ns)
{
	CHECK_OBJ(certificates, CERTIFICATES_MAGIC);
	certificates_renew(certificates, now_ns);
	certificates->set->references++;
	return certificates->set;
}

struct bytes certificates_ca(
	struct certificates *certificates, uint64_t now_ns, uint64_t *ret_changes)
{
	CHECK_OBJ(certificates, CERTIFICATES_MAGIC);
	certificates_renew(certificates, now_ns);
	*ret_changes = certificates->ca_changes;
	return buf_bytes(&certificates->set->ca);
}

void certificates_expire(struct certificates *certificates)
{
	CHECK_OBJ(certificates, CERTIFICATES_MAGIC);
	certificates->expired = true;
}

int certificates_show(struct certificates *certificates, const char *certificate, const char *key)
{
	CLEANUP(certificate_set_release) struct certificate_set *set = certificate_set_new();
	const struct certificate_set *old = certificates->set;
	int r;

	CHECK_OBJ(certificates, CERTIFICATES_MAGIC);
	if (!set)
		return err_set(-ENOMEM, "certificates");
	buf_bytes_put(&set->ca, buf_bytes(&old->ca));
	buf_str(&set->certificate, certificate ? certificate : "");
	buf_str(&set->key, key ? key : "");
	r = certificate_set_error(set);
	if (r < 0)
		return r;
	certificates_adopt(certificates, &set);
	return 0;
}

/* ---- the whole ---------------------------------------------------------- */

int certificates_new(const struct kubeconfig *config, struct certificates **ret_certificates)
{
	CLEANUP(certificates_free)
	struct certificates *certificates = calloc(1, sizeof(*certificates));
	int r;

	if (!certificates)
		return err_set(-ENOMEM, "certificates");
	certificates->magic = CERTIFICATES_MAGIC;
	certificates->config = config;
	certificates->read_ns = proc_monotonic_ns();
	r = certificate_set_read(config, &certificates->set);
	if (r < 0)
		return r;
	*ret_certificates = TAKE(certificates);
	return 0;
}

void certificates_free(struct certificates **certificates)
{
	struct certificates *c = *certificates;

	*certificates = NULL;
	if (!c)
		return;
	CHECK_OBJ(c, CERTIFICATES_MAGIC);
	certificate_set_release(&c->set);
	c->magic = 0;
	free(c);
}
