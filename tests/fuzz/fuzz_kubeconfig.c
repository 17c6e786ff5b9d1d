/* SPDX-License-Identifier: Apache-2.0 */
/* A kubeconfig: any bytes are refused with a sentence, or give a configuration to use and free. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/net/exec_credential.h"
#include "reflector/net/kubeconfig.h"
#include "tests/fuzz/fuzz.h"

/* Asserts that an exec plugin's cluster information is JSON. */
static void check(const struct kubeconfig *config)
{
	REQUIRE(config->server && config->context && config->name_space && config->source);
	REQUIRE(config->tls || (!config->token && !config->exec.command && !config->ca.data));
	REQUIRE(!config->username || (!config->token && !config->token_file));
	if (config->exec.command) {
		struct buf info = BUF_INIT;

		if (exec_credential_info(config, &info) == 0)
			REQUIRE(info.size && info.data[info.size - 1] == '}');
		buf_release(&info);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FD int fd = memfd_create("kubeconfig", MFD_CLOEXEC);
	CLEANUP(kubeconfig_free) struct kubeconfig *config = NULL;
	char path[64];

	REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

	int r = kubeconfig_load(path, NULL, &config);

	REQUIRE((r == 0) == (config != NULL));
	REQUIRE(r == 0 || *err_text(r));
	if (config)
		check(config);
	return 0;
}
