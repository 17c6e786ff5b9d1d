/* SPDX-License-Identifier: Apache-2.0 */
/* The options that several programs share. */
#include "common/config/config.h"

#include <string.h>

#include <stddef.h>

#define AT(field) offsetof(struct config_flags, field)

static const struct option_spec common[] = {
	{0, "store", OPTION_TEXT, AT(store), "DIR", "the store (default $KINF_STORE, then the file's)"},
	{0, "runtime-dir", OPTION_TEXT, AT(runtime_dir), "DIR",
		"rings and status pages (default $KINF_RUNTIME_DIR, then the file's)"},
	{0, "config", OPTION_TEXT, AT(file), "FILE",
		"default $KINF_CONFIG, ./kinf.yaml, /etc/kinf/kinf.yaml"},
	{'v', "verbose", OPTION_COUNT, AT(verbose), NULL, "say more; twice: even more"},
	{0, "log-format", OPTION_TEXT, AT(log_format), "FORMAT", "text or json"},
};

static const struct option_spec running[] = {
	{0, "kubeconfig", OPTION_TEXT, AT(kubeconfig), "FILE",
		"default $KUBECONFIG, ~/.kube/config, in-cluster"},
	{0, "context", OPTION_TEXT, AT(context), "NAME", "context of the kubeconfig"},
	{0, "watch", OPTION_TEXTS, AT(watch), "RESOURCE",
		"keep these objects: pods, deployments.apps, 'pods:web(-n web -l app=shop)', all, '*.apps'"},
	{0, "index", OPTION_TEXTS, AT(index), "FEED/NAME=PATH",
		"index a feed by a field: pods/node=spec.nodeName"},
	{0, "durability", OPTION_TEXT, AT(durability), "LEVEL",
		"process: survives any kill; disk: power cuts too"},
};

struct options_group config_common_options(struct config_flags *flags)
{
	return (struct options_group){"Common options", common, ARRAY_SIZE(common), flags};
}

struct options_group config_running_options(struct config_flags *flags)
{
	return (struct options_group){"What to keep", running, ARRAY_SIZE(running), flags};
}

void config_flags_release(struct config_flags *flags)
{
	option_texts_release(&flags->watch);
	option_texts_release(&flags->index);
}

enum log_format config_first_format(const struct config_flags *flags)
{
	bool json = flags->log_format && strcmp(flags->log_format, "json") == 0;

	return json ? LOG_JSON : LOG_TEXT;
}
