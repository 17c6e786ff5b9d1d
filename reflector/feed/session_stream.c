/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list that comes as a stream (watch-list, docs/protocol.md 7.5): initial events, a bookmark that
 * ends them, and then the watch, on one connection. Up to the bookmark it is a list like any other, in the
 * same bracket. While that is being finished, in slices, the stream may go on: what it brings
 * waits, up to a limit, behind which the list is finished at once.
 */
#include "reflector/feed/session_internal.h"

#include "common/check.h"
#include "common/err.h"
#include "reflector/record/object.h"

#define HELD_MAX (1u << 20)

/* The bookmark: nothing more is taken before the list is finished. */
static int end_initial(struct session *session, struct bytes bookmark)
{
	struct object_identity identity;
	struct feed_action action;

	if (object_identity(bookmark, &identity) < 0 || !identity.rv.size)
		return session_call_unreadable(session, "the bookmark that ends the initial events");
	session_step(session, (struct feed_input){.on = FEED_ON_INITIAL, .rv = identity.rv}, &action);
	if (action.keep) {
		session_perform(session, &action);
		return AGAIN;
	}
	session->has_next = true;
	session->next = action;
	return END;
}

int session_stream_event(struct session *session, const struct watch_event *event)
{
	int r;

	if (event->type == WATCH_BOOKMARK)
		return object_ends_initial(event->object) ? end_initial(session, event->object) : 0;
	r = record_initial(&session->record, event, session->feed.tolerant);
	return r == RECORD_UNREADABLE ? session_call_unreadable(session, "an initial event") : r;
}

int session_stream_hold(struct session *session, struct bytes bytes)
{
	int r = 0;

	buf_bytes_put(&session->held, bytes);
	if (buf_error(&session->held) < 0)
		return buf_error(&session->held);
	while (r >= 0 && session->finishing && session->held.size > HELD_MAX)
		r = session_work(session);
	return r < 0 ? r : 0;
}

void session_stream_go_on(struct session *session)
{
	struct buf held = session->held;

	session->held = BUF_INIT;
	if (session->call)
		http_set_quiet(session->call);
	int r = session_call_take(session, buf_bytes(&held));
	buf_release(&held);
	if (r == 0 && !session->over)
		return;
	session->over = false;
	http_cancel(&session->call);
	session_call_end(session, r, 200);
}
