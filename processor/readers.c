/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/readers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"

#define READERS_MAGIC 0x52445253u
/* in LOGGED_NS: members of the group write any number of pin files */
#define LOGGED_MAX 16u
#define LOGGED_NS  60000000000ull
/* the checks take at most this part of the processor's time */
#define SHARE 20u

struct readers_held {
	size_t env; /* 0: the index, 1: the journal, 2: a replaced one */
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
	/* in this check, in the last one; in the order of readers_compare() */
	struct readers_list held, before;
	size_t env;
	uint64_t now;
	struct stats *stats;
	bool unreadable; /* logged */
	unsigned logged; /* since LOGGED_SINCE */
	uint64_t logged_since;
	uint64_t due; /* the next check */
};

static void readers_clear(struct readers_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free((char *)list->items[i].reader.pin_file);
	list->n = 0;
}

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
	readers_clear(&readers->held);
	readers_clear(&readers->before);
	free(readers->held.items);
	free(readers->before.items);
	free(readers);
}

/* Orders by the held state and the user. Other texts and numbers come from the process, which may
 * change them: they can't tell how long a user holds a state. */
static int readers_compare_states(const struct readers_held *a, const struct readers_held *b)
{
	if (a->env != b->env)
		return a->env < b->env ? -1 : 1;
	if (a->reader.txn != b->reader.txn)
		return a->reader.txn < b->reader.txn ? -1 : 1;
	return a->reader.uid == b->reader.uid ? 0 : a->reader.uid < b->reader.uid ? -1 : 1;
}

static int readers_compare(const void *one, const void *other)
{
	const struct readers_held *a = one, *b = other;
	int r = readers_compare_states(a, b);

	if (r == 0 && a->reader.pid != b->reader.pid)
		return a->reader.pid < b->reader.pid ? -1 : 1;
	return r ? r : strcmp(a->reader.program, b->reader.program);
}

static int readers_note(void *arg, const struct env_reader *reader)
{
	struct readers *readers = arg;
	struct readers_held held = {.env = readers->env, .reader = *reader, .since = readers->now};

	if (reader->txn == 0 || (reader->pid == getpid() && reader->uid == geteuid()))
		return 0;
	held.reader.pin_file = strdup(reader->pin_file ? reader->pin_file : "");
	if (!held.reader.pin_file)
		return err_set(-ENOMEM, "the list of snapshots");
	int r = ARRAY_ADD(readers->held.items, readers->held.n, readers->held.room, held,
		"the list of snapshots");
	if (r < 0)
		free((char *)held.reader.pin_file);
	return r;
}

/* Copies the last check's knowledge of the same snapshots. */
static void readers_remember(struct readers *readers)
{
	const struct readers_list *before = &readers->before;
	size_t state = 0, same = 0;

	for (size_t i = 0; i < readers->held.n; i++) {
		struct readers_held *held = &readers->held.items[i];

		while (state < before->n && readers_compare_states(&before->items[state], held) < 0)
			state++;
		if (state < before->n && readers_compare_states(&before->items[state], held) == 0)
			held->since = before->items[state].since;
		while (same < before->n && readers_compare(&before->items[same], held) < 0)
			same++;
		held->warned = same < before->n &&
			       readers_compare(&before->items[same], held) == 0 &&
			       before->items[same].warned;
	}
}

/* Warns once of each snapshot held for too long, the largest first. */
static void readers_warn(struct readers *readers)
{
	if (readers->now - readers->logged_since > LOGGED_NS) {
		readers->logged = 0;
		readers->logged_since = readers->now;
	}
	for (size_t i = 0; i < readers->held.n && readers->logged < LOGGED_MAX; i++) {
		struct readers_held *held = &readers->held.items[i];

		if (held->warned || readers->now - held->since <= READERS_HELD_NS)
			continue;
		held->warned = true;
		readers->logged++;
		stats_add(readers->stats, STAT_OLD_SNAPSHOTS, 1);
		LOG(snapshot_old, .program = held->reader.program, .pid = held->reader.pid,
			.uid = held->reader.uid, .age_seconds = readers->now - held->since,
			.pin_file = held->reader.pin_file);
	}
}

void readers_check(struct readers *readers, struct env *index, struct env *journal,
	struct stats *stats, uint64_t now)
{
	struct env *envs[] = {index, journal};

	CHECK_OBJ(readers, READERS_MAGIC);
	if (now < readers->due)
		return;
	uint64_t begun = proc_monotonic_ns();
	int r = env_clean_pins(index); /* the journal's are in the same directories */
	if (r >= 0)
		stats_add(stats, STAT_STALE_READERS, (uint64_t)r);
	struct readers_list before = readers->before;
	readers->before = readers->held;
	readers->held = before;
	readers_clear(&readers->held);
	readers->now = now;
	readers->stats = stats;
	for (size_t i = 0; r >= 0 && i < 2; i++) {
		readers->env = i;
		r = envs[i] ? env_each_reader(envs[i], readers_note, readers) : 0;
	}
	readers->env = 2;
	if (r >= 0 && index && journal)
		r = env_each_replaced_reader(index, journal, readers_note, readers);
	if (readers->held.n)
		qsort(readers->held.items, readers->held.n, sizeof(*readers->held.items),
			readers_compare);
	readers_remember(readers);
	readers_warn(readers);
	if (r < 0 && !readers->unreadable)
		LOG(readers_unknown, .error = err_text(r));
	readers->unreadable = r < 0;
	readers->due = now + (proc_monotonic_ns() - begun) * (SHARE - 1);
	err_ignore(r, "no page is reused until the pins can be read, and readers and writer go on");
}
