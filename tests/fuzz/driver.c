/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target without libFuzzer on files and on all files of directories: seeds, and former
 * failures. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "tests/fuzz/fuzz.h"

static unsigned n_runs;

static int run_file(const char *path)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	FILE *file = fopen(path, "re");
	char block[4096];
	size_t n;

	if (!file) {
		perror(path);
		return 1;
	}
	while ((n = fread(block, 1, sizeof(block), file)) > 0)
		buf_put(&text, block, n);
	(void)fclose(file); /* only read */

	/* A copy of exactly this size: AddressSanitizer detects a read beyond it. */
	AUTO_FREE uint8_t *copy = malloc(text.size ? text.size : 1);

	if (!copy || buf_error(&text))
		return 1;
	if (text.size)
		memcpy(copy, text.data, text.size);
	(void)LLVMFuzzerTestOneInput(copy, text.size); /* always returns 0 */
	n_runs++;
	return 0;
}

static int run_path(const char *path)
{
	DIR *directory = opendir(path);
	int failed = 0;

	if (!directory)
		return run_file(path);
	for (struct dirent *entry; (entry = readdir(directory));) {
		AUTO_FREE char *name = NULL;

		if (*entry->d_name == '.')
			continue;
		if (asprintf(&name, "%s/%s", path, entry->d_name) < 0)
			name = NULL;
		failed |= name ? run_file(name) : 1;
	}
	(void)closedir(directory); /* only read */
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed |= run_path(argv[i]);
	printf("%u inputs\n", n_runs);
	return failed || !n_runs;
}
