/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/taken.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

#define TAKEN_MAGIC        0x314e4b5446464e4bull /* "KNFFTKN1" */
#define TAKEN_SIZE         4096
#define TAKEN_WRITER_MAGIC 0x74616b6eu
#define TAKEN_READER_MAGIC 0x74616b72u
/* the index is usually this close; a sleep costs about as much */
#define TAKEN_AWAKE_NS 30000

struct taken_page {
	_Atomic uint64_t magic; /* stored last with release; pairs with acquire in taken_attach() */
	_Atomic uint32_t wake;  /* futex word, + 1 at each publish */
	_Atomic uint32_t starts; /* of processors since the page was made */
	_Atomic uint64_t seq;
};
_Static_assert(offsetof(struct taken_page, wake) == 8, "taken_page.wake moved");
_Static_assert(offsetof(struct taken_page, seq) == 16, "taken_page.seq moved");

struct taken {
	uint32_t magic;
	struct taken_page *page;
};

struct taken_reader {
	uint32_t magic;
	uint32_t wake; /* as taken_look() has seen it */
	int directory_fd;
	struct stat file;
	const struct taken_page *page;
};

/* ---- the processor ------------------------------------------------------ */

static void taken_wake(struct taken_page *page)
{
	/* pairs with acquire in taken_look() and taken_wait(): a reader of the new word finds the
	 * commit */
	atomic_fetch_add_explicit(&page->wake, 1, memory_order_release);
	(void)syscall(SYS_futex, (void *)&page->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int taken_map(int directory_fd, unsigned mode, struct taken *taken)
{
	AUTO_FD int fd =
		openat(directory_fd, TAKEN_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);

	if (fd < 0 || fchmod(fd, mode) < 0)
		return err_set(-errno, "making '" TAKEN_FILE "'");
	/* A full runtime directory is an error here and not a SIGBUS later. */
	int r = posix_fallocate(fd, 0, TAKEN_SIZE);
	if (r)
		return err_set(-r, "allocating '" TAKEN_FILE "'");
	void *page = mmap(NULL, TAKEN_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return err_set(-errno, "mapping '" TAKEN_FILE "'");
	taken->page = page;
	return 0;
}

int taken_create(
	int directory_fd, unsigned mode, uint64_t seq, bool is_start, struct taken **ret_taken)
{
	CLEANUP(taken_close) struct taken *taken = calloc(1, sizeof(*taken));

	if (!taken)
		return err_set(-ENOMEM, "making '" TAKEN_FILE "'");
	taken->magic = TAKEN_WRITER_MAGIC;
	int r = taken_map(directory_fd, mode, taken);
	if (r < 0)
		return r;
	struct taken_page *page = taken->page;
	atomic_store_explicit(&page->seq, seq, memory_order_release);
	atomic_fetch_add_explicit(&page->starts, is_start, memory_order_relaxed);
	atomic_store_explicit(&page->magic, TAKEN_MAGIC, memory_order_release);
	taken_wake(page);
	*ret_taken = TAKE(taken);
	return 0;
}

void taken_close(struct taken **taken_pointer)
{
	struct taken *taken = TAKE(*taken_pointer);

	if (!taken)
		return;
	CHECK_OBJ(taken, TAKEN_WRITER_MAGIC);
	if (taken->page)
		(void)munmap(taken->page, TAKEN_SIZE); /* ours, whole: can't fail */
	taken->magic = 0;
	free(taken);
}

void taken_publish(struct taken *taken, uint64_t seq)
{
	CHECK_OBJ(taken, TAKEN_WRITER_MAGIC);
	atomic_store_explicit(&taken->page->seq, seq, memory_order_release);
	taken_wake(taken->page);
}

/* ---- readers ------------------------------------------------------------ */

int taken_attach(int directory_fd, struct taken_reader **ret_reader)
{
	CLEANUP(taken_detach) struct taken_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return err_set(-ENOMEM, "attaching to '" TAKEN_FILE "'");
	reader->magic = TAKEN_READER_MAGIC;
	reader->directory_fd = -1;
	AUTO_FD int fd = openat(directory_fd, TAKEN_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &reader->file) < 0)
		return err_set(-errno, "opening '" TAKEN_FILE "'");
	if (reader->file.st_size != TAKEN_SIZE)
		return err_set(-ENOENT, "'" TAKEN_FILE "' is being made");
	void *page = mmap(NULL, TAKEN_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return err_set(-errno, "mapping '" TAKEN_FILE "'");
	reader->page = page;
	/* pairs with release in taken_create() */
	if (atomic_load_explicit(&reader->page->magic, memory_order_acquire) != TAKEN_MAGIC)
		return err_set(-ENOENT, "'" TAKEN_FILE "' is being made");
	reader->directory_fd = proc_apart(fcntl(directory_fd, F_DUPFD_CLOEXEC, 0));
	if (reader->directory_fd < 0)
		return err_set(-errno, "opening '" TAKEN_FILE "'");
	taken_look(reader);
	*ret_reader = TAKE(reader);
	return 0;
}

void taken_detach(struct taken_reader **reader_pointer)
{
	struct taken_reader *reader = TAKE(*reader_pointer);

	if (!reader)
		return;
	CHECK_OBJ(reader, TAKEN_READER_MAGIC);
	if (reader->page)
		(void)munmap((void *)reader->page, TAKEN_SIZE); /* ours, whole: can't fail */
	cleanup_fd(&reader->directory_fd);
	reader->magic = 0;
	free(reader);
}

void taken_look(struct taken_reader *reader)
{
	CHECK_OBJ(reader, TAKEN_READER_MAGIC);
	reader->wake = atomic_load_explicit(&reader->page->wake, memory_order_acquire);
}

uint64_t taken_seq(const struct taken_reader *reader)
{
	CHECK_OBJ(reader, TAKEN_READER_MAGIC);
	return atomic_load_explicit(&reader->page->seq, memory_order_acquire);
}

uint32_t taken_starts(const struct taken_reader *reader)
{
	CHECK_OBJ(reader, TAKEN_READER_MAGIC);
	return atomic_load_explicit(&reader->page->starts, memory_order_relaxed);
}

int taken_wait(struct taken_reader *reader, int timeout_ms)
{
	CHECK_OBJ(reader, TAKEN_READER_MAGIC);
	const struct taken_page *page = reader->page;
	uint64_t until = proc_cpus() < 2 ? 0 : proc_monotonic_ns() + TAKEN_AWAKE_NS;

	do {
		if (atomic_load_explicit(&page->wake, memory_order_acquire) != reader->wake)
			return 0;
		proc_pause();
	} while (proc_monotonic_ns() < until);
	const struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
	/* Not FUTEX_PRIVATE: processes share the file. The kernel compares the word with the one
	 * seen, so no publish is slept through. */
	long r = syscall(
		SYS_futex, (const void *)&page->wake, FUTEX_WAIT, reader->wake, &timeout, NULL, 0);
	if (r == 0 || errno != ETIMEDOUT)
		return 0;
	struct stat st;
	bool is_there = fstatat(reader->directory_fd, TAKEN_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			st.st_dev == reader->file.st_dev && st.st_ino == reader->file.st_ino;
	return is_there ? AGAIN : GONE;
}
