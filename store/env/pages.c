/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "store/env/env_page.h"
#include "store/env/generation_internal.h"

#define PAGE_COUNT 12u /* of a large value: how many pages it has */

int pages_open(int directory_fd, uint32_t generation, struct pages *ret_pages)
{
	static const char name[] = "data.mdb";
	AUTO_FD int folder = -1;
	struct stat st;
	int r = generation_open_folder(directory_fd, generation, &folder);

	if (r < 0)
		return r;
	AUTO_FD int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(-errno, "opening '%s'", name);
	if (!S_ISREG(st.st_mode))
		return err_say(ERR_CORRUPT, "'%s' is no file", name);
	struct pages pages = {.size = (uint64_t)st.st_size};
	if (pages.size) {
		void *bytes = mmap(NULL, pages.size, PROT_READ, MAP_SHARED, fd, 0);

		if (bytes == MAP_FAILED)
			return err_set(-errno, "mapping '%s'", name);
		pages.bytes = bytes;
	}
	/* No program but LMDB's writer changes the first meta page. */
	uint32_t size =
		pages.size >= META_PAGE_SIZE + 4 ? le32_get(pages.bytes + META_PAGE_SIZE) : 0;
	pages.page_size = page_size_is_possible(size) ? size : (uint32_t)sysconf(_SC_PAGESIZE);
	*ret_pages = pages;
	return 0;
}

void pages_close(struct pages *pages)
{
	if (pages->bytes)
		(void)munmap((void *)(uintptr_t)pages->bytes, pages->size);
	*pages = (struct pages){0};
}

/* Gives the rows of a leaf of any bytes; large values have pages of their own. */
static int pages_each_in_leaf(const uint8_t *page, size_t size, pages_row_fn *fn, void *arg)
{
	size_t end = le16_get(page + PAGE_LOWER);
	int r = 0;

	for (size_t at = PAGE_HEADER; at + 2 <= end && at + 2 <= size && r >= 0; at += 2) {
		const uint8_t *row = page_row(page, size, at);

		if (!row || row < page + PAGE_HEADER || le16_get(row + NODE_FLAGS) != 0)
			continue;
		struct bytes key = node_key(row);
		const uint8_t *value = row + NODE_HEADER + key.size;
		if (key.size && node_value_size(row) <= (size_t)(page + size - value))
			r = fn(arg, key, BYTES(value, node_value_size(row)));
	}
	return r < 0 ? r : 0;
}

int pages_each_row(const struct pages *pages, pages_row_fn *fn, void *arg)
{
	size_t size = pages->page_size;
	uint64_t n = pages->size / size;

	for (uint64_t i = 0, count; i < n; i += count) {
		const uint8_t *page = pages->bytes + i * size;
		unsigned kind = page_kind(page);
		int r = 0;

		count = 1;
		if (le64_get(page) != i) /* not the beginning of anything */
			continue;
		if (kind == PAGE_IS_LEAF)
			r = pages_each_in_leaf(page, size, fn, arg);
		uint64_t large = kind == PAGE_IS_LARGE ? le32_get(page + PAGE_COUNT) : 0;
		if (large && large <= n - i) {
			r = fn(arg, BYTES_NONE,
				BYTES(page + PAGE_HEADER, large * size - PAGE_HEADER));
			count = r == FOUND ? large : 1;
		}
		if (r < 0)
			return r;
	}
	return 0;
}
