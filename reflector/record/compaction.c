/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/record/compaction.h"

#include <errno.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "store/env/env.h"

#define SLICE ((uint64_t)2 << 20) /* bytes: some milliseconds */

/* Ends with the failure R, or with success. */
static void compaction_end(struct compaction *c, int r)
{
	bloat_end(&c->bloat, r, c->begun_ns, proc_monotonic_ns());
	if (r < 0 && (c->call || r != -ECANCELED))
		LOG(journal_compact_failed, .error = err_text(r));
	else if (r == 0)
		LOG(journal_compacted, .generation = journal_generation(c->journal));
	journal_copy_free(&c->copy); /* before the client hears of it */
	control_end(&c->call, r, r < 0 ? err_text(r) : "done");
	err_ignore(r, "the journal is as it was; the client and the log have the reason");
}

bool compaction_is_due(struct compaction *c, struct journal *journal)
{
	struct env_info info;
	int r = c->copy ? AGAIN : env_info(journal_env(journal), &info);

	err_ignore(r, "it is asked again in some seconds");
	return r == 0 && bloat_is_due(&c->bloat, &info, proc_monotonic_ns());
}

void compaction_begin(struct compaction *c, struct home *home, struct journal *journal,
	const struct journal_options *options, struct retention *retention,
	struct control_call **call)
{
	if (c->copy && !c->call && *call)
		compaction_cancel(c,
			"a command asks for another copy, which leaves out what was removed since");
	if (c->copy) {
		control_end(call, -EBUSY, "the journal is being compacted already");
		return;
	}
	c->journal = journal;
	c->call = TAKE(*call);
	c->begun_ns = proc_monotonic_ns();
	struct journal_copy_options how = {.to = home, .from = journal, .journal = *options};
	int r = retention_taken(retention, &how.taken);

	if (r == NOT_FOUND)
		control_note(
			c->call, "there is no index yet: the values of removed feeds are kept");
	if (r >= 0)
		r = journal_copy_new(&how, &c->copy);
	if (r < 0)
		compaction_end(c, r);
}

void compaction_slice(struct compaction *c, bool may_end)
{
	if (!c->copy)
		return;
	if (control_is_gone(c->call)) {
		compaction_cancel(c, "the client has gone");
		return;
	}
	int r = journal_copy_slice(c->copy, SLICE);
	control_progress(c->call, journal_copy_done(c->copy) >> 20,
		journal_copy_total(c->copy) >> 20, "MiB");
	c->is_complete = r == 0;
	if (r == 0 && may_end)
		r = journal_copy_end(c->copy, c->journal);
	else if (r == 0)
		r = AGAIN;
	if (r != AGAIN)
		compaction_end(c, r);
}

void compaction_cancel(struct compaction *c, const char *why)
{
	if (c->copy)
		compaction_end(c, err_say(-ECANCELED, "cancelled: %s", why));
}
