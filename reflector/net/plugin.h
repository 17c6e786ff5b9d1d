/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of an exec plugin: a child process. Its output is collected without waiting.
 *
 *	plugin_start(exec, info, &plugin);
 *	while ((r = plugin_collect(plugin)) == AGAIN)
 *		poll plugin_fd(plugin) for POLLIN, for at most PLUGIN_POLL_MS;
 *	if (!r) read plugin_output(plugin);
 *	plugin_free(&plugin);
 *
 * As under kubectl, the plugin's standard input is empty and its standard error is the reflector's.
 * It gets no other descriptor, a process group of its own, and the reflector's environment without
 * the variables of supervisor and service manager, plus the configured variables and
 * KUBERNETES_EXEC_INFO. A reflector has no other children.
 */
#ifndef REFLECTOR_NET_PLUGIN_H
#define REFLECTOR_NET_PLUGIN_H

#include "common/bytes.h"
#include "reflector/net/kubeconfig.h"

#define PLUGIN_POLL_MS 20

struct plugin;

/* Starts the plugin with INFO as KUBERNETES_EXEC_INFO. Borrows its arguments for the call only.
 * Returns: 0, -ENOMEM, ERR_CREDENTIALS with the configured installHint if the program is
 * missing. */
int plugin_start(const struct kubeconfig_exec *exec, const char *info, struct plugin **ret_plugin);

/* Kills the plugin with its process group, if it still runs. */
void plugin_free(struct plugin **plugin);

/* Returns: the descriptor to poll for output; -1: call again after PLUGIN_POLL_MS. */
int plugin_fd(const struct plugin *plugin);

/* Reads the available output. Returns: AGAIN while the plugin runs; 0 after exit status 0;
 * ERR_CREDENTIALS after another end, or more than a megabyte of output. */
int plugin_collect(struct plugin *plugin);

/* Returns: the output. plugin_free() wipes it. */
struct bytes plugin_output(const struct plugin *plugin);

#endif
