/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/exec.h"

#include <poll.h>

#include "common/proc.h"
#include "tests/unit/exec_rig.h"

TestSuite(exec, .init = set_up, .fini = tear_down, .timeout = 60);

/* ---- what it prints ----------------------------------------------------- */

Test(exec, k17_each_bad_answer_has_a_sentence_of_its_own)
{
	plugin("echo '{\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"kind\":"
	       "\"ExecCredential\",\"status\":{\"token\":\"T\"}}'");
	fails("exec plugin is configured to use API version " V1,
		"plugin returned version client.authentication.k8s.io/v1beta1");
	plugin("echo '{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\"}'");
	fails("exec plugin didn't return a status field", "");
	prints("{}");
	fails("exec plugin didn't return a token or cert/key pair", "");
	prints("{\"clientCertificateData\":\"" PEM "\"}");
	fails("exec plugin returned only certificate or key, not both", "");
	prints("{\"token\":\"T\",\"clientKeyData\":\"" PEM "\"}");
	fails("exec plugin returned only certificate or key, not both", "");
	plugin("exit 3");
	fails("exec: executable", "failed with exit code 3");
	plugin("kill -9 $$");
	fails("exec: executable", "ended by signal 9");
	cr_assert_eq(unlink(command), 0);
	config.exec.install_hint = (char *)"get it at the shop";
	fails("/plugin not found", "get it at the shop");
	config.exec.command = (char *)"kinf-no-such-plugin";
	fails("exec: executable kinf-no-such-plugin not found", "");
	config.exec.command = dir;
	fails("can't be run", "Permission denied");
}

Test(exec, nonsense_is_refused_and_nothing_of_it_is_in_the_sentence)
{
	static const char *const outputs[] = {"", "hush", "[\"hush\"]", "{\"kind\":\"hush\"}",
		"{\"apiVersion\":7,\"kind\":\"ExecCredential\",\"status\":{\"token\":\"hush\"}}"};
	static const char *const statuses[] = {"{\"token\":\"hush hush\"}",
		"{\"token\":\"hush\\n\"}", "{\"token\":\"hush\\u0000\"}", "{\"token\":7}",
		"\"hush\"", "{\"token\":\"hush\",\"expirationTimestamp\":\"hush\"}",
		"{\"clientCertificateData\":\"hush\",\"clientKeyData\":\"hush\"}"};
	char body[256];

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		(void)snprintf(body, sizeof(body), "echo '%s'", outputs[i]);
		plugin(body);
		fails("exec plugin", "");
		cr_assert_null(strstr(err_text(ERR_CREDENTIALS), "hush"), "%s", outputs[i]);
	}
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		prints(statuses[i]);
		fails("exec plugin", "");
		cr_assert_null(strstr(err_text(ERR_CREDENTIALS), "hush"), "%s", statuses[i]);
	}
}

/* ---- what stays in memory ----------------------------------------------- */

#define VEIL 0x55

/* Counts the copies of a text in our writable memory, freed or not. Leaves out the stack: saved
 * registers hold copies. VEILED: each byte of it XOR VEIL, so the searched text itself is
 * nowhere. */
__attribute__((no_sanitize("address"), noinline)) static size_t count_in(
	const uint8_t *from, const uint8_t *to, const char *veiled, size_t size)
{
	size_t count = 0;

	for (; from + size <= to; from++) {
		size_t i = 0;

		while (i < size && (uint8_t)(from[i] ^ VEIL) == (uint8_t)veiled[i])
			i++;
		count += i == size;
	}
	return count;
}

static size_t count_in_memory(const char *veiled, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], mode[5];
	unsigned long from, to;
	size_t count = 0;

	cr_assert(maps);
	while (fgets(line, sizeof(line), maps))
		/* ASan's shadow is larger than any map with text. */
		if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) == 3 && !strncmp(mode, "rw", 2) &&
			to - from < (256ul << 20) && !strstr(line, "[v") && !strstr(line, "[stack"))
			count += count_in((const uint8_t *)from, (const uint8_t *)to, veiled, size);
	(void)fclose(maps);
	return count;
}

