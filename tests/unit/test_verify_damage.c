/* SPDX-License-Identifier: Apache-2.0 */
/* Flipped bits and truncated files: verify and readers end by themselves, and return nothing
 * wrong. */
#include "common/daemon/faults.h"
#include "common/proc.h"
#include "store/read/snapshot.h"
#include "tests/unit/verify_rig.h"

static void ignore(void *arg, const char *sentence)
{
	(void)arg;
	(void)sentence;
}

/* Each returned object is whole and of its own name. */
static int read_everything(const char *path)
{
	struct snapshot_feed *feeds = NULL;
	struct index_walk *walk = NULL;
	struct index_entry entry;
	struct record record;
	struct bytes key;
	int wrong = 0;
	size_t n = 0;

	if (store_open(path, &checking, &store) == 0 && snapshot_open(store, &snapshot) == 0 &&
		snapshot_feeds(snapshot, "pods", &feeds, &n) == 0 && n == 1 &&
		index_names(snapshot_index(snapshot), snapshot_index_txn(snapshot),
			feeds[0].definition.id, BYTES_NONE, BYTES_NONE, &walk) == 0) {
		while (index_walk_next(walk, &key, &entry) == FOUND)
			if (snapshot_record(snapshot, feeds[0].definition.id, key, &entry,
				    &record) == FOUND &&
				(!bytes_equal(record.key, key) || record_check(&record) != 0))
				wrong = 1;
	}
	free(feeds);
	index_walk_close(&walk);
	snapshot_close(&snapshot);
	store_close(&store);
	return wrong;
}

/* In a child, because LMDB may touch unmapped memory: 0, or PROC_INTERNAL by the fault handler. */
static void survive(const char *path, const char *what, long at)
{
	int status;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child == 0) {
		struct verify_options options = {.deep = true, .fault = ignore};
		struct verify_report report;

		(void)alarm(60);
		(void)close(STDERR_FILENO);
		faults_catch("test", path);
		int wrong = read_everything(path);

		(void)verify_store(path, &options, &report);
		_exit(wrong);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) &&
			  (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == PROC_INTERNAL),
		"%s at %ld: status %x", what, at, status);
}

static int data_file(const char *path, const char *role)
{
	char name[512];

	(void)snprintf(name, sizeof(name), "%s/%s/gen-1/data.mdb", path, role);
	int fd = open(name, O_RDWR | O_CLOEXEC);

	cr_assert_geq(fd, 0, "%s", name);
	return fd;
}

static const char *closed_store(void)
{
	small_store_open(&s);
	live_through();
	small_store_close(&s);
	return scratch_path("store");
}

static void flip_bits(const char *role, long step)
{
	const char *path = closed_store();
	AUTO_FD int fd = data_file(path, role);
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	long end = st.st_size < 160 * 4096 ? (long)st.st_size : 160 * 4096;

	for (long at = 0; at < end; at += step) {
		unsigned char good, bad;

		cr_assert_eq(pread(fd, &good, 1, at), 1);
		bad = good ^ (unsigned char)(1u << (at % 8));
		cr_assert_eq(pwrite(fd, &bad, 1, at), 1);
		survive(path, role, at);
		cr_assert_eq(pwrite(fd, &good, 1, at), 1);
	}
	assert_good(path);
}

Test(verify_damage, flipped_bits_in_the_journal_never_crash_or_lie)
{
	flip_bits("journal", 3001);
}

Test(verify_damage, flipped_bits_in_the_index_never_crash_or_lie)
{
	flip_bits("index", 3001);
}

static void cut(const char *role)
{
	static const long sizes[] = {0, 1, 100, 4096, 8192, 3 * 4096, 10 * 4096, 20 * 4096 + 7};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const char *copy = scratch_path("cut");

		scratch_copy(scratch_path("store"), copy);
		int fd = data_file(copy, role);

		cr_assert_eq(ftruncate(fd, sizes[i]), 0);
		(void)close(fd);
		survive(copy, role, sizes[i]);
	}
}

Test(verify_damage, truncated_files_never_crash_or_lie)
{
	(void)closed_store();
	cut("journal");
	cut("index");
}
