/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed.h"

#include "common/check.h"
#include "common/err.h"

#define SECOND 1000000000ull

#define BACKOFF_HEALTH (120 * SECOND) /* this long without failure and it begins anew */

#define SHORT_WATCH      SECOND
#define STRIKES_MAX      3
#define PAGE_RETRIES_MAX 5
#define EMPTY_PAGES_MAX  1000
#define PAGES_MAX        1000000
#define UNREADABLE_MAX   3

static const char *const state_names[FEED_AT_MAX] = {
	[FEED_AT_START] = "start",
	[FEED_AT_RESOLVING] = "resolving",
	[FEED_AT_QUEUED] = "queued",
	[FEED_AT_LISTING] = "listing",
	[FEED_AT_FINISHING] = "finishing",
	[FEED_AT_WATCHING] = "watching",
	[FEED_AT_WAITING] = "waiting",
	[FEED_AT_HELD] = "held",
};

static const char *const do_names[FEED_DO_MAX] = {
	[FEED_DO_NOTHING] = "nothing",
	[FEED_DO_RESOLVE] = "resolve",
	[FEED_DO_QUEUE] = "queue",
	[FEED_DO_LIST] = "list",
	[FEED_DO_FINISH_LIST] = "finish-list",
	[FEED_DO_WATCH] = "watch",
	[FEED_DO_WAIT] = "wait",
	[FEED_DO_FORGET] = "forget",
};

const char *feed_state_name(enum feed_state state)
{
	return state < FEED_AT_MAX ? state_names[state] : "?";
}

const char *feed_do_name(enum feed_do what)
{
	return what < FEED_DO_MAX ? do_names[what] : "?";
}

void feed_init(struct feed *feed, uint32_t page_size, const struct config_policy *policy)
{
	*feed = (struct feed){.page_size = page_size, .policy = policy, .phase = FEED_LISTING};
	buf_init(&feed->rv, 1024);
	buf_init(&feed->list_rv, 1024);
	buf_init(&feed->continue_, 64u << 10);
}

void feed_release(struct feed *feed)
{
	buf_release(&feed->rv);
	buf_release(&feed->list_rv);
	buf_release(&feed->continue_);
}

struct bytes feed_rv(const struct feed *feed)
{
	return buf_bytes(&feed->rv);
}

static bool set_text(struct buf *buf, struct bytes text)
{
	buf_reset(buf);
	buf_bytes_put(buf, text);
	return buf->error == 0;
}

static void set_phase(struct feed *feed, enum feed_phase phase, struct feed_action *action)
{
	action->phase_changed |= feed->phase != phase;
	feed->phase = phase;
}

/* ---- actions ---- */

static void do_wait(struct feed *feed, uint64_t until_ns, struct feed_action *action)
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
static void back_off(struct feed *feed, const struct feed_input *in, struct feed_action *action)
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
	do_wait(feed, in->now_ns + (pause > asked ? pause : asked), action);
}

/* For what will not change soon. */
static void wait_slowly(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	uint64_t pause = spread(feed->policy->recheck_ns, in->random);
	uint64_t asked = in->status->retry_after_ns;

	feed->healthy_ns = 0;
	do_wait(feed, in->now_ns + (pause > asked ? pause : asked), action);
}

static void do_watch(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	uint64_t least_s = (feed->policy->watch_ns + SECOND - 1) / SECOND;

	feed->state = FEED_AT_WATCHING;
	feed->started_ns = in->now_ns;
	feed->alive = feed->progress = false;
	action->what = FEED_DO_WATCH;
	action->rv = buf_cstr(&feed->rv);
	action->timeout_s = (uint32_t)spread(least_s, in->random);
}

/* The watch that has ended is opened again: at once, unless many others are too. */
static void watch_again(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	if (in->span_ns)
		do_wait(feed, in->now_ns + in->random % in->span_ns, action);
	else
		do_watch(feed, in, action);
}

/*
 * The RV to list at: "" (the newest there is) when nothing is known or what is known is of no use,
 * else "not older than what we have", which the server may answer from its cache. With a limit that
 * would mean exactly that RV (spec/api.md 4.3), so only a list for "" is paged.
 */
static void do_list(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	bool first = feed->continue_.size == 0;
	bool newest = feed->newest || feed->rv.size == 0;

	feed->state = FEED_AT_LISTING;
	feed->started_ns = in->now_ns;
	feed->alive = false;
	action->what = FEED_DO_LIST;
	action->first = first;
	action->continue_ = buf_cstr(&feed->continue_);
	action->rv = newest || !first ? "" : buf_cstr(&feed->rv);
	action->limit = !first || (newest && !feed->unpaged) ? feed->page_size : 0;
	if (first)
		feed->pages = feed->empty_pages = 0;
}

