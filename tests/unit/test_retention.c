/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/record/retention.h"

#include <sys/syscall.h>
#include <time.h>

#include "reflector/record/trimming.h"
#include "store/pins/pin_file.h"
#include "store/pins/pin_page.h"
#include "store/read/cursor_file.h"
#include "tests/unit/rig.h"

#define MS   UINT64_C(1000000)
#define DAY  (24ull * 3600 * 1000 * MS)
#define HOUR 3600

/* This program's clocks, set by tests. */
static int64_t step_s, later_s;

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret_time);

	if (id == CLOCK_REALTIME)
		ret_time->tv_sec += step_s;
	if (id == CLOCK_MONOTONIC)
		ret_time->tv_sec += later_s;
	return r;
}

static struct {
	struct rig rig;
	struct retention *retention;
	uint64_t last; /* seq of the third change, the last in the index */
} world;

static void set_up(uint64_t time_ns)
{
	struct retention_options options = {.time_ns = time_ns, .cursor_ns = DAY};

	rig_open(&world.rig, "feeds: []\n");
	uint32_t feed = rig_add_feed(&world.rig, "things");
	rig_record(&world.rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	rig_record(&world.rig, feed, RECORD_ADDED, "a/b", "{}");
	rig_record(&world.rig, feed, RECORD_LIST_END, NULL, NULL);
	world.last = rig_record(&world.rig, feed, RECORD_MODIFIED, "a/b", "{}");
	rig_settle(&world.rig);
	pair_close(&world.rig.pair); /* a process opens an environment once */
	cr_assert_eq(
		retention_new(world.rig.p.home, world.rig.journal, &options, &world.retention), 0);
}

static uint64_t target(void)
{
	struct trim_goal goal = {0};

	OK(retention_goal(world.retention, UINT64_MAX, false, &goal));
	return goal.target;
}

static void tear_down(void)
{
	retention_free(&world.retention);
	rig_close(&world.rig);
}

TestSuite(retention, .fini = tear_down);

Test(retention, history_older_than_the_retention_time_may_be_trimmed)
{
	set_up(0);
	cr_assert_eq(target(), world.last);
	tear_down();
	set_up(DAY);
	cr_assert_eq(target(), 0);
}

/* "36500d" is how one says "for ever"; it is more than the clock has counted since 1970. */
Test(retention, a_retention_time_longer_than_the_clock_keeps_all_history)
{
	set_up(36500 * DAY);
	cr_assert_eq(target(), 0);
	tear_down();
	set_up(UINT64_MAX);
	cr_assert_eq(target(), 0);
}

Test(retention, a_clock_step_forward_trims_nothing)
{
	set_up(600 * 1000 * MS);
	step_s = 2 * HOUR;
	cr_assert_eq(target(), 0);
}

Test(retention, a_clock_step_back_does_not_stop_trimming)
{
	set_up(20 * MS);
	step_s = -2 * HOUR;
	(void)nanosleep(&(struct timespec){0, (long)(25 * MS)}, NULL);
	cr_assert_eq(target(), world.last);
}

/* A machine without a clock of its own begins in 1970, and learns the time when its network is
 * there: cursors written before looked decades old, were removed, and their followers lost
 * changes. */
Test(retention, a_clock_step_forward_takes_no_cursor_away)
{
	static const char name[] = "steady";
	struct follow_position position = {1, 2};
	struct trim_goal goal;

	set_up(0);
	const uint8_t *uuid = journal_uuid(world.rig.journal);
	int fd = home_cursors_fd(world.rig.p.home);
	cr_assert_eq(cursor_save(world.rig.p.home, name, uuid, &position, 1), 0);
	cr_assert_eq(target(), 2);
	step_s = 56LL * 365 * 24 * HOUR;
	cr_assert_eq(target(), 2);
	cr_assert_eq(faccessat(fd, name, F_OK, 0), 0, "the cursor was removed");
	/* Nor one written just before the step. */
	step_s = 0;
	cr_assert_eq(cursor_save(world.rig.p.home, name, uuid, &position, 1), 0);
	step_s = 56LL * 365 * 24 * HOUR;
	cr_assert_eq(target(), 2);
	cr_assert_eq(faccessat(fd, name, F_OK, 0), 0, "the cursor was removed");
	later_s += 25 * HOUR; /* a day is its time */
	cr_assert_eq(retention_goal(world.retention, UINT64_MAX, false, &goal), 0);
	cr_assert_lt(faccessat(fd, name, F_OK, 0), 0);
	cr_assert_eq(target(), world.last);
}

/* Takes the lock of a reader without room for a pin file; any member of the group can take and keep
 * it. */
static int hold_all(void)
{
	struct flock lock = {.l_type = F_RDLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)PIN_MARK_ALL,
		.l_len = 1};
	char name[64];

	(void)snprintf(name, sizeof(name), "store/journal/gen-%u/" PIN_PAGE_FILE,
		journal_generation(world.rig.journal));
	int fd = open(scratch_path(name), O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
	return fd;
}

static bool trimming_warns(struct trimming *trimming, int64_t seconds)
{
	later_s += seconds;
	trimming_plan(trimming, UINT64_MAX, false);
	return trimming->readers_unknown;
}

/* The journal grows meanwhile, and only its writer knows why. */
Test(retention, a_reader_without_a_name_that_keeps_the_pages_of_the_journal_is_reported)
{
	set_up(DAY);
	struct trimming trimming = {.home = world.rig.p.home, .stats = world.rig.p.stats};
	trimming_begin(&trimming, world.rig.journal, world.retention);
	cr_assert_not(trimming_warns(&trimming, 0));
	int fd = hold_all();
	cr_assert_not(trimming_warns(&trimming, 2));
	cr_assert_not(trimming_warns(&trimming, 57));
	cr_assert(trimming_warns(&trimming, 5));
	cr_assert_eq(close(fd), 0);
	cr_assert_not(trimming_warns(&trimming, 2));
}
