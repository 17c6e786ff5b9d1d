/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credentials of an exec plugin, and when the plugin runs (docs/protocol.md 15.4): when there
 * are no credentials, when they have expired, and after the server answered 401 to them; once,
 * however many requests wait for it. Shortly before they expire it runs while requests go on with
 * the old ones.
 *
 *	r = exec_renew(exec, now, wall);
 *		0: use exec->credential; AGAIN: ask later; negative: there are none
 *
 * After a failure, or credentials refused at once, the plugin runs again after 1, 2, 4 .. 15 s.
 * Until then requests get its error, or the refused credentials. Credentials are kept in memory
 * only.
 *
 * As under kubectl, the plugin's standard input is empty and its standard error is the reflector's.
 * It gets no other descriptor, a process group of its own, and the reflector's environment without
 * the variables of supervisor and service manager, plus the configured variables and
 * KUBERNETES_EXEC_INFO. Its output is collected without waiting. A reflector has no other children.
 */
#ifndef REFLECTOR_NET_EXEC_H
#define REFLECTOR_NET_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "reflector/net/exec_credential.h"

#define EXEC_POLL_MS  20
#define EXEC_LIMIT_NS (60ull * 1000 * 1000 * 1000) /* longest run */

/* Others read `credential` after exec_renew() returned 0, `version`, `plugin`, `awaited` and
 * `started_ns`. */
struct exec {
	uint32_t magic;
	const struct kubeconfig *config;
	uint64_t limit_ns;
	struct plugin *plugin; /* NULL: none runs */
	uint64_t started_ns;   /* monotonic; it may run for limit_ns */
	bool awaited;          /* by requests, which have no credentials */

	bool has; /* credential is set */
	bool refused;
	struct exec_credential credential;
	unsigned version;  /* changes with the credentials */
	uint64_t taken_ns; /* monotonic */
	uint64_t life_ns;  /* how long they were valid when they came */
	uint64_t renew_ns; /* wall clock: when to renew them */

	int failed; /* error of the last run; 0: it gave credentials */
	char sentence[ERR_TEXT_MAX];
	unsigned useless_runs; /* in a row */
	uint64_t pause_ns;     /* monotonic: no run before this */
};

/* Borrows CONFIG; does not run the plugin yet. A run takes at most LIMIT_NS. Returns: 0,
 * -ENOMEM. */
int exec_new(const struct kubeconfig *config, uint64_t limit_ns, struct exec **ret_exec);
/* Kills a running plugin. */
void exec_free(struct exec **exec);

/* Collects the plugin's output and starts the plugin, as needed at NOW_NS (monotonic) and WALL_NS
 * (credentials expire by wall clock). The caller calls it before each request, when its output is
 * readable, and every EXEC_POLL_MS while the plugin runs. Returns: 0 when there are credentials,
 * AGAIN while requests wait for the plugin, ERR_CREDENTIALS, -ENOMEM. */
int exec_renew(struct exec *exec, uint64_t now_ns, uint64_t wall_ns);

/* Returns: the descriptor of the plugin's output; -1: none runs, or it has closed it. */
int exec_fd(const struct exec *exec);

/* Takes note of a 401 to credentials of VERSION. */
void exec_refused(struct exec *exec, unsigned version);

#endif
