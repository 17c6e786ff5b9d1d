/* SPDX-License-Identifier: Apache-2.0 */
/* The output of an exec plugin: any bytes are refused with a sentence, or give a token for a header
 * or a certificate. */
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/net/exec_credential.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(exec_credential_release) struct exec_credential credential = {NULL};
	int r = exec_credential_read(
		BYTES(data, size), "client.authentication.k8s.io/v1", &credential);

	REQUIRE(r == 0 || *err_text(r));
	if (r == 0) {
		REQUIRE(credential.token || credential.certificate);
		REQUIRE(!credential.certificate == !credential.key);
		REQUIRE(!credential.token || !strpbrk(credential.token, " \r\n"));
	}
	return 0;
}
