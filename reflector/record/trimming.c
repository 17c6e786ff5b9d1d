/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/record/trimming.h"

#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"

#define TRIM_PAUSE (2 * SECOND_NS)
#define TRIM_SOON  (SECOND_NS / 10)
#define TRIM_SLICE 2000  /* records: a few milliseconds */
#define TRIM_LARGE 16000 /* more than a turn can add */

void trimming_begin(struct trimming *trimming, struct journal *journal, struct retention *retention)
{
	trimming->journal = journal;
	trimming->retention = retention;
	trimming->running = false;
	trimming->due_ns = trimming->soon_ns = 0;
	trimming->old_left = true; /* an earlier run may have left one */
}

bool trimming_has_too_much(const struct trimming *trimming)
{
	uint64_t most = trimming->most_bytes;

	return most && journal_history(trimming->journal) > most + most / 8;
}

bool trimming_is_due(const struct trimming *trimming)
{
	uint64_t now = proc_monotonic_ns();

	return !trimming->running &&
	       (now >= trimming->due_ns ||
		       (now >= trimming->soon_ns && trimming_has_too_much(trimming)));
}

bool trimming_is_idle(const struct trimming *trimming)
{
	return !trimming->running && !trimming_is_due(trimming);
}

void trimming_plan(struct trimming *trimming, uint64_t list_begin, bool pressed)
{
	int cleared = env_clean_pins(journal_env(trimming->journal)); /* of killed readers */

	trimming->due_ns = proc_monotonic_ns() + TRIM_PAUSE;
	trimming->soon_ns = proc_monotonic_ns() + TRIM_SOON;
	if (cleared > 0)
		stats_add(trimming->stats, STAT_STALE_READERS, (uint64_t)cleared);
	if (cleared < 0 && !trimming->readers_unknown)
		LOG(readers_unknown, .error = err_text(cleared));
	trimming->readers_unknown = cleared < 0;
	err_ignore(cleared,
		"no page is reused until the pins can be read, and readers and writer go on");
	/* The journal before this one goes when the index has moved over. */
	if (trimming->old_left && journal_remove_old(trimming->home) > 0)
		trimming->old_left = false;
	trimming->running =
		retention_goal(trimming->retention, list_begin, pressed, &trimming->goal) == 0;
}

void trimming_slice(struct trimming *trimming, bool quiet)
{
	uint64_t trimmed = 0;

	if (!trimming->running)
		return;
	int r = journal_trim_towards(trimming->journal, &trimming->goal,
		trimming_has_too_much(trimming) ? TRIM_LARGE : TRIM_SLICE, &trimmed);
	stats_add(trimming->stats, STAT_TRIMMED, trimmed);
	if (r == AGAIN)
		return;
	trimming->running = false;
	if (r < 0 && !quiet)
		LOG(journal_trim_failed, .error = err_text(r));
	if (r != ERR_CORRUPT)
		return;
	err_ignore(journal_note_damage(trimming->home), "the loop gives the journal up");
	trimming->due_ns = trimming->soon_ns = UINT64_MAX;
}
