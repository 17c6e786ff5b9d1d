/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/readers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"

#define READERS_MAGIC 0x52445253u

struct held {
	int32_t pid;
	bool warned;
	uint64_t txn;
	uint64_t since;
};

struct readers {
	uint32_t magic;
	size_t n, n_before;
	uint64_t now;
	struct stats *stats;
	struct held held[ENV_READERS_MAX];   /* in this check */
	struct held before[ENV_READERS_MAX]; /* in the last one */
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
	free(readers);
}

/* Notes a snapshot, and warns of it once when it has been held for too long. */
static int readers_note(void *arg, int32_t pid, uint64_t txn)
{
	struct readers *readers = arg;

	if (txn == 0 || pid == getpid() || readers->n == ENV_READERS_MAX)
		return 0;
	struct held *held = &readers->held[readers->n++];
	*held = (struct held){.pid = pid, .txn = txn, .since = readers->now};
	for (size_t i = 0; i < readers->n_before; i++)
		if (readers->before[i].pid == pid && readers->before[i].txn == txn)
			*held = readers->before[i];
	if (!held->warned && readers->now - held->since > READERS_HELD_NS) {
		held->warned = true;
		stats_add(readers->stats, STAT_OLD_SNAPSHOTS, 1);
		LOG(snapshot_old, .pid = held->pid, .age_seconds = readers->now - held->since);
	}
	return 0;
}

int readers_check(struct readers *readers, struct env *env, struct stats *stats, uint64_t now)
{
	CHECK_OBJ(readers, READERS_MAGIC);
	int cleared = env_clear_stale_readers(env);

	if (cleared < 0)
		return cleared;
	stats_add(stats, STAT_STALE_READERS, (uint64_t)cleared);
	memcpy(readers->before, readers->held, readers->n * sizeof(readers->held[0]));
	readers->n_before = readers->n;
	readers->n = 0;
	readers->now = now;
	readers->stats = stats;
	return env_each_reader(env, readers_note, readers);
}
