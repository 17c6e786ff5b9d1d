/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/readers.h"

#include <stdio.h>
#include <unistd.h>

#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"

/* the checks take at most this part of the processor's time */
#define SHARE 20u

static int readers_note(void *arg, const struct pin_owner *reader)
{
	struct readers_oldest *oldest = arg;

	if (reader->oldest == 0 || (reader->pid == getpid() && reader->uid == geteuid()) ||
		(oldest->reader.oldest && oldest->reader.oldest <= reader->oldest))
		return 0;
	oldest->reader = *reader;
	(void)snprintf(oldest->pin_file, sizeof(oldest->pin_file), "%s", reader->path);
	return 0;
}

/* Warns once of a snapshot that stays the oldest for too long. Only its state tells it from
 * another one: the other texts and numbers come from the process, which may change them. */
static void readers_warn(struct readers_oldest *known, const struct readers_oldest *found,
	struct stats *stats, uint64_t now)
{
	if (found->reader.oldest != known->reader.oldest) {
		*known = *found;
		known->since = now;
	}
	if (!known->reader.oldest || known->warned || now - known->since <= READERS_HELD_NS)
		return;
	known->warned = true;
	stats_add(stats, STAT_OLD_SNAPSHOTS, 1);
	LOG(snapshot_old, .program = found->reader.program, .pid = found->reader.pid,
		.uid = found->reader.uid, .age_seconds = now - known->since,
		.pin_file = found->pin_file);
}

void readers_check(struct readers *readers, struct env *index, struct env *journal,
	struct stats *stats, uint64_t now)
{
	if (now < readers->due)
		return;
	uint64_t begun = proc_monotonic_ns();
	int r = env_clean_pins(index); /* the journal's are in the same directories */
	if (r >= 0)
		stats_add(stats, STAT_STALE_READERS, (uint64_t)r);
	for (size_t i = 0; r >= 0 && i < 3; i++) {
		struct readers_oldest found = {.since = now};

		r = i == 0   ? env_each_reader(index, readers_note, &found)
		    : i == 1 ? env_each_reader(journal, readers_note, &found)
			     : env_each_replaced_reader(index, journal, readers_note, &found);
		if (r >= 0)
			readers_warn(&readers->oldest[i], &found, stats, now);
	}
	if (r < 0 && !readers->unreadable)
		LOG(readers_unknown, .error = err_text(r));
	readers->unreadable = r < 0;
	readers->due = now + (proc_monotonic_ns() - begun) * (SHARE - 1);
	err_ignore(r, "no page is reused until the pins can be read, and readers and writer go on");
}
