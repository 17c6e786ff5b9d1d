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

static bool is_gone(const struct session *session)
{
	return feed_machine_phase(&session->feed) == FEED_GONE;
}

int session_is_void(struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	if (!is_gone(session) || session->dropping)
		return 0;
	int r = record_has_objects(&session->record);
	return r < 0 ? r : !r;
}

void session_drop_begin(struct session *session)
{
	struct record_feed *record = &session->record;

	if (!session->drop_gone || session->dropping || !is_gone(session) || !record->listed ||
		record_has_objects(record) <= 0)
		return;
	buf_reset(&session->list_rv);
	buf_bytes_put(&session->list_rv, buf_bytes(&record->rv));
	session->dropping = record_list_begin(record) >= 0; /* else the batch failed: the loop rewinds */
}

int session_drop_work(struct session *session)
{
	int r = record_list_end(&session->record, buf_bytes(&session->list_rv));

	if (r != 0)
		return r;
	session->dropping = false;
	record_phase(&session->record, FEED_GONE); /* an ended list says otherwise */
	LOG(feed_dropped, .feed = session->definition.name, .id = session->definition.id);
	return 0;
}
