/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whenGone: drop. What is stored of a resource that the server has no more goes as if an empty list had
 * come: readers see all or nothing of it, followers get a deletion for each object. The feed stays, and
 * stays `gone`.
 */
#include "common/check.h"
#include "common/err.h"
#include "common/log.h"
#include "reflector/feed/session_internal.h"

static bool is_gone(const struct runner *runner)
{
	return feed_phase(&runner->feed) == FEED_GONE;
}

int runner_is_void(struct runner *runner)
{
	CHECK_OBJ(runner, RUNNER_MAGIC);
	if (!is_gone(runner) || runner->dropping)
		return 0;
	int r = record_has_objects(&runner->record);
	return r < 0 ? r : !r;
}

void runner_drop_begin(struct runner *runner)
{
	struct record_feed *record = &runner->record;

	if (!runner->drop_gone || runner->dropping || !is_gone(runner) || !record->listed ||
		record_has_objects(record) <= 0)
		return;
	buf_reset(&runner->list_rv);
	buf_bytes_put(&runner->list_rv, buf_bytes(&record->rv));
	runner->dropping = record_list_begin(record) >= 0; /* else the batch failed: the loop rewinds */
}

int runner_drop_work(struct runner *runner)
{
	int r = record_list_end(&runner->record, buf_bytes(&runner->list_rv));

	if (r != 0)
		return r;
	runner->dropping = false;
	record_phase(&runner->record, FEED_GONE); /* an ended list says otherwise */
	log_event(LOG_NOTICE, "feed", "dropped", "feed=%s id=%u",
		log_quote(runner->definition.name), runner->definition.id);
	return 0;
}
