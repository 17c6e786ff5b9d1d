/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/credential.h"

#include "common/buf.h"
#include "common/log.h"
#include "common/proc.h"
#include "tests/unit/unit.h"

#define SECOND 1000000000ull

static char token_path[] = "/tmp/kinf-token-XXXXXX";

static void write_token(const char *text)
{
	scratch_write(token_path, text);
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

static void expect(struct credential *credential, uint64_t now, const char *wanted)
{
	CLEANUP(buf_release) struct buf lines = BUF_INIT;

	cr_assert_eq(credential_headers(credential, now, &lines), 0);
	for (size_t i = 0; i < lines.size; i++)
		lines.data[i] = lines.data[i] ? lines.data[i] : '\n';
	cr_assert_str_eq(buf_cstr(&lines), wanted);
}

static FILE *kept;

static void log_is_kept(void)
{
	kept = tmpfile();
	cr_assert(kept && dup2(fileno(kept), STDERR_FILENO) == STDERR_FILENO);
	log_setup("test", LOG_WARNING, LOG_TEXT);
}

static int lines_kept(const char *part)
{
	char line[1000];
	int n = 0;

	rewind(kept);
	while (fgets(line, sizeof(line), kept))
		n += strstr(line, part) != NULL;
	return n;
}

static void headers_are(const struct kubeconfig *config, const char *wanted)
{
	CLEANUP(credential_free) struct credential *credential = NULL;

	cr_assert_eq(credential_new(config, NULL, &credential), 0);
	expect(credential, proc_monotonic_ns(), wanted);
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
	char *groups[] = {(char *)"g", (char *)"h"}, *extras[] = {(char *)"a/b%", (char *)"v"};
	struct kubeconfig config = {.impersonate = {.user = (char *)"bob",
					    .uid = (char *)"7",
					    .groups = {groups, 2},
					    .extras = {extras, 2}}};

	headers_are(&config, "Impersonate-User: bob\nImpersonate-Uid: 7\nImpersonate-Group: g\n"
			     "Impersonate-Group: h\nImpersonate-Extra-a%2Fb%25: v\n");
}

Test(credential, k09_c44_token_file_beats_token_and_is_read_again_after_a_minute)
{
	struct kubeconfig config = {.token = (char *)"old", .token_file = token_path};
	CLEANUP(credential_free) struct credential *credential = NULL;
	uint64_t now;

	write_token(" one\n");
	cr_assert_eq(credential_new(&config, NULL, &credential), 0);
	now = proc_monotonic_ns();
	write_token("two");
	expect(credential, now + 40 * SECOND, "Authorization: Bearer one\n");
	expect(credential, now + 60 * SECOND, "Authorization: Bearer two\n");
	write_token("three");
	expect(credential, now + 70 * SECOND, "Authorization: Bearer two\n");
}

Test(credential, refused_token_is_read_again_at_once)
{
	struct kubeconfig config = {.token_file = token_path};
	CLEANUP(credential_free) struct credential *credential = NULL;

	write_token("one");
	cr_assert_eq(credential_new(&config, NULL, &credential), 0);
	write_token("two");
	credential_refused(credential, credential_version(credential));
	expect(credential, proc_monotonic_ns(), "Authorization: Bearer two\n");
	write_token("three");
	expect(credential, proc_monotonic_ns(), "Authorization: Bearer two\n");
}

Test(credential, c45_old_token_stays_while_the_file_is_bad_and_that_is_said_once)
{
	struct kubeconfig config = {.token_file = token_path};
	CLEANUP(credential_free) struct credential *credential = NULL;
	uint64_t now = proc_monotonic_ns();

	log_is_kept();
	write_token("one");
	cr_assert_eq(credential_new(&config, NULL, &credential), 0);
	write_token("\n");
	expect(credential, now + 60 * SECOND, "Authorization: Bearer one\n");
	cr_assert_eq(unlink(token_path), 0);
	expect(credential, now + 120 * SECOND, "Authorization: Bearer one\n");
	write_token("two");
	expect(credential, now + 180 * SECOND, "Authorization: Bearer two\n");
	cr_assert_eq(lines_kept(" warning credential_unreadable "), 1);
	cr_assert_eq(unlink(token_path), 0);
	expect(credential, now + 240 * SECOND, "Authorization: Bearer two\n");
	cr_assert_eq(lines_kept(" warning credential_unreadable "), 2);
	cr_assert_eq(lines_kept("is empty"), 1, "it says why");
	cr_assert_eq(lines_kept("No such file"), 1, "it says why");
}

/* As kubelet does it: another file under the same name. */
Test(credential, c44_token_of_a_link_that_moved_is_read)
{
	char link[] = "/tmp/kinf-link-XXXXXX";
	struct kubeconfig config = {.token_file = link};
	CLEANUP(credential_free) struct credential *credential = NULL;
	uint64_t now = proc_monotonic_ns();

	cr_assert(close(mkstemp(link)) == 0 && unlink(link) == 0);
	write_token("one");
	cr_assert_eq(symlink(token_path, link), 0);
	cr_assert_eq(credential_new(&config, NULL, &credential), 0);
	char next[] = "/tmp/kinf-next-XXXXXX";
	int fd = mkstemp(next);
	cr_assert(write(fd, "two", 3) == 3 && close(fd) == 0);
	cr_assert(unlink(link) == 0 && symlink(next, link) == 0);
	expect(credential, now + 60 * SECOND, "Authorization: Bearer two\n");
	cr_assert(unlink(link) == 0 && unlink(next) == 0);
}

Test(credential, unusable_token_file_is_an_error_at_the_start)
{
	struct kubeconfig config = {.token_file = token_path};
	struct credential *credential = NULL;
	int r;

	write_token(" \n");
	r = credential_new(&config, NULL, &credential);
	cr_assert_eq(r, -ENODATA);
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

Test(credential, token_stands_in_for_a_token_file_that_is_not_there_yet)
{
	struct kubeconfig config = {.token = (char *)"old", .token_file = token_path};
	CLEANUP(credential_free) struct credential *credential = NULL;

	log_is_kept();
	cr_assert_eq(unlink(token_path), 0);
	cr_assert_eq(credential_new(&config, NULL, &credential), 0);
	uint64_t now = proc_monotonic_ns();
	expect(credential, now, "Authorization: Bearer old\n");
	expect(credential, now + 60 * SECOND, "Authorization: Bearer old\n");
	cr_assert_eq(lines_kept(" warning credential_unreadable "), 1);
	write_token("new");
	expect(credential, now + 120 * SECOND, "Authorization: Bearer new\n");
}
