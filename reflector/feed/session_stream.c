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
static int end_initial(struct runner *runner, struct bytes bookmark)
{
	struct object_identity identity;
	struct feed_action action;

	if (object_identity(bookmark, &identity) < 0 || !identity.rv.size)
		return runner_call_unreadable(runner, "the bookmark that ends the initial events");
	runner_step(runner, (struct feed_input){.on = FEED_ON_INITIAL, .rv = identity.rv}, &action);
	if (action.keep) {
		runner_perform(runner, &action);
		return AGAIN;
	}
	runner->has_next = true;
	runner->next = action;
	return END;
}

int runner_stream_event(struct runner *runner, const struct watch_event *event)
{
	int r;

	if (event->type == WATCH_BOOKMARK)
		return object_ends_initial(event->object) ? end_initial(runner, event->object) : 0;
	r = record_initial(&runner->record, event, feed_is_tolerant(&runner->feed));
	return r == RECORD_UNREADABLE ? runner_call_unreadable(runner, "an initial event") : r;
}

int runner_stream_hold(struct runner *runner, struct bytes bytes)
{
	int r = 0;

	buf_bytes_put(&runner->held, bytes);
	if (buf_error(&runner->held) < 0)
		return buf_error(&runner->held);
	while (r >= 0 && runner->finishing && runner->held.size > HELD_MAX)
		r = runner_work(runner);
	return r < 0 ? r : 0;
}

void runner_stream_go_on(struct runner *runner)
{
	struct buf held = runner->held;

	runner->held = BUF_INIT;
	if (runner->call)
		http_set_quiet(runner->call);
	int r = runner_call_take(runner, buf_bytes(&held));
	buf_release(&held);
	if (r == 0 && !runner->over)
		return;
	runner->over = false;
	http_cancel(&runner->call);
	runner_call_end(runner, r, 200);
}
