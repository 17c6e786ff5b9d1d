/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates made by kinf-serve, and their renewal. */
#include "serve/http/tls.h"

#include <sys/syscall.h>
#include <time.h>

#include "common/buf.h"
#include "tests/unit/unit.h"

#define DAY INT64_C(86400)

/* This program's wall clock, set by tests. */
static int64_t step_s;

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret_time);

	if (id == CLOCK_REALTIME)
		ret_time->tv_sec += step_s;
	return r;
}

/* OpenSSL, a shared library, asks this one. */
__attribute__((visibility("default"))) time_t time(time_t *ret_time)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (ret_time)
		*ret_time = now.tv_sec;
	return now.tv_sec;
}

struct files {
	char ca[4096], server[4096];
};

static void read_text(const char *name, char text[4096])
{
	FILE *file = fopen(scratch_path(name), "r");

	cr_assert_not_null(file, "%s", name);
	text[fread(text, 1, 4095, file)] = '\0';
	(void)fclose(file);
	cr_assert_gt(strlen(text), 100);
}

/* The directory's content after a start of kinf-serve at this time. */
static struct files start(int64_t step)
{
	CLEANUP(buf_release) struct buf names = BUF_INIT;
	AUTO_FD int directory = open(scratch(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct files files;

	step_s = step;
	buf_bytes_put(&names, BYTES_LIT("localhost\000127.0.0.1\0"));
	OK(tls_make_certificates(directory, &names));
	read_text(TLS_CA_CERTIFICATE, files.ca);
	read_text(TLS_CERTIFICATE, files.server);
	return files;
}

Test(tls_certificate, they_are_kept_until_they_are_about_to_expire)
{
	struct files first = start(0), later = start(1000 * DAY);

	cr_assert_str_eq(later.ca, first.ca);
	cr_assert_str_eq(later.server, first.server);
	later = start(1800 * DAY);
	cr_assert_str_eq(later.ca, first.ca);
	cr_assert_str_neq(later.server, first.server);
	cr_assert_str_neq(start(3630 * DAY).ca, first.ca);
}

/* They stayed for good, and every client refused them as not valid yet. */
Test(tls_certificate, those_that_were_made_while_the_clock_was_ahead_are_replaced)
{
	struct files ahead = start(27000 * DAY), now = start(0);

	cr_assert_str_neq(now.ca, ahead.ca);
	cr_assert_str_neq(now.server, ahead.server);
	cr_assert_str_eq(start(0).ca, now.ca);
	cr_assert_str_eq(start(-DAY / 2).ca, now.ca, "a clock that goes a little slow");
}

static int64_t until_1970(void)
{
	struct timespec now;

	(void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
	return 100 * DAY - now.tv_sec;
}

static bool are_due(int64_t step)
{
	AUTO_FD int directory = open(scratch(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	step_s = step;
	return tls_certificates_are_due(directory);
}

/* As on a machine learning the time some minutes after its start. */
Test(tls_certificate, a_clock_that_is_not_set_yet_costs_no_ca)
{
	struct files before = start(0), unset = start(until_1970());

	cr_assert_str_eq(unset.ca, before.ca);
	cr_assert_str_eq(unset.server, before.server);
	cr_assert(!are_due(until_1970()));
	cr_assert(!are_due(0));
}

Test(tls_certificate, those_that_were_made_before_the_clock_was_set_are_replaced)
{
	struct files unset = start(until_1970());

	cr_assert(!are_due(until_1970() + 5));
	cr_assert(are_due(0));
	struct files now = start(0);
	cr_assert_str_neq(now.ca, unset.ca);
	cr_assert_str_neq(now.server, unset.server);
	cr_assert(!are_due(0));
}

Test(tls_certificate, while_kinf_serve_runs_a_ca_is_not_replaced_because_it_seems_old)
{
	(void)start(0);
	cr_assert(!are_due(1000 * DAY));
	cr_assert(are_due(1800 * DAY), "the server's certificate");
	cr_assert(!are_due(27000 * DAY), "a clock that is ahead");
	(void)start(27000 * DAY);
	cr_assert(are_due(0), "not valid yet");
}
