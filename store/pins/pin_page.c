/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pins/pin_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

#define PIN_PAGE_MAGIC 0x31736e69706e696bu /* "kinpins1" */

_Static_assert(sizeof(struct pin_page) == PIN_PAGE_BYTES, "one page");

static bool pin_page_is_of(const struct pin_page *page, uint64_t inode)
{
	return page->magic == PIN_PAGE_MAGIC && page->inode == inode;
}

bool pin_page_is_usable(const struct pin_page *page, uint64_t inode, uint64_t newest)
{
	return pin_page_is_of(page, inode) && page->committed <= newest && page->oldest <= newest &&
	       page->began <= newest + 1 && !page->given_up;
}

static int pin_page_map(int fd, int protection, struct pin_page **ret_page)
{
	void *memory = mmap(NULL, PIN_PAGE_BYTES, protection, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return err_set(-errno, "mapping " PIN_PAGE_FILE);
	*ret_page = memory;
	return 0;
}

/* Maps the page of FD, and takes FD. */
static int pin_page_map_write(int *fd, struct pin_page **ret_page, int *ret_fd)
{
	int r = pin_page_map(*fd, PROT_READ | PROT_WRITE, ret_page);

	if (r == 0)
		*ret_fd = TAKE_FD(*fd);
	return r;
}

int pin_page_open_write(const char *directory, uint64_t inode, uint64_t newest, unsigned mode,
	struct pin_page **ret_page, int *ret_fd)
{
	struct pin_page head = {.magic = PIN_PAGE_MAGIC, .inode = inode};
	char path[4096], temporary[4096], page[PIN_PAGE_BYTES] = {0};
	struct pin_page there;

	(void)snprintf(path, sizeof(path), "%s/" PIN_PAGE_FILE, directory);
	AUTO_FD int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno != ENOENT && errno != ELOOP)
		return err_set(-errno, "opening '%s'", path);
	if (fd >= 0 && pread(fd, &there, sizeof(there), 0) == (ssize_t)sizeof(there) &&
		pin_page_is_usable(&there, inode, newest) && fchmod(fd, mode) == 0)
		return pin_page_map_write(&fd, ret_page, ret_fd);
	/* Renamed when it is whole: a reader never maps less than a page. */
	cleanup_fd(&fd);
	/* Readers of an older page see another epoch here. */
	int r = proc_random(&head.epoch, sizeof(head.epoch));
	if (r < 0)
		return r;
	(void)snprintf(temporary, sizeof(temporary), "%s/." PIN_PAGE_FILE ".new", directory);
	memcpy(page, &head, sizeof(head));
	fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	errno = fd < 0 ? errno : ENOSPC; /* of a short write */
	if (fd < 0 || pwrite(fd, page, sizeof(page), 0) != (ssize_t)sizeof(page) ||
		fchmod(fd, mode) < 0 || rename(temporary, path) < 0)
		return err_set(-errno, "making '%s'", path);
	return pin_page_map_write(&fd, ret_page, ret_fd);
}

static int pin_page_find(
	int directory_fd, const char *path, uint64_t inode, struct pin_page *ret_page, int *ret_fd)
{
	struct pin_page page;

	AUTO_FD int fd = openat(directory_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? NOT_FOUND : err_set(-errno, "opening '%s'", path);
	ssize_t n = pread(fd, &page, sizeof(page), 0);
	if (n < 0)
		return err_set(-errno, "reading '%s'", path);
	if (n != (ssize_t)sizeof(page) || !pin_page_is_of(&page, inode))
		return NOT_FOUND;
	if (ret_page)
		*ret_page = page;
	if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return FOUND;
}

int pin_page_open_read(const char *directory, uint64_t inode, const struct pin_page **ret_page)
{
	AUTO_FD int fd = -1;
	struct pin_page *page;
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/" PIN_PAGE_FILE, directory);
	int r = pin_page_find(AT_FDCWD, path, inode, NULL, &fd);
	if (r != FOUND)
		return r;
	r = pin_page_map(fd, PROT_READ, &page);
	if (r < 0)
		return r;
	*ret_page = page;
	return FOUND;
}

int pin_page_probe(int directory_fd, uint64_t inode, struct pin_page *ret_page)
{
	int r = pin_page_find(directory_fd, PIN_PAGE_FILE, inode, ret_page, NULL);

	if (err_is_shortage(r))
		return r;
	err_ignore(r, "a page that can't be read is of no use");
	return r == FOUND ? FOUND : NOT_FOUND;
}

struct pin_place_id pin_place_identify(const char *path)
{
	struct stat st;

	if (!path[0] || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return (struct pin_place_id){0};
	return (struct pin_place_id){.device = st.st_dev, .inode = st.st_ino};
}

bool pin_page_scans(const struct pin_page *page, struct pin_place_id id)
{
	bool found = false;

	for (int i = 0; i < PIN_PLACES; i++)
		found |= __atomic_load_n(&page->scanned[i].inode, __ATOMIC_RELAXED) == id.inode &&
			 __atomic_load_n(&page->scanned[i].device, __ATOMIC_RELAXED) == id.device;
	return found && id.inode;
}

void pin_page_close(const struct pin_page **page)
{
	if (*page)
		(void)munmap((void *)*page, PIN_PAGE_BYTES); /* fails for no mapping of ours */
	*page = NULL;
}
