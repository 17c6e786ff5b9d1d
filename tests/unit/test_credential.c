/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/access/credential.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/proc.h"

#define SECOND 1000000000ull

static char token_path[] = "/tmp/kinf-token-XXXXXX";

static void write_token(const char *text)
{
	FILE *f = fopen(token_path, "w");

	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void make_file(void)
{
	int fd = mkstemp(token_path);

	cr_assert(fd >= 0 && close(fd) == 0);
}

static void remove_file(void)
{
	(void)unlink(token_path);
}

TestSuite(credential, .init = make_file, .fini = remove_file);

static int collect(void *arg, const char *line)
{
	buf_str(arg, line);
	buf_str(arg, "\n");
	return 0;
}

static void expect(struct credential *credential, uint64_t now, const char *wanted)
{
	struct buf lines = BUF_INIT;

	cr_assert_eq(credential_headers(credential, now, collect, &lines), 0);
	cr_assert_str_eq(buf_cstr(&lines), wanted);
	buf_release(&lines);
}

static void headers_are(const struct kubeconfig *config, const char *wanted)
{
	struct credential *credential = NULL;

	cr_assert_eq(credential_new(config, NULL, &credential), 0);
	expect(credential, proc_monotonic_ns(), wanted);
	credential_free(&credential);
}

Test(credential, bearer_and_basic_and_nothing)
{
	headers_are(&(struct kubeconfig){.token = (char *)"T"}, "Authorization: Bearer T\n");
	headers_are(&(struct kubeconfig){.username = (char *)"Aladdin",
			    .password = (char *)"open sesame"},
		"Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\n");
	headers_are(&(struct kubeconfig){.username = (char *)"ab"}, "Authorization: Basic YWI6\n");
	headers_are(&(struct kubeconfig){.username = (char *)"a", .password = (char *)"bc"},
		"Authorization: Basic YTpiYw==\n");
	headers_are(&(struct kubeconfig){.server = NULL}, "");
}

Test(credential, k22_impersonation_escapes_the_keys_of_extras)
{
	char *groups[] = {(char *)"g", (char *)"h"}, *values[] = {(char *)"v"};
	struct kubeconfig_extra extra = {
		.key = (char *)"a/b%", .values = values, .n_values = 1};
	struct kubeconfig config = {.impersonate = {.user = (char *)"bob", .uid = (char *)"7",
					    .groups = groups, .n_groups = 2, .extras = &extra,
					    .n_extras = 1}};

	headers_are(&config, "Impersonate-User: bob\nImpersonate-Uid: 7\nImpersonate-Group: g\n"
			     "Impersonate-Group: h\nImpersonate-Extra-a%2Fb%25: v\n");
}

Test(credential, k09_token_file_beats_token_and_is_read_again_after_a_minute)
{
	struct kubeconfig config = {.token = (char *)"old", .token_file = token_path};
	struct credential *credential = NULL;
	uint64_t now;

	write_token(" one\n");
	cr_assert_eq(credential_new(&config, NULL, &credential), 0);
	now = proc_monotonic_ns();
	write_token("two");
	expect(credential, now + 40 * SECOND, "Authorization: Bearer one\n");
	expect(credential, now + 60 * SECOND, "Authorization: Bearer two\n");
	write_token("three");
	expect(credential, now + 70 * SECOND, "Authorization: Bearer two\n");
	credential_free(&credential);
}

Test(credential, refused_token_is_read_again_at_once)
{
	struct kubeconfig config = {.token_file = token_path};
	struct credential *credential = NULL;

	write_token("one");
	cr_assert_eq(credential_new(&config, NULL, &credential), 0);
	write_token("two");
	credential_refused(credential, credential_version(credential));
	expect(credential, proc_monotonic_ns(), "Authorization: Bearer two\n");
	write_token("three");
	expect(credential, proc_monotonic_ns(), "Authorization: Bearer two\n");
	credential_free(&credential);
}

Test(credential, old_token_stays_while_the_file_is_bad)
{
	struct kubeconfig config = {.token_file = token_path};
	struct credential *credential = NULL;
	uint64_t now = proc_monotonic_ns();

	write_token("one");
	cr_assert_eq(credential_new(&config, NULL, &credential), 0);
	write_token("\n");
	expect(credential, now + 60 * SECOND, "Authorization: Bearer one\n");
	cr_assert_eq(unlink(token_path), 0);
	expect(credential, now + 120 * SECOND, "Authorization: Bearer one\n");
	write_token("two");
	expect(credential, now + 180 * SECOND, "Authorization: Bearer two\n");
	credential_free(&credential);
}

Test(credential, unusable_token_file_is_an_error_at_the_start)
{
	struct kubeconfig config = {.token_file = token_path};
	struct credential *credential = NULL;
	int r;

	write_token(" \n");
	r = credential_new(&config, NULL, &credential);
	cr_assert_eq(r, ERR_CONFIG);
	cr_assert(strstr(err_text(r), token_path));
	write_token("hush hush");
	r = credential_new(&config, NULL, &credential);
	cr_assert_eq(r, ERR_CONFIG);
	cr_assert_null(strstr(err_text(r), "hush"));
	cr_assert_eq(unlink(token_path), 0);
	r = credential_new(&config, NULL, &credential);
	cr_assert_eq(r, -ENOENT);
	cr_assert(strstr(err_text(r), token_path));
	cr_assert_null(credential);
}
