/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what a feed does after its request has failed, or its watch has ended. */
#include "reflector/feed/machine_internal.h"

#include "common/check.h"

#define NO_STREAM        (30 * 60 * SECOND)
#define SHORT_WATCH      SECOND
#define PAGE_RETRIES_MAX 5
#define STRIKES_MAX      3
#define UNREADABLE_MAX   3
#define STREAMS_LOST_MAX 3

/* Passes unreadable objects over from the third attempt in a row that meets one, until a list meets
 * none: by then it is not the transport that spoils them. */
static void machine_unreadable(struct feed_machine *m, const struct feed_input *in)
{
	if (++m->unreadable >= UNREADABLE_MAX)
		m->tolerant = true;
	machine_back_off(m, in);
}

/* Lists for "" because the server refused the RV: at once, or after a pause if the refused request
 * was a page or asked for "" itself. */
static void machine_list_refused(struct feed_machine *m, const struct feed_input *in)
{
	bool was_page = m->continue_.size != 0, was_newest = m->newest || !m->rv.size;

	machine_restart_list(m);
	m->newest = true;
	m->unpaged |= was_page;
	if (was_page || was_newest)
		machine_back_off(m, in);
	else if (in->status->retry_after_ns)
		machine_wait(m, in->now_ns + in->status->retry_after_ns);
	else
		machine_list(m, in);
}

void machine_list_failed(struct feed_machine *m, const struct feed_input *in)
{
	switch (in->status->kind) {
	case FAILURE_EXPIRED:
	case FAILURE_RV_AHEAD:
		machine_list_refused(m, in);
		return;
	case FAILURE_REQUEST:
		machine_set_phase(m, FEED_ERROR);
		machine_restart_list(m);
		machine_wait_slowly(m, in);
		return;
	case FAILURE_NETWORK:
	case FAILURE_BUSY:
	case FAILURE_REFUSED:
		/* Ask for the same page: its token is still good, and recorded items cost no
		 * write. */
		if (++m->page_retries > PAGE_RETRIES_MAX)
			machine_restart_list(m);
		machine_back_off(m, in);
		return;
	case FAILURE_UNREADABLE:
		machine_restart_list(m);
		machine_unreadable(m, in);
		return;
	default:
		machine_restart_list(m);
		machine_back_off(m, in);
	}
}

/* Begins the stream again: it broke, ended or made no sense before its end mark. The events that
 * came are recorded inside the open list and cost the next attempt no write. */
static void machine_stream_lost(struct feed_machine *m, const struct feed_input *in)
{
	if (++m->lost_streams >= STREAMS_LOST_MAX) {
		m->no_stream_ns = in->now_ns + NO_STREAM;
		m->lost_streams = 0;
	}
	machine_back_off(m, in);
}

static void machine_stream_failed(struct feed_machine *m, const struct feed_input *in)
{
	switch (in->status->kind) {
	case FAILURE_EXPIRED:
	case FAILURE_RV_AHEAD:
		machine_list_refused(m, in);
		return;
	case FAILURE_REQUEST:
	case FAILURE_FORBIDDEN: /* perhaps only to watch: the list shows whether listing is allowed
				 */
		m->no_stream_ns = in->now_ns + NO_STREAM;
		m->lost_streams = 0;
		machine_list(m, in);
		return;
	case FAILURE_BUSY:
	case FAILURE_REFUSED:
		machine_back_off(m, in);
		return;
	case FAILURE_UNREADABLE:
		machine_unreadable(m, in);
		return;
	case FAILURE_NETWORK:
		if (!m->alive) {
			machine_back_off(m, in); /* says nothing about streams */
			return;
		}
		/* fall through */
	default:
		machine_stream_lost(m, in);
	}
}

/* Counts a watch that the server failed and that sent nothing; the third in a row lists, because
 * the RV may be what the server trips over. */
static void machine_strike(struct feed_machine *m, const struct feed_input *in)
{
	if (++m->strikes >= STRIKES_MAX) {
		m->strikes = 0;
		machine_restart_list(m);
	}
	machine_back_off(m, in);
}

static bool machine_was_short(const struct feed_machine *m, const struct feed_input *in)
{
	return !m->progress && in->now_ns - m->started_ns < SHORT_WATCH;
}

static void machine_watch_failed(struct feed_machine *m, const struct feed_input *in)
{
	switch (in->status->kind) {
	case FAILURE_EXPIRED:
	case FAILURE_RV_AHEAD:
		/* After an outage this is the server's first proper answer, so it resets the
		 * back-off; a server that goes on expiring what it has just listed earns growing
		 * pauses. */
		machine_restart_list(m);
		m->newest = true;
		if (!m->expired)
			m->failures = 0;
		m->expired = true;
		machine_back_off(m, in);
		return;
	case FAILURE_NETWORK:
		/* A stream that broke has ended; a stream that never began has failed. */
		if (m->alive && !machine_was_short(m, in))
			machine_watch_again(m, in);
		else
			machine_back_off(m, in);
		return;
	case FAILURE_BUSY:
	case FAILURE_REFUSED:
		machine_back_off(m, in);
		return;
	case FAILURE_UNREADABLE:
		machine_unreadable(m, in);
		return;
	default:
		machine_strike(m, in);
	}
}

void machine_on_failed(struct feed_machine *m, const struct feed_input *in)
{
	REQUIRE(in->status);
	if (m->state == FEED_AT_HELD)
		return;
	if (in->status->kind == FAILURE_ABSENT) {
		/* If the resource comes back it is another one, with a history of its own: list
		 * it. */
		machine_set_phase(m, FEED_GONE);
		m->resolved = false;
		machine_restart_list(m);
		machine_wait_slowly(m, in);
	} else if (m->state == FEED_AT_STREAMING) {
		machine_stream_failed(m, in);
	} else if (in->status->kind == FAILURE_FORBIDDEN) {
		machine_set_phase(m, FEED_FORBIDDEN);
		machine_wait_slowly(m, in);
	} else if (m->state == FEED_AT_LISTING || m->state == FEED_AT_FINISHING) {
		machine_list_failed(m, in);
	} else if (m->state == FEED_AT_WATCHING) {
		machine_watch_failed(m, in);
	} else if (m->state == FEED_AT_RESOLVING) {
		machine_back_off(m, in);
	}
}

void machine_on_ended(struct feed_machine *m, const struct feed_input *in)
{
	if (m->state == FEED_AT_STREAMING)
		machine_stream_lost(m, in);
	else if (m->state == FEED_AT_WATCHING && machine_was_short(m, in))
		machine_strike(m, in);
	else if (m->state == FEED_AT_WATCHING)
		machine_watch_again(m, in);
}
