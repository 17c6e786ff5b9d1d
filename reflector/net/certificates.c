/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/certificates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reflector/net/small_file.h"

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

static void certificate_text_release(struct certificate_text *text)
{
	small_file_wipe(&text->data, text->size);
	text->size = 0;
}

void certificate_set_release(struct certificate_set **set)
{
	struct certificate_set *s = *set;

	*set = NULL;
	if (!s || --s->references)
		return;
	certificate_text_release(&s->ca);
	certificate_text_release(&s->certificate);
	certificate_text_release(&s->key);
	free(s);
}

/* ---- reading ------------------------------------------------------------ */

static int certificate_text_copy(const char *data, size_t size, struct certificate_text *text)
{
	if (!data)
		return 0;
	text->data = malloc(size + 1);
	if (!text->data)
		return err_set(-ENOMEM, "certificates");
	memcpy(text->data, data, size);
	text->data[size] = '\0';
	text->size = size;
	return 0;
}

static int certificate_text_read(const struct kubeconfig_pem *pem, struct certificate_text *text)
{
	if (pem->data || !pem->file)
		return certificate_text_copy(pem->data, pem->size, text);

	int r = small_file_read(pem->file, KUBECONFIG_PEM_MAX, &text->data, &text->size);

	if (r < 0)
		return r;
	if (!strstr(text->data, "-----BEGIN "))
		return err_say(ERR_CONFIG, "'%s' is not PEM", pem->file);
	return 0;
}

static int certificate_set_read(const struct kubeconfig *config, struct certificate_set **ret_set)
{
	CLEANUP(certificate_set_release) struct certificate_set *set = calloc(1, sizeof(*set));
	int r;

	if (!set)
		return err_set(-ENOMEM, "certificates");
	set->references = 1;
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

/* ---- keeping ------------------------------------------------------------ */

static bool certificate_text_equal(
	const struct certificate_text *a, const struct certificate_text *b)
{
	return a->size == b->size && (!a->size || !memcmp(a->data, b->data, a->size));
}

/* Keeps the old set if *SET is equal: its connections stay good. */
static void certificates_adopt(struct certificates *certificates, struct certificate_set **set)
{
	const struct certificate_set *a = certificates->set, *b = *set;

	if (certificate_text_equal(&a->ca, &b->ca) &&
		certificate_text_equal(&a->certificate, &b->certificate) &&
		certificate_text_equal(&a->key, &b->key))
		return;
	certificates->ca_changes += !certificate_text_equal(&a->ca, &b->ca);
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
	if (!r && !set->certificate.data) {
		r = certificate_text_copy(
			old->certificate.data, old->certificate.size, &set->certificate);
		if (!r)
			r = certificate_text_copy(old->key.data, old->key.size, &set->key);
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
	return BYTES(certificates->set->ca.data, certificates->set->ca.size);
}

void certificates_expire(struct certificates *certificates)
{
	CHECK_OBJ(certificates, CERTIFICATES_MAGIC);
	certificates->expired = true;
}

int certificates_show(struct certificates *certificates, const char *certificate, const char *key)
{
	CLEANUP(certificate_set_release) struct certificate_set *set = calloc(1, sizeof(*set));
	const struct certificate_set *old = certificates->set;
	int r;

	CHECK_OBJ(certificates, CERTIFICATES_MAGIC);
	if (!set)
		return err_set(-ENOMEM, "certificates");
	set->references = 1;
	r = certificate_text_copy(old->ca.data, old->ca.size, &set->ca);
	if (!r && certificate)
		r = certificate_text_copy(certificate, strlen(certificate), &set->certificate);
	if (!r && key)
		r = certificate_text_copy(key, strlen(key), &set->key);
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
