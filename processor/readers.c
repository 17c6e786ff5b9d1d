/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/readers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"

#define READERS_MAGIC 0x52445253u

struct readers_held {
	const struct env *env;
	struct env_reader reader;
	bool warned;
	uint64_t since;
};

struct readers_list {
	struct readers_held *items;
	size_t n, room;
};

struct readers {
	uint32_t magic;
	struct readers_list held, before; /* in this check, in the last one */
	const struct env *env;
	uint64_t now;
	struct stats *stats;
	bool unreadable; /* logged */
};

int readers_new(struct readers **ret_readers)
{
	struct readers *readers = calloc(1, sizeof(*readers));
	if (!readers)
		return err_set(-ENOMEM, "watching readers");
	readers->magic = READERS_MAGIC;
	*ret_readers = readers;
	return 0;
}

void readers_free(struct readers **readers_pointer)
{
	struct readers *readers = TAKE(*readers_pointer);

	if (!readers)
		return;
	CHECK_OBJ(readers, READERS_MAGIC);
	readers->magic = 0;
	free(readers->held.items);
	free(readers->before.items);
	free(readers);
}

static bool readers_is_same(const struct readers_held *a, const struct readers_held *b)
{
	return a->env == b->env && a->reader.pid == b->reader.pid &&
	       a->reader.uid == b->reader.uid && a->reader.txn == b->reader.txn &&
	       strcmp(a->reader.program, b->reader.program) == 0;
}

/* Notes a snapshot, and warns of it once when it has been held for too long. */
static int readers_note(void *arg, const struct env_reader *reader)
{
	struct readers *readers = arg;
	struct readers_held held = {.env = readers->env, .reader = *reader, .since = readers->now};

	if (reader->txn == 0 || reader->pid == getpid())
		return 0;
	held.reader.pin_file = NULL;
	for (size_t i = 0; i < readers->before.n; i++)
		if (readers_is_same(&readers->before.items[i], &held))
			held = readers->before.items[i];
	if (!held.warned && readers->now - held.since > READERS_HELD_NS) {
		held.warned = true;
		stats_add(readers->stats, STAT_OLD_SNAPSHOTS, 1);
		LOG(snapshot_old, .program = reader->program, .pid = reader->pid,
			.uid = reader->uid, .age_seconds = readers->now - held.since,
			.pin_file = reader->pin_file);
	}
	return ARRAY_ADD(readers->held.items, readers->held.n, readers->held.room, held,
		"the list of snapshots");
}

int readers_check(struct readers *readers, struct env *index, struct env *journal,
	struct stats *stats, uint64_t now)
{
	struct env *envs[] = {index, journal};

	CHECK_OBJ(readers, READERS_MAGIC);
	int r = env_sweep_pins(index); /* those of the journal are in the same directories */
	if (r >= 0)
		stats_add(stats, STAT_STALE_READERS, (uint64_t)r);
	struct readers_list before = readers->before;
	readers->before = readers->held;
	readers->held = before;
	readers->held.n = 0;
	readers->now = now;
	readers->stats = stats;
	for (size_t i = 0; r >= 0 && i < 2; i++) {
		readers->env = envs[i];
		r = envs[i] ? env_each_reader(envs[i], readers_note, readers) : 0;
	}
	if (r < 0 && !readers->unreadable)
		LOG(readers_unknown, .error = err_text(r));
	readers->unreadable = r < 0;
	err_ignore(r, "no page is reused until the pins can be read, and readers and writer go on");
	return 0;
}
