/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/readers.h"

#include <signal.h>

#include "store/pins/pin_file.h"
#include "tests/unit/rig.h"

#define OTHER 65534

static struct rig rig;
static struct readers readers;
static pid_t holder;
static int to_holder[2], from_holder[2];

/* Another process: told to, it opens the store and holds a snapshot of the index. Made before the
 * rig opens anything, because handles do not survive fork (store/env/env.h). */
static void hold(const char *store)
{
	struct home_options options = {0};
	struct home *home = NULL;
	struct index *index = NULL;
	struct txn *txn = NULL;
	char byte;

	if (read(to_holder[0], &byte, 1) != 1 || home_open(store, &options, &home) != 0 ||
		index_open_read(home, &index) != 0 || txn_begin_read(index_env(index), &txn) != 0 ||
		write(from_holder[1], "y", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void setup(void)
{
	const char *store = scratch_path("store");

	cr_assert_eq(pipe(to_holder), 0);
	cr_assert_eq(pipe(from_holder), 0);
	holder = fork();
	if (holder == 0)
		hold(store);
	close(from_holder[1]);
	rig_open(&rig, "feeds: []\n");
	rig_settle(&rig);
}

static void end_holder(void)
{
	cr_assert_eq(kill(holder, SIGKILL), 0);
	cr_assert_eq(waitpid(holder, NULL, 0), holder);
	holder = 0;
}

static void teardown(void)
{
	if (holder)
		end_holder();
	rig_close(&rig);
}

static void let_it_hold(void)
{
	char byte;

	cr_assert_eq(write(to_holder[1], "g", 1), 1);
	cr_assert_eq(read(from_holder[0], &byte, 1), 1, "the other process has no snapshot");
}

static void check(uint64_t seconds)
{
	readers_check(&readers, pair_env(rig.pair), pair_journal_env(rig.pair), rig.p.stats,
		seconds * 1000000000);
}

/* ---- files of others ---------------------------------------------------- */

/* Makes a pin file as a member of the group could: PID, PROGRAM and each slot are free. Returns its
 * descriptor. */
static int forge(unsigned number, int32_t pid, const char *program)
{
	const uint64_t pin = 1u << 20;
	struct pin_head head = {.magic = PIN_FILE_MAGIC, .slots = 2, .pid = pid};
	uint8_t bytes[2 * PIN_SLOT_BYTES] = {0};
	struct pin_places places;
	char path[8192];
	struct stat st;

	cr_assert_eq(stat("/proc/self/ns/pid", &st), 0);
	head.pid_namespace = st.st_ino;
	(void)snprintf(head.program, sizeof(head.program), "%s", program);
	(void)snprintf(path, sizeof(path), "%s/index/gen-%u/data.mdb", scratch_path("store"),
		rig_generation(&rig));
	cr_assert_eq(stat(path, &st), 0);
	home_pin_places(rig.p.home, &places);
	(void)snprintf(path, sizeof(path), "%s/%016llx-%016x", places.path[0],
		(unsigned long long)st.st_ino, number);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	cr_assert_geq(fd, 0);
	cr_assert_eq(
		fcntl(fd, F_OFD_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}),
		0);
	if (geteuid() == 0)
		cr_assert_eq(fchown(fd, OTHER, OTHER), 0);
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + PIN_SLOT_BYTES, &pin, sizeof(pin));
	cr_assert_eq(pwrite(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
	return fd;
}

static int note_pid(void *arg, const struct pin_owner *reader)
{
	if (strcmp(reader->program, "forged") == 0)
		*(int32_t *)arg = reader->pid;
	return 0;
}

TestSuite(readers, .init = setup, .fini = teardown, .timeout = 60);

Test(readers, snapshot_held_for_a_minute_is_counted_once)
{
	let_it_hold();
	check(100);
	check(160);
	cr_assert_eq(stats_get(rig.p.stats, STAT_OLD_SNAPSHOTS), 0);
	check(161);
	check(162);
	cr_assert_eq(stats_get(rig.p.stats, STAT_OLD_SNAPSHOTS), 1);
	cr_assert_eq(stats_get(rig.p.stats, STAT_STALE_READERS), 0);
}

Test(readers, slot_of_a_killed_reader_is_cleared)
{
	let_it_hold();
	check(1);
	end_holder();
	check(2);
	cr_assert_eq(stats_get(rig.p.stats, STAT_STALE_READERS), 1);
	check(100);
	cr_assert_eq(stats_get(rig.p.stats, STAT_OLD_SNAPSHOTS), 0);
}

Test(readers, pid_of_another_users_process_is_not_believed)
{
	int32_t pid = -1;

	if (geteuid() != 0) {
		cr_assert_neq(access("/", W_OK), 0, "another uid takes root");
		return;
	}
	int fd = forge(1, getpid(), "forged");
	cr_assert_eq(env_each_reader(pair_env(rig.pair), note_pid, &pid), 0);
	cr_assert_eq(pid, 0);
	check(100);
	check(161);
	cr_assert_eq(stats_get(rig.p.stats, STAT_OLD_SNAPSHOTS), 1,
		"it does not pass for the processor's own");
	(void)close(fd);
}

Test(readers, snapshot_is_reported_whatever_its_process_calls_itself_from_time_to_time)
{
	char name[16];

	for (unsigned i = 0; i < 62; i++) {
		(void)snprintf(name, sizeof(name), "name %u", i);
		int fd = forge(i, (int32_t)i + 1, name);
		check(100 + i);
		(void)close(fd);
	}
	cr_assert_eq(stats_get(rig.p.stats, STAT_OLD_SNAPSHOTS), 1);
}
