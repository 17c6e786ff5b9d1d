/* SPDX-License-Identifier: Apache-2.0 */
/* What a feed does after a failure, of whatever it was doing. */
#include "reflector/feed/machine_internal.h"

#include "common/check.h"

#define SECOND 1000000000ull

#define SHORT_WATCH      SECOND
#define STRIKES_MAX      3
#define PAGE_RETRIES_MAX 5
#define UNREADABLE_MAX   3
#define STREAMS_LOST_MAX 3
#define NO_STREAM        (30 * 60 * SECOND)

static void on_forbidden(struct feed_machine *feed, const struct feed_input *in,
	struct feed_action *action)
{
	machine_set_phase(feed, FEED_FORBIDDEN, action);
	machine_wait_slowly(feed, in, action);
}

/* The resource is not there, or not any more. When it comes back it is another one, whose history
 * does not begin where ours ends: it is listed. */
static void on_absent(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	machine_set_phase(feed, FEED_GONE, action);
	feed->resolved = false;
	machine_restart_list(feed);
	machine_wait_slowly(feed, in, action);
}

/* Three attempts in a row met an object that we can't take in: not the transport's fault, it is so.
 * From now on such objects are passed over and reported, until a list meets none. */
static void on_unreadable(struct feed_machine *feed, const struct feed_input *in,
	struct feed_action *action)
{
	if (++feed->unreadable >= UNREADABLE_MAX)
		feed->tolerant = true;
	machine_back_off(feed, in, action);
}

/* The RV we asked for is of no use. Asking for "" instead is done at once; if that was asked already,
 * or was a page, a pause comes first. */
static void on_list_refused(struct feed_machine *feed, const struct feed_input *in,
	struct feed_action *action)
{
	bool was_page = feed->continue_.size != 0, was_newest = feed->newest || !feed->rv.size;

	machine_restart_list(feed);
	feed->newest = true;
	feed->unpaged |= was_page;
	if (was_page || was_newest)
		machine_back_off(feed, in, action);
	else if (in->status->retry_after_ns)
		machine_do_wait(feed, in->now_ns + in->status->retry_after_ns, action);
	else
		machine_do_list(feed, in, action);
}

void machine_list_failed(struct feed_machine *feed, const struct feed_input *in,
	struct feed_action *action)
{
	switch (in->status->kind) {
	case FAILURE_EXPIRED:
	case FAILURE_RV_AHEAD:
		on_list_refused(feed, in, action);
		return;
	case FAILURE_REQUEST:
		machine_set_phase(feed, FEED_ERROR, action);
		machine_restart_list(feed);
		machine_wait_slowly(feed, in, action);
		return;
	case FAILURE_NETWORK:
	case FAILURE_BUSY:
	case FAILURE_REFUSED:
		/* The same page again: its token is still good, and what it held is known. */
		if (++feed->page_retries > PAGE_RETRIES_MAX)
			machine_restart_list(feed);
		machine_back_off(feed, in, action);
		return;
	case FAILURE_UNREADABLE:
		machine_restart_list(feed);
		on_unreadable(feed, in, action);
		return;
	default:
		machine_restart_list(feed);
		machine_back_off(feed, in, action);
	}
}

/* This server, or what stands before it, has no use for streams: a list, and no more of them soon. */
static void give_up_streams(struct feed_machine *feed, const struct feed_input *in)
{
	feed->no_stream_ns = in->now_ns + NO_STREAM;
	feed->lost_streams = 0;
}

/* It broke, ended or made no sense before its initial events were all there. What came is stored,
 * inside the open list, and costs the next attempt no write. */
void machine_stream_lost(struct feed_machine *feed, const struct feed_input *in,
	struct feed_action *action)
{
	if (++feed->lost_streams >= STREAMS_LOST_MAX)
		give_up_streams(feed, in);
	machine_back_off(feed, in, action);
}

static void on_stream_failed(struct feed_machine *feed, const struct feed_input *in,
	struct feed_action *action)
{
	switch (in->status->kind) {
	case FAILURE_EXPIRED:
	case FAILURE_RV_AHEAD:
		on_list_refused(feed, in, action);
		return;
	case FAILURE_REQUEST:
	case FAILURE_FORBIDDEN: /* to watch, perhaps; whether to list too, a list tells */
		give_up_streams(feed, in);
		machine_do_list(feed, in, action);
		return;
	case FAILURE_BUSY:
	case FAILURE_REFUSED:
		machine_back_off(feed, in, action);
		return;
	case FAILURE_UNREADABLE:
		on_unreadable(feed, in, action);
		return;
	case FAILURE_NETWORK:
		if (!feed->alive) {
			machine_back_off(feed, in, action); /* says nothing about streams */
			return;
		}
		/* fall through */
	default:
		machine_stream_lost(feed, in, action);
	}
}

/* The server's fault and nothing gained: after some of that the RV is suspected. */
void machine_strike(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	if (++feed->strikes >= STRIKES_MAX) {
		feed->strikes = 0;
		machine_restart_list(feed);
	}
	machine_back_off(feed, in, action);
}

bool machine_was_short(const struct feed_machine *feed, const struct feed_input *in)
{
	return !feed->progress && in->now_ns - feed->started_ns < SHORT_WATCH;
}

/* A list is needed. After an outage that is the server's first proper answer, and the pauses that the
 * outage has earned are over; a server that goes on expiring what it has just listed earns new ones. */
static void on_watch_expired(struct feed_machine *feed, const struct feed_input *in,
	struct feed_action *action)
{
	machine_restart_list(feed);
	feed->newest = true;
	if (!feed->expired)
		feed->failures = 0;
	feed->expired = true;
	machine_back_off(feed, in, action);
}

static void on_watch_failed(struct feed_machine *feed, const struct feed_input *in,
	struct feed_action *action)
{
	switch (in->status->kind) {
	case FAILURE_EXPIRED:
	case FAILURE_RV_AHEAD:
		on_watch_expired(feed, in, action);
		return;
	case FAILURE_NETWORK:
		/* A stream that broke is an ended one; one that never was is a failure. */
		if (feed->alive && !machine_was_short(feed, in))
			machine_watch_again(feed, in, action);
		else
			machine_back_off(feed, in, action);
		return;
	case FAILURE_BUSY:
	case FAILURE_REFUSED:
		machine_back_off(feed, in, action);
		return;
	case FAILURE_UNREADABLE:
		on_unreadable(feed, in, action);
		return;
	default:
		machine_strike(feed, in, action);
	}
}

void machine_failed(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	REQUIRE(in->status);
	if (feed->state == FEED_AT_HELD)
		return;
	if (in->status->kind == FAILURE_ABSENT)
		on_absent(feed, in, action);
	else if (feed->state == FEED_AT_STREAMING)
		on_stream_failed(feed, in, action);
	else if (in->status->kind == FAILURE_FORBIDDEN)
		on_forbidden(feed, in, action);
	else if (feed->state == FEED_AT_LISTING || feed->state == FEED_AT_FINISHING)
		machine_list_failed(feed, in, action);
	else if (feed->state == FEED_AT_WATCHING)
		on_watch_failed(feed, in, action);
	else if (feed->state == FEED_AT_RESOLVING)
		machine_back_off(feed, in, action);
}
