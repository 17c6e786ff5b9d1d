/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/certificates.h"

#include "common/proc.h"
#include "tests/unit/unit.h"

#define SECOND 1000000000ull
#define PEM(x) "-----BEGIN " x "-----\n"

static char dir[] = "/tmp/kinf-certificates-XXXXXX";
static char ca[64], crt[64], key[64];
static struct kubeconfig config;

static void set_up(void)
{
	cr_assert(mkdtemp(dir));
	(void)snprintf(ca, sizeof(ca), "%s/ca", dir);
	(void)snprintf(crt, sizeof(crt), "%s/crt", dir);
	(void)snprintf(key, sizeof(key), "%s/key", dir);
	scratch_write(ca, PEM("CA"));
	scratch_write(crt, PEM("CRT"));
	scratch_write(key, PEM("KEY"));
	config = (struct kubeconfig){
		.tls = true, .ca.file = ca, .client_certificate.file = crt, .client_key.file = key};
}

static void tear_down(void)
{
	(void)unlink(ca);
	(void)unlink(crt);
	(void)unlink(key);
	cr_assert_eq(rmdir(dir), 0);
}

TestSuite(certificates, .init = set_up, .fini = tear_down);

static struct certificates *open_certificates(void)
{
	struct certificates *certificates = NULL;

	OK(certificates_new(&config, &certificates));
	return certificates;
}

static void shows(struct certificates *certificates, uint64_t now, const char *wanted_ca,
	const char *wanted_certificate)
{
	CLEANUP(certificate_set_release)
	struct certificate_set *set = certificates_take(certificates, now);

	cr_assert_str_eq(buf_cstr(&set->ca), wanted_ca);
	cr_assert_str_eq(buf_cstr(&set->certificate), wanted_certificate);
}

Test(certificates, files_are_read_again_after_ten_seconds)
{
	CLEANUP(certificates_free) struct certificates *c = open_certificates();
	uint64_t now = proc_monotonic_ns();

	scratch_write(ca, PEM("CA2"));
	shows(c, now + 5 * SECOND, PEM("CA"), PEM("CRT"));
	shows(c, now + 11 * SECOND, PEM("CA2"), PEM("CRT"));
	scratch_write(crt, PEM("CRT2"));
	scratch_write(key, PEM("KEY2"));
	shows(c, now + 12 * SECOND, PEM("CA2"), PEM("CRT"));
	certificates_expire(c);
	shows(c, now + 13 * SECOND, PEM("CA2"), PEM("CRT2"));
}

Test(certificates, files_that_are_bad_now_leave_what_was_read)
{
	CLEANUP(certificates_free) struct certificates *c = open_certificates();
	uint64_t now = proc_monotonic_ns();

	scratch_write(ca, "half");
	shows(c, now + 11 * SECOND, PEM("CA"), PEM("CRT"));
	cr_assert_eq(unlink(key), 0);
	shows(c, now + 22 * SECOND, PEM("CA"), PEM("CRT"));
	scratch_write(ca, PEM("CA2"));
	scratch_write(key, PEM("KEY2"));
	shows(c, now + 33 * SECOND, PEM("CA2"), PEM("CRT"));
}

Test(certificates, unchanged_files_give_the_same_set_and_changed_ones_leave_the_old_alive)
{
	struct certificates *c = open_certificates();
	uint64_t now = proc_monotonic_ns();
	CLEANUP(certificate_set_release) struct certificate_set *a = certificates_take(c, now);
	CLEANUP(certificate_set_release)
	struct certificate_set *b = certificates_take(c, now + 11 * SECOND);

	cr_assert_eq(a, b);
	certificate_set_release(&b);
	scratch_write(ca, PEM("CA2"));
	b = certificates_take(c, now + 22 * SECOND);
	cr_assert_neq(a, b);
	cr_assert_str_eq(buf_cstr(&a->ca), PEM("CA"));
	certificates_free(&c);
	cr_assert_str_eq(buf_cstr(&b->ca), PEM("CA2"));
}

Test(certificates, certificate_of_a_plugin_outlives_a_rotated_ca)
{
	CLEANUP(certificates_free) struct certificates *c = NULL;
	uint64_t now = proc_monotonic_ns();
	CLEANUP(certificate_set_release) struct certificate_set *set = NULL;

	config.client_certificate.file = config.client_key.file = NULL;
	c = open_certificates();
	cr_assert_eq(certificates_show(c, PEM("P"), PEM("PK")), 0);
	set = certificates_take(c, now);
	cr_assert_eq(certificates_show(c, PEM("P"), PEM("PK")), 0);
	shows(c, now, PEM("CA"), PEM("P"));
	cr_assert_str_eq(buf_cstr(&set->key), PEM("PK"));
	scratch_write(ca, PEM("CA2"));
	shows(c, now + 11 * SECOND, PEM("CA2"), PEM("P"));
	certificate_set_release(&set);
	cr_assert_eq(certificates_show(c, NULL, NULL), 0);
	set = certificates_take(c, now + 11 * SECOND);
	cr_assert_eq(set->certificate.size, 0);
	cr_assert_eq(set->key.size, 0);
	cr_assert_str_eq(buf_cstr(&set->ca), PEM("CA2"));
}

Test(certificates, unreadable_files_are_an_error_at_the_start)
{
	struct certificates *c = NULL;

	scratch_write(crt, "not a certificate");
	cr_assert_eq(certificates_new(&config, &c), ERR_CONFIG);
	cr_assert(strstr(err_text(ERR_CONFIG), crt));
	cr_assert_eq(unlink(crt), 0);
	cr_assert_eq(certificates_new(&config, &c), -ENOENT);
	cr_assert(strstr(err_text(-ENOENT), crt));
	cr_assert_null(c);
}
