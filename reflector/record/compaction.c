/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/record/compaction.h"

#include <errno.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"

#define SLICE ((uint64_t)2 << 20) /* bytes: some milliseconds */

/* Ends with the failure R, or with success. */
static void compaction_end(struct compaction *c, int r)
{
	if (r < 0)
		LOG(journal_compact_failed, .error = err_text(r));
	else
		LOG(journal_compacted, .generation = journal_generation(c->journal));
	journal_copy_free(&c->copy); /* before the client hears of it */
	control_end(&c->call, r, r < 0 ? err_text(r) : "done");
	err_ignore(r, "the journal is as it was; the client and the log have the reason");
}

void compaction_begin(struct compaction *c, struct home *home, struct journal *journal,
	const struct journal_options *options, struct retention *retention, struct control_call **call)
{
	if (c->copy) {
		control_end(call, -EBUSY, "the journal is being compacted already");
		return;
	}
	*c = (struct compaction){.journal = journal, .call = TAKE(*call)};
	struct journal_copy_options how = {.to = home, .from = journal, .journal = *options};
	int r = retention_taken(retention, &how.taken);

	if (r == NOT_FOUND)
		control_note(c->call, "there is no index yet: the values of removed feeds are kept");
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
	control_progress(c->call, journal_copy_done(c->copy) >> 20, journal_copy_total(c->copy) >> 20, "MiB");
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
