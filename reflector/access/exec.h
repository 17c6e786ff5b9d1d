/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credentials of an exec plugin, and when it runs (docs/protocol.md 15.4): when there are none,
 * when they have expired, and after a 401 to them; once, however many requests wait for it. Shortly before
 * they expire it runs beside the requests, which go on with what there is.
 *
 *	r = exec_step(exec, now, wall);	0: exec_shown(); AGAIN: later; negative: none can be had
 *
 * A plugin that fails, or whose credentials are refused at once, is not run again before 1, 2, 4 .. 30 s
 * have passed; requests of the meantime get its error, or what was refused. Credentials are kept in
 * memory only.
 */
#ifndef REFLECTOR_EXEC_H
#define REFLECTOR_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "reflector/access/exec_credential.h"

#define EXEC_LIMIT_NS (60ull * 1000 * 1000 * 1000) /* that a run may take */

struct exec;

/* Borrows CONFIG. LIMIT_NS: longest run. Runs nothing yet. 0, -ENOMEM. */
int exec_new(const struct kubeconfig *config, uint64_t limit_ns, struct exec **ret_exec);
/* Kills a plugin that runs. */
void exec_free(struct exec **exec);

/* Somebody wants credentials at NOW_NS (monotonic), which is WALL_NS on the clock by which they expire;
 * or the plugin's descriptor or time has come. */
int exec_step(struct exec *exec, uint64_t now_ns, uint64_t wall_ns);

/* What the last exec_step() that answered 0 stands for; until the next. */
const struct exec_credential *exec_shown(const struct exec *exec);
/* Counts what was shown. */
unsigned exec_version(const struct exec *exec);

/* The server answered 401 to credentials of VERSION. */
void exec_refused(struct exec *exec, unsigned version);

bool exec_is_running(const struct exec *exec);
/* While it runs: what to poll, -1 for nothing. */
int exec_fd(const struct exec *exec);

#endif
