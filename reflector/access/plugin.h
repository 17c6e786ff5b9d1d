/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of an exec plugin: a process whose output is collected without waiting for it.
 *
 *	plugin_start(exec, info, &plugin);
 *	while ((r = plugin_step(plugin)) == AGAIN)
 *		poll plugin_fd(plugin) for POLLIN, for at most PLUGIN_POLL_MS;
 *	if (!r) read plugin_output(plugin);
 *	plugin_free(&plugin);
 *
 * Its standard input is empty, its standard error ours, as under kubectl; it gets no other descriptor
 * of ours, a process group of its own, and our environment with the configuration's variables and
 * KUBERNETES_EXEC_INFO over it, without what our supervisor tells us. Ours is the only kind of child
 * that a reflector has.
 */
#ifndef REFLECTOR_PLUGIN_H
#define REFLECTOR_PLUGIN_H

#include "common/bytes.h"
#include "reflector/access/kubeconfig.h"

#define PLUGIN_POLL_MS 20

struct plugin;

/* INFO: the value of KUBERNETES_EXEC_INFO. Arguments are borrowed for the call only. 0;
 * ERR_CREDENTIALS when it can't be started, with what to do about it; -ENOMEM. */
int plugin_start(const struct kubeconfig_exec *exec, const char *info, struct plugin **ret_plugin);

/* Kills what still runs, and what it started. */
void plugin_free(struct plugin **plugin);

/* Readable when there is something to do; -1: look again after PLUGIN_POLL_MS. */
int plugin_fd(const struct plugin *plugin);

/* Takes what came. AGAIN: it runs; 0: it ended well; ERR_CREDENTIALS: it did not, or printed more than
 * a megabyte. */
int plugin_step(struct plugin *plugin);

/* What it printed: until plugin_free(), which wipes it. */
struct bytes plugin_output(const struct plugin *plugin);

#endif
