/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credentials of an exec plugin, and when the plugin runs (docs/protocol.md 15.4): when there
 * are no credentials, when they have expired, and after the server answered 401 to them; once,
 * however many requests wait for it. Shortly before they expire it runs while requests go on with
 * the old ones.
 *
 *	r = exec_renew(exec, now, wall);
 *		0: use exec_credentials(); AGAIN: ask later; negative: there are none
 *
 * After a failure, or credentials refused at once, the plugin runs again after 1, 2, 4 .. 15 s.
 * Until then requests get its error, or the refused credentials. Credentials are kept in memory
 * only.
 */
#ifndef REFLECTOR_NET_EXEC_H
#define REFLECTOR_NET_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "reflector/net/exec_credential.h"

#define EXEC_LIMIT_NS (60ull * 1000 * 1000 * 1000) /* longest run */

struct exec;

/* Borrows CONFIG; does not run the plugin yet. A run takes at most LIMIT_NS. Returns: 0,
 * -ENOMEM. */
int exec_new(const struct kubeconfig *config, uint64_t limit_ns, struct exec **ret_exec);
/* Kills a running plugin. */
void exec_free(struct exec **exec);

/* Collects the plugin's output and starts the plugin, as needed at NOW_NS (monotonic) and WALL_NS
 * (credentials expire by wall clock). The caller calls it before each request, when exec_fd() is
 * readable, and every PLUGIN_POLL_MS while the plugin runs. Returns: 0 when there are credentials,
 * AGAIN while requests wait for the plugin, ERR_CREDENTIALS, -ENOMEM. */
int exec_renew(struct exec *exec, uint64_t now_ns, uint64_t wall_ns);

/* Returns: the credentials, after exec_renew() returned 0 and until its next call. */
const struct exec_credential *exec_credentials(const struct exec *exec);
/* Returns: the version of the credentials; it changes with them. */
unsigned exec_version(const struct exec *exec);

/* Takes note of a 401 to credentials of VERSION. */
void exec_refused(struct exec *exec, unsigned version);

bool exec_is_running(const struct exec *exec);
/* Returns whether requests wait for the plugin. RET_SINCE_NS: when it started (monotonic). */
bool exec_is_awaited(const struct exec *exec, uint64_t *ret_since_ns);
/* Returns: the descriptor to poll while the plugin runs; -1: none. */
int exec_fd(const struct exec *exec);

#endif
