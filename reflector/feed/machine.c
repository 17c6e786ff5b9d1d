/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/machine.h"

#include "common/err.h"
#include "reflector/feed/machine_internal.h"
#include "reflector/record/object.h"

#define SECOND 1000000000ull

#define BACKOFF_HEALTH (120 * SECOND) /* this long without failure and it begins anew */

#define EMPTY_PAGES_MAX  1000
#define PAGES_MAX        1000000

static const char *const state_names[FEED_AT_MAX] = {
	[FEED_AT_START] = "start",
	[FEED_AT_RESOLVING] = "resolving",
	[FEED_AT_QUEUED] = "queued",
	[FEED_AT_LISTING] = "listing",
	[FEED_AT_STREAMING] = "streaming",
	[FEED_AT_FINISHING] = "finishing",
	[FEED_AT_WATCHING] = "watching",
	[FEED_AT_WAITING] = "waiting",
	[FEED_AT_HELD] = "held",
};

const char *feed_state_name(enum feed_state state)
{
	return state < FEED_AT_MAX ? state_names[state] : "?";
}

void feed_machine_init(struct feed_machine *feed, uint32_t page_size, const struct config_policy *policy)
{
	*feed = (struct feed_machine){.page_size = page_size, .policy = policy, .phase = FEED_LISTING};
	buf_init(&feed->rv, RV_MAX);
	buf_init(&feed->list_rv, RV_MAX);
	buf_init(&feed->continue_, 64u << 10);
}

void feed_machine_release(struct feed_machine *feed)
{
	buf_release(&feed->rv);
	buf_release(&feed->list_rv);
	buf_release(&feed->continue_);
}

/* False when it is too long, or memory is short: then BUF is as it was. */
static bool set_text(struct buf *buf, struct bytes text)
{
	size_t was = buf->size;

	if (text.size > was && !buf_grow(buf, text.size - was)) {
		buf->error = 0;
		return false;
	}
	if (text.size)
		memcpy(buf->data, text.data, text.size);
	buf_truncate(buf, text.size);
	return true;
}

void machine_set_phase(struct feed_machine *feed, enum feed_phase phase, struct feed_action *action)
{
	action->phase_changed |= feed->phase != phase;
	feed->phase = phase;
}

/* ---- actions ---- */

void machine_do_wait(struct feed_machine *feed, uint64_t until_ns, struct feed_action *action)
{
	feed->state = FEED_AT_WAITING;
	feed->until_ns = until_ns;
	action->what = FEED_DO_WAIT;
	action->until_ns = until_ns;
}

static uint64_t spread(uint64_t least, uint64_t random)
{
	return least + random % least;
}

/* Counts a failure and waits, longer each time; at least what the server asked for. As client-go
 * does, the pause is uniform in [d, 2d); where many fail at once, over no less than their span. */
void machine_back_off(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	uint64_t pause = feed->policy->backoff_min_ns, cap = feed->policy->backoff_max_ns;
	uint64_t asked = in->status ? in->status->retry_after_ns : 0;

	if (feed->healthy_ns && in->now_ns - feed->healthy_ns >= BACKOFF_HEALTH)
		feed->failures = 0;
	feed->healthy_ns = 0;
	for (uint32_t i = 0; i < feed->failures && pause < cap; i++)
		pause *= 2;
	feed->failures++;
	pause = pause < cap ? pause : cap;
	pause += in->random % (pause > in->span_ns ? pause : in->span_ns);
	machine_do_wait(feed, in->now_ns + (pause > asked ? pause : asked), action);
}

/* For what will not change soon. */
void machine_wait_slowly(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	uint64_t pause = spread(feed->policy->recheck_ns, in->random);
	uint64_t asked = in->status->retry_after_ns;

	feed->healthy_ns = 0;
	machine_do_wait(feed, in->now_ns + (pause > asked ? pause : asked), action);
}

static uint32_t watch_timeout_s(const struct feed_machine *feed, const struct feed_input *in)
{
	uint64_t least_s = (feed->policy->watch_ns + SECOND - 1) / SECOND;

	return (uint32_t)spread(least_s, in->random);
}

static void begin_request(struct feed_machine *feed, const struct feed_input *in, enum feed_state state)
{
	feed->state = state;
	feed->started_ns = in->now_ns;
	feed->alive = feed->progress = false;
}

static void do_watch(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	begin_request(feed, in, FEED_AT_WATCHING);
	action->what = FEED_DO_WATCH;
	action->rv = buf_cstr(&feed->rv);
	action->timeout_s = watch_timeout_s(feed, in);
}

/* Not older than what we have, or the newest there is, as for a list. */
static void do_stream(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	begin_request(feed, in, FEED_AT_STREAMING);
	action->what = FEED_DO_STREAM;
	action->first = true;
	action->rv = feed->newest ? "" : buf_cstr(&feed->rv);
	action->timeout_s = watch_timeout_s(feed, in);
}

static bool may_stream(const struct feed_machine *feed, const struct feed_input *in)
{
	return feed->policy->streaming_lists && in->now_ns >= feed->no_stream_ns &&
		feed->continue_.size == 0;
}

