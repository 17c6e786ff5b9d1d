/* SPDX-License-Identifier: Apache-2.0 */
#include "print/redact.h"

#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/base64.h"

void redact_size_text(struct bytes value, bool base64, char text[REDACT_TEXT_SIZE])
{
	AUTO_FREE char *data = NULL;
	size_t size = value.size;

	if (base64)
		err_ignore(base64_decode(value, &data, &size), "the size of the text is shown");
	(void)snprintf(text, REDACT_TEXT_SIZE, "<%zu bytes>", size);
}

bool redact_hides(const char *path)
{
	static const char *const parts[] = {"data", "stringData"};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t size = strlen(parts[i]);

		if (strncmp(path, parts[i], size) == 0 && strchr(".[", path[size]))
			return true; /* strchr() finds the NUL also */
	}
	return !*path || strcmp(path, "metadata") == 0 ||
	       strcmp(path, "metadata.annotations") == 0 || strstr(path, REDACT_LAST_APPLIED);
}
