/* SPDX-License-Identifier: Apache-2.0 */
/* A directory with an exec plugin. A test says what it does. */
#ifndef UNIT_EXEC_RIG_H
#define UNIT_EXEC_RIG_H

#include <poll.h>

#include "common/proc.h"
#include "reflector/net/exec.h"
#include "tests/unit/unit.h"

#define SECOND 1000000000ull
#define V1     "client.authentication.k8s.io/v1"
#define PEM    "-----BEGIN X-----\\n"

/* ---- a directory with a plugin ------------------------------------------ */

static char dir[] = "/tmp/kinf-exec-XXXXXX";
static char command[64], runs[64];
static struct kubeconfig config;

static inline void set_up(void)
{
	cr_assert(mkdtemp(dir));
	(void)snprintf(command, sizeof(command), "%s/plugin", dir);
	(void)snprintf(runs, sizeof(runs), "%s/runs", dir);
	config = (struct kubeconfig){.server = (char *)"https://h",
		.tls = true,
		.exec = {.command = command, .api_version = (char *)V1}};
}

/* A killed plugin may still be creating `runs` after `rm` has read the directory. */
static inline void tear_down(void)
{
	char line[200];

	while (waitpid(-1, NULL, 0) > 0)
		;
	(void)snprintf(line, sizeof(line), "rm -r '%s'", dir);
	FILE *p = popen(line, "r");

	cr_assert(p && pclose(p) == 0);
}

/* Each run adds a byte to `runs`, then does BODY. */
static inline void plugin(const char *body)
{
	FILE *f = fopen(command, "we");

	cr_assert(f);
	fprintf(f, "#!/bin/sh\nprintf x >>'%s'\n%s\n", runs, body);
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(chmod(command, 0700), 0);
}

static inline void prints(const char *status)
{
	char body[1024];

	(void)snprintf(body, sizeof(body),
		"cat <<'E'\n{\"apiVersion\":\"" V1
		"\",\"kind\":\"ExecCredential\",\"status\":%s}\nE",
		status);
	plugin(body);
}

static inline long n_runs(void)
{
	struct stat st;

	return stat(runs, &st) ? 0 : (long)st.st_size;
}

static inline struct exec *open_exec(uint64_t limit_ns)
{
	struct exec *exec = NULL;

	cr_assert_eq(exec_new(&config, limit_ns, &exec), 0);
	return exec;
}

#define WALL (1900000000 * SECOND) /* 2030-03-17T17:46:40Z */

static inline int settle_at(struct exec *exec, uint64_t now, uint64_t wall)
{
	int r = AGAIN;

	for (int i = 0; i < 4000 && (r = exec_renew(exec, now, wall)) == AGAIN; i++)
		(void)poll(NULL, 0, 5);
	return r;
}

/* Steps at NOW until it is no longer AGAIN. */
static inline int settle(struct exec *exec, uint64_t now)
{
	return settle_at(exec, now, WALL);
}

static inline void shows(struct exec *exec, uint64_t now, const char *token)
{
	OK(settle(exec, now));
	cr_assert_str_eq(exec->credential.token, token);
}

/* A first run comes to ERR_CREDENTIALS with this in its sentence. */
static inline void fails(const char *a, const char *b)
{
	CLEANUP(exec_free) struct exec *exec = open_exec(30 * SECOND);
	int r = settle(exec, proc_monotonic_ns());

	cr_assert_eq(r, ERR_CREDENTIALS, "%d %s", r, err_text(r));
	cr_assert(strstr(err_text(r), a), "'%s' is not in: %s", a, err_text(r));
	cr_assert(strstr(err_text(r), b), "'%s' is not in: %s", b, err_text(r));
}

#endif