static void restart_list(struct feed *feed)
{
	feed->want_list = true;
	feed->page_retries = 0;
	buf_reset(&feed->continue_);
}

/* Whatever is to be done now that nothing hinders. */
static void go_on(struct feed *feed, const struct feed_input *in, struct feed_action *action)
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
static void begin(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	if (in->span_ns && !feed->want_list)
		do_wait(feed, in->now_ns + in->random % in->span_ns, action);
	else
		go_on(feed, in, action);
}

/* ---- failures ---- */

static void on_forbidden(struct feed *feed, const struct feed_input *in,
	struct feed_action *action)
{
	set_phase(feed, FEED_FORBIDDEN, action);
	wait_slowly(feed, in, action);
}

/* The resource is not there, or not any more. When it comes back it is another one, whose history
 * does not begin where ours ends: it is listed. */
static void on_absent(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	set_phase(feed, FEED_GONE, action);
	feed->resolved = false;
	restart_list(feed);
	wait_slowly(feed, in, action);
}

/* Three attempts in a row met an object that we can't take in: not the transport's fault, it is so.
 * From now on such objects are passed over and reported, until a list meets none. */
static void on_unreadable(struct feed *feed, const struct feed_input *in,
	struct feed_action *action)
{
	if (++feed->unreadable >= UNREADABLE_MAX)
		feed->tolerant = true;
	back_off(feed, in, action);
}

/* The RV we asked for is of no use. Asking for "" instead is done at once; if that was asked already,
 * or was a page, a pause comes first. */
static void on_list_refused(struct feed *feed, const struct feed_input *in,
	struct feed_action *action)
{
	bool was_page = feed->continue_.size != 0, was_newest = feed->newest || !feed->rv.size;

	restart_list(feed);
	feed->newest = true;
	feed->unpaged |= was_page;
	if (was_page || was_newest)
		back_off(feed, in, action);
	else if (in->status->retry_after_ns)
		do_wait(feed, in->now_ns + in->status->retry_after_ns, action);
	else
		do_list(feed, in, action);
}

static void on_list_failed(struct feed *feed, const struct feed_input *in,
	struct feed_action *action)
{
	switch (in->status->kind) {
	case FAILURE_EXPIRED:
	case FAILURE_RV_AHEAD:
		on_list_refused(feed, in, action);
		return;
	case FAILURE_REQUEST:
		set_phase(feed, FEED_ERROR, action);
		restart_list(feed);
		wait_slowly(feed, in, action);
		return;
	case FAILURE_NETWORK:
	case FAILURE_BUSY:
	case FAILURE_REFUSED:
		/* The same page again: its token is still good, and what it held is known. */
		if (++feed->page_retries > PAGE_RETRIES_MAX)
			restart_list(feed);
		back_off(feed, in, action);
		return;
	case FAILURE_UNREADABLE:
		restart_list(feed);
		on_unreadable(feed, in, action);
		return;
	default:
		restart_list(feed);
		back_off(feed, in, action);
	}
}

/* The server's fault and nothing gained: after some of that the RV is suspected. */
static void on_strike(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	if (++feed->strikes >= STRIKES_MAX) {
		feed->strikes = 0;
		restart_list(feed);
	}
	back_off(feed, in, action);
}

static bool was_short(const struct feed *feed, const struct feed_input *in)
{
	return !feed->progress && in->now_ns - feed->started_ns < SHORT_WATCH;
}

static void on_watch_failed(struct feed *feed, const struct feed_input *in,
	struct feed_action *action)
{
	switch (in->status->kind) {
	case FAILURE_EXPIRED:
	case FAILURE_RV_AHEAD:
		restart_list(feed);
		feed->newest = true;
		back_off(feed, in, action);
		return;
	case FAILURE_NETWORK:
		/* A stream that broke is an ended one; one that never was is a failure. */
		if (feed->alive && !was_short(feed, in))
			watch_again(feed, in, action);
		else
			back_off(feed, in, action);
		return;
	case FAILURE_BUSY:
	case FAILURE_REFUSED:
		back_off(feed, in, action);
		return;
	case FAILURE_UNREADABLE:
		on_unreadable(feed, in, action);
		return;
	default:
		on_strike(feed, in, action);
	}
}

static void on_failed(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	REQUIRE(in->status);
	if (feed->state == FEED_AT_HELD)
		return;
	if (in->status->kind == FAILURE_FORBIDDEN)
		on_forbidden(feed, in, action);
	else if (in->status->kind == FAILURE_ABSENT)
		on_absent(feed, in, action);
	else if (feed->state == FEED_AT_LISTING || feed->state == FEED_AT_FINISHING)
		on_list_failed(feed, in, action);
	else if (feed->state == FEED_AT_WATCHING)
		on_watch_failed(feed, in, action);
	else if (feed->state == FEED_AT_RESOLVING)
		back_off(feed, in, action);
}

