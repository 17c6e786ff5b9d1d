/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"
#include "reflector/record/batch.h"
#include "reflector/feeds/feeds_internal.h"

static int append_removed(struct feeds *feeds, struct retired_feed *retired)
{
	const struct feed_definition *d = session_definition(retired->session);
	struct record record = {.feed = d->id, .type = RECORD_FEED_REMOVED};
	uint64_t seq;

	LOG(feed_removed, .feed = d->name, .id = d->id);
	retired->removed = true;
	session_stop(retired->session); /* what its watch brings until the commit is nobody's any more */
	return recorder_append(feeds->shared.recorder, &record, &seq);
}

/* Every feed that is to stand for this name has been listed; so too when none is configured any more. */
static bool is_name_ready(const struct feeds *feeds, const char *stored)
{
	for (size_t i = 0; i < feeds->n_configured; i++) {
		const struct configured_feed *w = &feeds->configured[i];

		if (entry_is_named(stored, w->entry.name) &&
			(!w->session || !session_is_listed(w->session)))
			return false;
	}
	return true;
}

bool replace_has_old_of(const struct feeds *feeds, const char *name)
{
	for (size_t i = 0; i < feeds->n_retired; i++)
		if (!feeds->retired[i].removed &&
			entry_is_named(session_definition(feeds->retired[i].session)->name, name))
			return true;
	return false;
}

int replace_ready(struct feeds *feeds)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < feeds->n_retired; i++) {
		struct retired_feed *u = &feeds->retired[i];

		if (!u->removed && is_name_ready(feeds, session_definition(u->session)->name))
			r = append_removed(feeds, u);
	}
	for (size_t i = 0; r >= 0 && i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];
		const struct feed_definition *d = w->session ? session_definition(w->session) : NULL;

		if (!d || w->renamed || !strcmp(d->name, w->entry.name) ||
			replace_has_old_of(feeds, w->entry.name))
			continue;
		r = recorder_begin(feeds->shared.recorder);
		if (r >= 0)
			r = journal_rename_feed(feeds->journal, d->id, w->entry.name);
		if (r < 0)
			return recorder_fail(feeds->shared.recorder, r);
		recorder_changed(feeds->shared.recorder);
		w->renamed = true;
	}
	return r;
}

bool replace_is_due(const struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_retired; i++)
		if (!feeds->retired[i].removed &&
			is_name_ready(feeds, session_definition(feeds->retired[i].session)->name))
			return true;
	return false;
}
