/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/config_rig.h"

Test(config, what_is_fixed_is_named_and_kept)
{
	struct config *running = parse("store: /a\nruntimeDir: /r\ncluster: {context: prod}\n"
				       "retention: {time: 1m}\n");
	CLEANUP(config_free)
	struct config *config = parse("store: /b\nruntimeDir: /s\ndurability: disk\ngroup: g\n"
				      "mapSize: 1GiB\ncluster: {kubeconfig: /k}\n"
				      "retention: {time: 2m}\n");
	char keys[CONFIG_KEYS_SIZE];

	cr_assert(config_needs_restart(running, config, CONFIG_REFLECTOR, keys));
	cr_assert_str_eq(keys, "cluster.kubeconfig, cluster.context, store, runtimeDir, "
			       "durability, mapSize, group");
	cr_assert(config_needs_restart(running, config, CONFIG_PROCESSOR, keys));
	cr_assert_str_eq(keys, "store, runtimeDir, mapSize, group");
	cr_assert(config_needs_restart(running, config, CONFIG_RUN, keys));
	cr_assert_str_eq(keys, "store, runtimeDir");
	config_keep_fixed(config, running);
	config_free(&running);
	cr_assert_str_eq(config->store, "/a");
	cr_assert_str_eq(config->context, "prod");
	cr_assert_null(config->kubeconfig);
	cr_assert_null(config->group);
	cr_assert(!config->durable);
	cr_assert_eq(config->map_bytes, (uint64_t)64 << 30);
	cr_assert_eq(config->retention_ns, (uint64_t)120 * 1000000000, "this one may change");
}

Test(config, kinf_run_starts_kinf_serve_only_when_it_starts)
{
	struct config *running = parse("store: /a\n"), *config = parse("store: /a\nserve: {}\n");
	char keys[CONFIG_KEYS_SIZE];

	cr_assert(config_needs_restart(running, config, CONFIG_RUN, keys));
	cr_assert_str_eq(keys, "serve");
	cr_assert(!config_needs_restart(running, config, CONFIG_DAEMONS, keys));
	config_keep_fixed(config, running);
	cr_assert(!config->serve.enabled);
	config_free(&running);
	config_free(&config);
}