/* ---- success ---- */

static void on_alive(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	feed->alive = true;
	if (!feed->healthy_ns)
		feed->healthy_ns = in->now_ns;
	if (feed->phase != FEED_LISTING && feed->phase != FEED_SYNCED)
		set_phase(feed, feed->listed ? FEED_SYNCED : FEED_LISTING, action);
}

static void fail_page(struct feed *feed, const struct feed_input *in, const char *why,
	struct feed_action *action)
{
	struct status status;
	struct feed_input failed = *in;

	status_set(FAILURE_PROTOCOL, why, &status);
	failed.status = &status;
	on_list_failed(feed, &failed, action);
}

/* Only a list for the newest state that is older than what we have proves another past. */
static bool is_another_past(const struct feed *feed, struct bytes list_rv)
{
	return feed->newest && feed->rv.size &&
		rv_compare(list_rv, buf_bytes(&feed->rv)) == -1;
}

static void on_page(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	bool first = feed->continue_.size == 0;

	on_alive(feed, in, action);
	feed->page_retries = 0;
	feed->empty_pages = in->items ? 0 : feed->empty_pages + 1;
	if (first && is_another_past(feed, in->rv)) {
		feed->state = FEED_AT_HELD;
		action->what = FEED_DO_FORGET;
		return;
	}
	if (first && !set_text(&feed->list_rv, in->rv)) {
		fail_page(feed, in, "a resourceVersion of more than 1 kB", action);
		return;
	}
	if (!in->continue_.size) {
		feed->state = FEED_AT_FINISHING;
		action->what = FEED_DO_FINISH_LIST;
		action->rv = buf_cstr(&feed->list_rv);
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
	do_list(feed, in, action);
}

static void on_listed(struct feed *feed, const struct feed_input *in, struct feed_action *action)
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
}

/* The newest state is asked for, after a pause in which a server may come to its senses. */
static void on_doubted(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	restart_list(feed);
	feed->newest = true;
	do_wait(feed, in->now_ns + spread(feed->policy->hold_pause_ns, in->random), action);
}

static void on_event(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	on_alive(feed, in, action);
	feed->progress = true;
	feed->strikes = 0;
	if (in->on == FEED_ON_EVENT && !feed->tolerant)
		feed->unreadable = 0;
	if (in->on == FEED_ON_BOOKMARK && rv_compare(in->rv, buf_bytes(&feed->rv)) == -1) {
		/* The server is behind us: only a list can tell whether that is another past. */
		restart_list(feed);
		feed->newest = true;
		back_off(feed, in, action);
		return;
	}
	if (in->rv.size && rv_compare(in->rv, buf_bytes(&feed->rv)) != -1)
		(void)set_text(&feed->rv, in->rv); /* too long: watch on from the one before */
}

static void on_start(struct feed *feed, const struct feed_input *in)
{
	feed->phase = in->phase;
	feed->listed = in->listed;
	feed->resolved = in->resolved;
	feed->want_list = in->list_open || !in->rv.size || in->phase == FEED_GONE;
	(void)set_text(&feed->rv, in->rv); /* was one of ours */
}

static void on_rewind(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	feed->listed = in->listed;
	feed->phase = in->phase;
	(void)set_text(&feed->rv, in->rv);
	if (in->list_open || !in->rv.size || feed->want_list)
		restart_list(feed);
	feed->state = FEED_AT_HELD;
	action->what = FEED_DO_WAIT;
	action->until_ns = UINT64_MAX;
}

static void on_ended(struct feed *feed, const struct feed_input *in, struct feed_action *action)
{
	if (was_short(feed, in))
		on_strike(feed, in, action);
	else
		watch_again(feed, in, action);
}

void feed_step(struct feed *feed, const struct feed_input *in, struct feed_action *ret_action)
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
			do_list(feed, in, &action);
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
		if (state == FEED_AT_WATCHING)
			on_event(feed, in, &action);
		break;
	case FEED_ON_ENDED:
		if (state == FEED_AT_WATCHING)
			on_ended(feed, in, &action);
		break;
	case FEED_ON_FAILED:
		on_failed(feed, in, &action);
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
		restart_list(feed);
		feed->newest = true;
		if (state != FEED_AT_HELD && state != FEED_AT_START)
			go_on(feed, in, &action);
		break;
	case FEED_ON_MAX:
		break;
	}
	*ret_action = action;
}