/* The watch that has ended is opened again: at once, unless many others are too. */
void machine_watch_again(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	if (in->span_ns)
		machine_do_wait(feed, in->now_ns + in->random % in->span_ns, action);
	else
		do_watch(feed, in, action);
}

/*
 * The RV to list at: "" (the newest there is) when nothing is known or what is known is of no use,
 * else "not older than what we have", which the server may answer from its cache. With a limit that
 * would mean exactly that RV (docs/protocol.md 4.3), so only a list for "" is paged.
 */
void machine_do_list(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	bool first = feed->continue_.size == 0;
	bool newest = feed->newest || feed->rv.size == 0;

	if (may_stream(feed, in)) {
		do_stream(feed, in, action);
		return;
	}
	begin_request(feed, in, FEED_AT_LISTING);
	action->what = FEED_DO_LIST;
	action->first = first;
	action->continue_ = buf_cstr(&feed->continue_);
	action->rv = newest || !first ? "" : buf_cstr(&feed->rv);
	action->limit = !first || (newest && !feed->unpaged) ? feed->page_size : 0;
	if (first)
		feed->pages = feed->empty_pages = 0;
}

void machine_restart_list(struct feed_machine *feed)
{
	feed->want_list = true;
	feed->page_retries = 0;
	buf_reset(&feed->continue_);
}

/* Whatever is to be done now that nothing hinders. */
static void go_on(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	if (!feed->resolved) {
		feed->state = FEED_AT_RESOLVING;
		action->what = FEED_DO_RESOLVE;
	} else if (feed->want_list) {
		feed->state = FEED_AT_QUEUED;
		action->what = FEED_DO_QUEUE;
	} else {
		do_watch(feed, in, action);
	}
}

/* The same for one of many that begin together; lists queue for their turn anyway. */
static void begin(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	if (in->span_ns && !feed->want_list)
		machine_do_wait(feed, in->now_ns + in->random % in->span_ns, action);
	else
		go_on(feed, in, action);
}

/* ---- success ---- */

static void on_alive(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	feed->alive = true;
	if (!feed->healthy_ns)
		feed->healthy_ns = in->now_ns;
	if (feed->phase != FEED_LISTING && feed->phase != FEED_SYNCED)
		machine_set_phase(feed, feed->listed ? FEED_SYNCED : FEED_LISTING, action);
}

static void fail_page(struct feed_machine *feed, const struct feed_input *in, const char *why,
	struct feed_action *action)
{
	struct status status;
	struct feed_input failed = *in;

	status_set(FAILURE_PROTOCOL, why, &status);
	failed.status = &status;
	machine_list_failed(feed, &failed, action);
}

/* Only a list for the newest state that is older than what we have proves another past. */
static bool is_another_past(const struct feed_machine *feed, struct bytes list_rv)
{
	return feed->newest && feed->rv.size &&
		rv_compare(list_rv, buf_bytes(&feed->rv)) == -1;
}

static void forget(struct feed_machine *feed, struct feed_action *action)
{
	feed->state = FEED_AT_HELD;
	action->what = FEED_DO_FORGET;
}

static void finish(struct feed_machine *feed, struct feed_action *action)
{
	feed->state = FEED_AT_FINISHING;
	action->what = FEED_DO_FINISH_LIST;
	action->rv = buf_cstr(&feed->list_rv);
}

/* The stream's initial events are all there. */
static void on_initial(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	on_alive(feed, in, action);
	if (is_another_past(feed, in->rv)) {
		forget(feed, action);
		return;
	}
	if (!set_text(&feed->list_rv, in->rv)) {
		fail_page(feed, in, "a resourceVersion of more than 1 kB", action);
		return;
	}
	feed->streamed = action->keep = true;
	feed->lost_streams = 0;
	finish(feed, action);
}

static void on_page(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	bool first = feed->continue_.size == 0;

	on_alive(feed, in, action);
	feed->page_retries = 0;
	feed->empty_pages = in->items ? 0 : feed->empty_pages + 1;
	if (first && is_another_past(feed, in->rv)) {
		forget(feed, action);
		return;
	}
	if (first && !set_text(&feed->list_rv, in->rv)) {
		fail_page(feed, in, "a resourceVersion of more than 1 kB", action);
		return;
	}
	if (!in->continue_.size) {
		feed->streamed = false;
		finish(feed, action);
		return;
	}
	if (bytes_equal(in->continue_, buf_bytes(&feed->continue_)) ||
		feed->empty_pages > EMPTY_PAGES_MAX || ++feed->pages > PAGES_MAX) {
		fail_page(feed, in, "the pages of the list do not come to an end", action);
		return;
	}
	if (!set_text(&feed->continue_, in->continue_)) {
		fail_page(feed, in, "a continue token of more than 64 kB", action);
		return;
	}
	machine_do_list(feed, in, action);
}