/* In the text its first letter is an escape; several: buffers have to grow. */
static char *credential_text(const char *veiled, size_t size)
{
	char *text = calloc(1, 4096);
	size_t n = (size_t)snprintf(text, 4096,
		"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":{\"token\":\"");

	for (int k = 0; k < 40; k++) {
		n += (size_t)snprintf(text + n, 4096 - n, "\\u%04x", veiled[0] ^ VEIL);
		for (size_t i = 1; i < size; i++)
			text[n++] = (char)(veiled[i] ^ VEIL);
	}
	(void)snprintf(text + n, 4096 - n, "\"}}");
	return text;
}

Test(exec, nothing_of_a_token_stays_in_memory)
{
	static const char veiled[] = {'M' ^ VEIL, 'a' ^ VEIL, 'r' ^ VEIL, 'k' ^ VEIL, 'e' ^ VEIL,
		'r' ^ VEIL, '-' ^ VEIL, '0' ^ VEIL, '7' ^ VEIL, '1' ^ VEIL, '5' ^ VEIL, 'x' ^ VEIL};
	AUTO_FREE char *text = credential_text(veiled, sizeof(veiled));
	struct exec_credential credential;

	OK(exec_credential_read(bytes_str(text), V1, &credential));
	explicit_bzero(text, 4096);
	cr_assert_eq(
		count_in_memory(veiled, sizeof(veiled)), 40, "in the credential, and nowhere else");
	exec_credential_release(&credential);
	cr_assert_eq(count_in_memory(veiled, sizeof(veiled)), 0);
}

/* ---- what it is told ---------------------------------------------------- */

Test(exec, k20_the_cluster_is_told_with_its_ca_as_data)
{
	CLEANUP(buf_release) struct buf info = BUF_INIT;
	char ca[64];
	FILE *f;

	(void)snprintf(ca, sizeof(ca), "%s/ca.crt", dir);
	f = fopen(ca, "we");
	cr_assert(f && fputs("hello", f) >= 0 && fclose(f) == 0);
	cr_assert_eq(exec_credential_info(&config, &info), 0);
	cr_assert_str_eq(buf_cstr(&info), "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
					  "\",\"spec\":{\"interactive\":false}}");
	config.exec.provide_cluster_info = true;
	config.ca.file = ca;
	config.tls_server_name = (char *)"n";
	config.proxy_url = (char *)"http://p:1";
	buf_reset(&info);
	cr_assert_eq(exec_credential_info(&config, &info), 0);
	cr_assert_str_eq(buf_cstr(&info),
		"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
		"\",\"spec\":{\"cluster\":{\"server\":\"https://h\",\"tls-server-name\":\"n\","
		"\"certificate-authority-data\":\"aGVsbG8=\",\"proxy-url\":\"http://p:1\","
		"\"config\":null},\"interactive\":false}}");
	config.exec_config = (char *)"{\"a\":1}";
	buf_reset(&info);
	cr_assert_eq(exec_credential_info(&config, &info), 0);
	cr_assert(strstr(buf_cstr(&info), "\"config\":{\"a\":1}}"));
	config.ca.file = (char *)"/none";
	cr_assert_eq(exec_credential_info(&config, &info), -ENOENT);
}

Test(exec, environment_arguments_and_an_empty_input_are_given)
{
	char *variables[] = {
		(char *)"KINF_A=of the file", (char *)"KINF_C=first", (char *)"KINF_C=last"};
	char *args[] = {(char *)"one arg", (char *)""};
	CLEANUP(exec_free) struct exec *exec = open_exec(30 * SECOND);

	setenv("KINF_A", "ours", 1);
	setenv("KINF_B", "inherited", 1);
	setenv("NOTIFY_SOCKET", "/run/x", 1);
	config.exec.variables = (struct kubeconfig_texts){variables, 3};
	config.exec.args = (struct kubeconfig_texts){args, 2};
	plugin("t=\"$KINF_A,$KINF_B,$KINF_C,${NOTIFY_SOCKET-none},$#,$1,$(cat | wc -c),$(ls "
	       "/proc/self/fd | wc -l)\"\n"
	       "t=$(echo \"$t\" | tr ' ' _)\n"
	       "case $KUBERNETES_EXEC_INFO in *'\"interactive\":false'*) t=$t,told ;; esac\n"
	       "echo '{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":"
	       "{\"token\":\"'$t'\"}}'");
	/* 0, 1, 2 and the directory of ls. */
	shows(exec, proc_monotonic_ns(), "of_the_file,inherited,last,none,2,one_arg,0,4,told");
}

/* ---- when it runs ------------------------------------------------------- */

Test(exec, k18_without_expiry_it_runs_once_and_again_after_a_refusal)
{
	CLEANUP(exec_free) struct exec *exec = open_exec(30 * SECOND);
	uint64_t now = proc_monotonic_ns();
	unsigned version;

	prints("{\"token\":\"one\"}");
	shows(exec, now, "one");
	shows(exec, now + 86400 * SECOND, "one");
	cr_assert_eq(n_runs(), 1);
	version = exec->version;
	prints("{\"token\":\"two\"}");
	exec_refused(exec, version);
	shows(exec, now + 86400 * SECOND, "two");
	cr_assert_eq(n_runs(), 2);
	exec_refused(exec, version); /* a late answer to the first token */
	shows(exec, now + 86400 * SECOND, "two");
	cr_assert_eq(n_runs(), 2);
}

Test(exec, plugin_whose_tokens_are_refused_at_once_is_run_ever_more_slowly)
{
	CLEANUP(exec_free) struct exec *exec = open_exec(30 * SECOND);
	uint64_t now = proc_monotonic_ns();

	prints("{\"token\":\"bad\"}");
	shows(exec, now, "bad");
	exec_refused(exec, exec->version);
	shows(exec, now, "bad");
	cr_assert_eq(n_runs(), 2);
	exec_refused(exec, exec->version);
	shows(exec, now + SECOND / 2, "bad");
	cr_assert_eq(n_runs(), 2);
	shows(exec, now + SECOND + 1, "bad");
	cr_assert_eq(n_runs(), 3);
	exec_refused(exec, exec->version);
	shows(exec, now + 2 * SECOND, "bad");
	cr_assert_eq(n_runs(), 3);
}

Test(exec, failure_is_remembered_for_a_while_and_the_next_run_may_succeed)
{
	CLEANUP(exec_free) struct exec *exec = open_exec(30 * SECOND);
	uint64_t now = proc_monotonic_ns();

	plugin("exit 3");
	cr_assert_eq(settle(exec, now), ERR_CREDENTIALS);
	cr_assert_eq(settle(exec, now + SECOND / 2), ERR_CREDENTIALS);
	cr_assert(strstr(err_text(ERR_CREDENTIALS), "exit code 3"));
	cr_assert_eq(n_runs(), 1);
	prints("{\"token\":\"T\"}");
	shows(exec, now + SECOND, "T");
	cr_assert_eq(n_runs(), 2);
}

static void shows_at(struct exec *exec, uint64_t now, uint64_t wall, const char *token)
{
	OK(settle_at(exec, now, wall));
	cr_assert_str_eq(exec->credential.token, token);
}

Test(exec, k19_expired_credentials_are_replaced)
{
	CLEANUP(exec_free) struct exec *exec = open_exec(30 * SECOND);
	uint64_t now = proc_monotonic_ns();

	prints("{\"token\":\"one\",\"expirationTimestamp\":\"2030-03-17T17:46:45Z\"}");
	shows_at(exec, now, WALL, "one");
	shows_at(exec, now, WALL + 4 * SECOND, "one");
	cr_assert_eq(n_runs(), 1);
	prints("{\"token\":\"two\",\"expirationTimestamp\":\"2030-03-17T17:46:50Z\"}");
	cr_assert_eq(exec_renew(exec, now, WALL + 6 * SECOND), AGAIN);
	shows_at(exec, now, WALL + 6 * SECOND, "two");
	cr_assert_eq(n_runs(), 2);
	/* Short lives are nothing to be punished for. */
	prints("{\"token\":\"three\"}");
	shows_at(exec, now, WALL + 10 * SECOND, "three");
	cr_assert_eq(n_runs(), 3);
}

Test(exec, credentials_about_to_expire_are_renewed_beside_the_requests)
{
	CLEANUP(exec_free) struct exec *exec = open_exec(30 * SECOND);
	uint64_t now = proc_monotonic_ns(), soon = WALL + 3500 * SECOND;

	prints("{\"token\":\"one\",\"expirationTimestamp\":\"2030-03-17T18:46:00Z\"}"); /* 3560 s */
	shows_at(exec, now, WALL, "one");
	shows_at(exec, now, soon - SECOND, "one");
	cr_assert(!exec->plugin);
	prints("{\"token\":\"two\"}");
	cr_assert_eq(exec_renew(exec, now, soon), 0);
	cr_assert_str_eq(exec->credential.token, "one");
	cr_assert(exec->plugin);
	for (int i = 0; i < 2000 && exec->plugin; i++) {
		cr_assert_eq(exec_renew(exec, now, soon), 0);
		(void)poll(NULL, 0, 5);
	}
	cr_assert_str_eq(exec->credential.token, "two");
}

Test(exec, credentials_that_come_expired_are_shown_and_not_asked_for_without_pause)
{
	CLEANUP(exec_free) struct exec *exec = open_exec(30 * SECOND);
	uint64_t now = proc_monotonic_ns();

	prints("{\"token\":\"old\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"}");
	for (int i = 0; i < 2; i++)
		cr_assert_eq(settle(exec, now), 0);
	cr_assert_leq(n_runs(), 2);
	shows(exec, now + SECOND / 2, "old");
	cr_assert_leq(n_runs(), 2);
}

Test(exec, plugin_that_does_not_end_is_killed_with_its_children)
{
	CLEANUP(exec_free) struct exec *exec = open_exec(SECOND);
	uint64_t now = proc_monotonic_ns();
	char line[200];
	pid_t child = 0;
	FILE *f;

	(void)snprintf(line, sizeof(line), "sleep 1000 & echo $! >'%s/child'; wait", dir);
	plugin(line);
	cr_assert_eq(exec_renew(exec, now, WALL), AGAIN);
	(void)snprintf(line, sizeof(line), "%s/child", dir);
	for (int i = 0; i < 2000 && !child; i++) {
		(void)poll(NULL, 0, 5);
		f = fopen(line, "re");
		if (f && fscanf(f, "%d", &child) != 1)
			child = 0;
		if (f)
			cr_assert_eq(fclose(f), 0);
	}
	cr_assert_gt(child, 0);
	cr_assert_eq(exec_renew(exec, now, WALL), AGAIN);
	cr_assert_eq(exec_renew(exec, now + 2 * SECOND, WALL), ERR_CREDENTIALS);
	cr_assert(strstr(err_text(ERR_CREDENTIALS), "did not end within 1 s"));
	uint64_t ticks;

	for (int i = 0; i < 2000 && proc_start_ticks(child, &ticks) != -ESRCH; i++)
		(void)poll(NULL, 0, 5);
	cr_assert_eq(proc_start_ticks(child, &ticks), -ESRCH);
}

Test(exec, endless_output_is_cut_and_what_stays_in_the_background_is_not_waited_for)
{
	CLEANUP(exec_free) struct exec *exec = open_exec(30 * SECOND);
	char body[400];

	plugin("exec cat /dev/zero");
	cr_assert_eq(settle(exec, proc_monotonic_ns()), ERR_CREDENTIALS);
	cr_assert(strstr(err_text(ERR_CREDENTIALS), "more than 1048576 bytes"));
	exec_free(&exec);
	exec = open_exec(30 * SECOND);
	(void)snprintf(body, sizeof(body),
		"sleep 5 &\necho '{\"apiVersion\":\"" V1
		"\",\"kind\":\"ExecCredential\",\"status\":"
		"{\"token\":\"T\"}}'");
	plugin(body);
	uint64_t begin = proc_monotonic_ns();
	shows(exec, begin, "T");
	cr_assert_lt(proc_monotonic_ns() - begin, 4 * SECOND);
}