static void on_listed(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	(void)set_text(&feed->rv, buf_bytes(&feed->list_rv)); /* of the same limit */
	buf_reset(&feed->continue_);
	feed->want_list = feed->newest = feed->unpaged = false;
	feed->strikes = 0;
	if (!in->unreadable) {
		feed->tolerant = false;
		feed->unreadable = 0;
	}
	feed->listed = true;
	feed->phase = FEED_SYNCED; /* LIST_END says it */
	do_watch(feed, in, action);
	action->keep = feed->alive = feed->progress = feed->streamed;
}

/* The newest state is asked for, after a pause in which a server may come to its senses. */
static void on_doubted(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	machine_restart_list(feed);
	feed->newest = true;
	machine_do_wait(feed, in->now_ns + spread(feed->policy->hold_pause_ns, in->random), action);
}

static void on_event(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	on_alive(feed, in, action);
	feed->progress = true;
	feed->expired = false;
	feed->strikes = 0;
	if (in->on == FEED_ON_EVENT && !feed->tolerant)
		feed->unreadable = 0;
	if (in->on == FEED_ON_BOOKMARK && rv_compare(in->rv, buf_bytes(&feed->rv)) == -1) {
		/* The server is behind us: only a list can tell whether that is another past. */
		machine_restart_list(feed);
		feed->newest = true;
		machine_back_off(feed, in, action);
		return;
	}
	if (in->rv.size && rv_compare(in->rv, buf_bytes(&feed->rv)) != -1)
		(void)set_text(&feed->rv, in->rv); /* too long: watch on from the one before */
}

static void on_start(struct feed_machine *feed, const struct feed_input *in)
{
	feed->phase = in->phase;
	feed->listed = in->listed;
	feed->resolved = in->resolved;
	/* Without the RV (no memory for it) nothing can be watched. */
	feed->want_list = !set_text(&feed->rv, in->rv) || in->list_open || !in->rv.size ||
		in->phase == FEED_GONE;
}

static void on_rewind(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	feed->listed = in->listed;
	feed->phase = in->phase;
	bool known = set_text(&feed->rv, in->rv);
	if (!known)
		buf_reset(&feed->rv); /* it is ahead of what the journal has */
	if (!known || in->list_open || !in->rv.size || feed->want_list)
		machine_restart_list(feed);
	feed->state = FEED_AT_HELD;
	action->what = FEED_DO_WAIT;
	action->until_ns = UINT64_MAX;
}

static void on_ended(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action)
{
	if (machine_was_short(feed, in))
		machine_strike(feed, in, action);
	else
		machine_watch_again(feed, in, action);
}

void feed_machine_step(struct feed_machine *feed, const struct feed_input *in, struct feed_action *ret_action)
{
	struct feed_action action = {.what = FEED_DO_NOTHING, .rv = "", .continue_ = ""};
	enum feed_state state = feed->state;

	switch (in->on) {
	case FEED_ON_START:
		on_start(feed, in);
		begin(feed, in, &action);
		break;
	case FEED_ON_RESOLVED:
		feed->resolved = true;
		if (state == FEED_AT_RESOLVING)
			go_on(feed, in, &action);
		break;
	case FEED_ON_TURN:
		if (state == FEED_AT_QUEUED)
			machine_do_list(feed, in, &action);
		break;
	case FEED_ON_ALIVE:
		on_alive(feed, in, &action);
		break;
	case FEED_ON_PAGE:
		if (state == FEED_AT_LISTING)
			on_page(feed, in, &action);
		break;
	case FEED_ON_DOUBTED:
		if (state == FEED_AT_FINISHING)
			on_doubted(feed, in, &action);
		break;
	case FEED_ON_LISTED:
		if (state == FEED_AT_FINISHING)
			on_listed(feed, in, &action);
		break;
	case FEED_ON_EVENT:
	case FEED_ON_BOOKMARK:
		/* Initial events of a stream come in no order: their RVs say nothing
		 * (docs/protocol.md 4.4). */
		if (state == FEED_AT_WATCHING)
			on_event(feed, in, &action);
		break;
	case FEED_ON_INITIAL:
		if (state == FEED_AT_STREAMING)
			on_initial(feed, in, &action);
		break;
	case FEED_ON_ENDED:
		if (state == FEED_AT_WATCHING)
			on_ended(feed, in, &action);
		else if (state == FEED_AT_STREAMING)
			machine_stream_lost(feed, in, &action);
		break;
	case FEED_ON_FAILED:
		machine_failed(feed, in, &action);
		break;
	case FEED_ON_TICK:
		if (state == FEED_AT_WAITING && in->now_ns >= feed->until_ns)
			go_on(feed, in, &action);
		break;
	case FEED_ON_REWIND:
		on_rewind(feed, in, &action);
		break;
	case FEED_ON_RESUME:
		if (state == FEED_AT_HELD)
			begin(feed, in, &action);
		break;
	case FEED_ON_RELIST:
		machine_restart_list(feed);
		feed->newest = true;
		if (state != FEED_AT_HELD && state != FEED_AT_START)
			go_on(feed, in, &action);
		break;
	case FEED_ON_MAX:
		break;
	}
	*ret_action = action;
}
