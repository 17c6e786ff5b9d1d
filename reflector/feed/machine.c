/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/machine.h"

#include "common/check.h"
#include "common/proc.h"
#include "common/text/decimal.h"
#include "reflector/record/object.h"

#include <inttypes.h>
#include <stdio.h>

/* without a failure: then the back-off begins at its minimum */
#define BACKOFF_HEALTH   (120 * SECOND_NS)
#define EMPTY_PAGES_MAX  1000
#define PAGES_MAX        1000000
#define NO_STREAM        (30 * 60 * SECOND_NS)
#define SHORT_WATCH      SECOND_NS
#define PAGE_RETRIES_MAX 5
#define STRIKES_MAX      3
#define UNREADABLE_MAX   3
#define STREAMS_LOST_MAX 3

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

void feed_machine_init(
	struct feed_machine *m, uint32_t page_size, const struct config_policy *policy)
{
	*m = (struct feed_machine){.page_size = page_size, .policy = policy, .phase = FEED_LISTING};
	buf_init(&m->rv, RV_MAX);
	buf_init(&m->shown, RV_MAX);
	buf_init(&m->list_rv, RV_MAX);
	buf_init(&m->continue_, 64u << 10);
}

void feed_machine_release(struct feed_machine *m)
{
	buf_release(&m->rv);
	buf_release(&m->shown);
	buf_release(&m->list_rv);
	buf_release(&m->continue_);
}

/* Replaces the text. Returns false, and leaves BUF as it was, if TEXT is too long or memory is
 * short. */
static bool machine_set_text(struct buf *buf, struct bytes text)
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

static void machine_set_phase(struct feed_machine *m, enum feed_phase phase)
{
	m->action.phase_changed |= m->phase != phase;
	m->phase = phase;
}

static void machine_wait(struct feed_machine *m, uint64_t until_ns)
{
	m->state = FEED_AT_WAITING;
	m->until_ns = until_ns;
	m->action.what = FEED_DO_WAIT;
	m->action.until_ns = until_ns;
}

/* Uniform in [LEAST, 2 * LEAST). */
static uint64_t machine_spread(uint64_t least, uint64_t random)
{
	return least + random % least;
}

/* Counts a failure and waits, longer after each, at least as long as the server's Retry-After. As
 * in client-go the pause is uniform in [d, 2d); when many feeds fail at once it is spread over
 * their span. */
static void machine_back_off(struct feed_machine *m, const struct feed_input *in)
{
	uint64_t pause = m->policy->backoff_min_ns, cap = m->policy->backoff_max_ns;
	uint64_t asked = in->status ? in->status->retry_after_ns : 0;

	if (m->healthy_ns && in->now_ns - m->healthy_ns >= BACKOFF_HEALTH)
		m->failures = 0;
	m->healthy_ns = 0;
	for (uint32_t i = 0; i < m->failures && pause < cap; i++)
		pause *= 2;
	m->failures++;
	pause = pause < cap ? pause : cap;
	pause += in->random % (pause > in->span_ns ? pause : in->span_ns);
	machine_wait(m, in->now_ns + (pause > asked ? pause : asked));
}

/* Waits as the server asked by Retry-After, and up to as long again. As in client-go ten of these
 * in a row are no failure: an overloaded server refuses one page of a list, and gives the next. */
static bool machine_repeat(struct feed_machine *m, const struct feed_input *in)
{
	uint64_t asked = in->status->retry_after_ns;

	if (!asked || m->repeats == STATUS_REPEATS_MAX)
		return false;
	m->repeats++;
	machine_wait(
		m, in->now_ns + asked + in->random % (asked > in->span_ns ? asked : in->span_ns));
	return true;
}

/* Waits for `recheck`, after a lasting answer. */
static void machine_wait_slowly(struct feed_machine *m, const struct feed_input *in)
{
	uint64_t pause = machine_spread(m->policy->recheck_ns, in->random);
	uint64_t asked = in->status->retry_after_ns;

	m->healthy_ns = 0;
	machine_wait(m, in->now_ns + (pause > asked ? pause : asked));
}

/* ---- requests ----------------------------------------------------------- */

static void machine_request(struct feed_machine *m, const struct feed_input *in,
	enum feed_state state, enum feed_do what)
{
	uint64_t least_s = (m->policy->watch_ns + SECOND_NS - 1) / SECOND_NS;

	m->state = state;
	m->started_ns = in->now_ns;
	m->alive = m->progress = false;
	m->action.what = what;
	m->action.timeout_s = (uint32_t)machine_spread(least_s, in->random);
}

static void machine_watch(struct feed_machine *m, const struct feed_input *in)
{
	uint64_t rv;

	buf_reset(&m->shown);
	machine_request(m, in, FEED_AT_WATCHING, FEED_DO_WATCH);
	m->action.rv = buf_cstr(&m->rv);
	/* etcd deletes all objects of an expired lease, hundreds of Events, at one RV. A watch that
	 * was cut among them has to begin before it: the known ones are replays. */
	if (!m->deletion || decimal_parse(buf_bytes(&m->rv), UINT64_MAX, &rv) < 0 || rv < 2)
		return;
	(void)snprintf(m->before, sizeof(m->before), "%" PRIu64, rv - 1);
	if (machine_set_text(&m->shown, bytes_str(m->before)))
		m->action.rv = m->before;
}

/* Opens the watch again: at once, unless many other feeds do so in the same second. */
static void machine_watch_again(struct feed_machine *m, const struct feed_input *in)
{
	if (in->span_ns)
		machine_wait(m, in->now_ns + in->random % in->span_ns);
	else
		machine_watch(m, in);
}

/*
 * Requests the next page, or the first one of a new attempt, which may be a stream. The RV of a
 * list is "" (the newest state) when none is known or the known one is useless; else the known one
 * ("not older than": the server may answer from its cache). With a limit it would mean exactly that
 * RV (docs/protocol.md 4.3), so only lists for "" have pages.
 */
static void machine_list(struct feed_machine *m, const struct feed_input *in)
{
	bool first = m->continue_.size == 0;
	bool newest = m->newest || m->rv.size == 0;

	m->action.first = first;
	m->action.rv = newest || !first ? "" : buf_cstr(&m->rv);
	if (first && m->policy->streaming_lists && in->now_ns >= m->no_stream_ns) {
		machine_request(m, in, FEED_AT_STREAMING, FEED_DO_STREAM);
		return;
	}
	machine_request(m, in, FEED_AT_LISTING, FEED_DO_LIST);
	m->action.continue_ = buf_cstr(&m->continue_);
	m->action.limit = !first || (newest && !m->unpaged) ? m->page_size : 0;
	if (first)
		m->pages = m->empty_pages = 0;
}

/* Makes the next list begin with its first page. */
static void machine_restart_list(struct feed_machine *m)
{
	m->want_list = true;
	m->page_retries = 0;
	buf_reset(&m->continue_);
}

/* Begins the feed's next request. */
static void machine_go_on(struct feed_machine *m, const struct feed_input *in)
{
	if (!m->resolved) {
		m->state = FEED_AT_RESOLVING;
		m->action.what = FEED_DO_RESOLVE;
	} else if (m->want_list) {
		m->state = FEED_AT_QUEUED;
		m->action.what = FEED_DO_QUEUE;
	} else {
		machine_watch(m, in);
	}
}

/* Does the same for one of many feeds beginning together. A list waits for its turn anyway. */
static void machine_begin(struct feed_machine *m, const struct feed_input *in)
{
	if (in->span_ns && !m->want_list)
		machine_wait(m, in->now_ns + in->random % in->span_ns);
	else
		machine_go_on(m, in);
}

/* ---- failures ----------------------------------------------------------- */

/* Skips unreadable objects from the third attempt in a row on, until a list meets none: by then it
 * is not the transport's fault. */
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

/* Handles a list that failed, or brought nothing of use. */
static void machine_list_failed(struct feed_machine *m, const struct feed_input *in)
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
	case FAILURE_UNAUTHORIZED:
		/* Ask for the same page: its token is still good, and recorded items cost no
		 * write. */
		if (machine_repeat(m, in))
			return;
		if (++m->page_retries > PAGE_RETRIES_MAX) {
			machine_restart_list(m);
			m->unpaged = false; /* it may be too large for one request */
		}
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

/* Begins the stream again: it broke, ended or made no sense before its end mark. Its events are
 * recorded inside the open list and cost the next attempt no write. */
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
	case FAILURE_UNAUTHORIZED:
		if (!machine_repeat(m, in))
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

/* Counts a failed watch without an event; after the third in a row the feed lists, because the
 * server may trip over the RV. */
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
		 * back-off; a server that expires its newest lists earns growing pauses. */
		machine_restart_list(m);
		m->newest = true;
		if (!m->expired)
			m->failures = 0;
		m->expired = true;
		machine_back_off(m, in);
		return;
	case FAILURE_NETWORK:
		/* A broken stream has ended; one without a beginning has failed. */
		if (m->alive && !machine_was_short(m, in))
			machine_watch_again(m, in);
		else
			machine_back_off(m, in);
		return;
	case FAILURE_BUSY:
	case FAILURE_UNAUTHORIZED:
		if (!machine_repeat(m, in))
			machine_back_off(m, in);
		return;
	case FAILURE_UNREADABLE:
		machine_unreadable(m, in);
		return;
	default:
		machine_strike(m, in);
	}
}

static void machine_on_failed(struct feed_machine *m, const struct feed_input *in)
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

/* Handles the server's end of a stream or a watch. */
static void machine_on_ended(struct feed_machine *m, const struct feed_input *in)
{
	if (m->state == FEED_AT_STREAMING)
		machine_stream_lost(m, in);
	else if (m->state == FEED_AT_WATCHING && machine_was_short(m, in))
		machine_strike(m, in);
	else if (m->state == FEED_AT_WATCHING)
		machine_watch_again(m, in);
}

/* ---- success ------------------------------------------------------------ */

static void machine_on_alive(struct feed_machine *m, const struct feed_input *in)
{
	m->alive = true;
	m->repeats = 0;
	if (!m->healthy_ns)
		m->healthy_ns = in->now_ns;
	if (m->phase != FEED_LISTING && m->phase != FEED_SYNCED)
		machine_set_phase(m, m->listed ? FEED_SYNCED : FEED_LISTING);
}

/* Refuses an answer: the session reports it, and comes back with FEED_ON_FAILED. */
static void machine_refuse(struct feed_machine *m, const char *why)
{
	m->action.what = FEED_DO_FAIL;
	m->action.why = why;
}

/* Takes the RV of the list's first page or of the stream's end mark. Returns false if the action is
 * decided: a list for the newest state, but older than the known one, proves a restored etcd. */
static bool machine_take_list_rv(struct feed_machine *m, const struct feed_input *in)
{
	if (m->newest && m->rv.size && rv_compare(in->rv, buf_bytes(&m->rv)) == -1) {
		m->state = FEED_AT_HELD;
		m->action.what = FEED_DO_ROLLED_BACK;
		return false;
	}
	if (!machine_set_text(&m->list_rv, in->rv)) {
		machine_refuse(m, "the list has a resourceVersion of more than 1 kB");
		return false;
	}
	return true;
}

static void machine_finish(struct feed_machine *m, bool streamed)
{
	m->streamed = m->action.keep = streamed;
	m->state = FEED_AT_FINISHING;
	m->action.what = FEED_DO_FINISH_LIST;
	m->action.rv = buf_cstr(&m->list_rv);
}

static void machine_on_page(struct feed_machine *m, const struct feed_input *in)
{
	machine_on_alive(m, in);
	m->page_retries = 0;
	m->empty_pages = in->items ? 0 : m->empty_pages + 1;
	if (m->continue_.size == 0 && !machine_take_list_rv(m, in))
		return;
	if (!in->continue_.size)
		machine_finish(m, false);
	else if (bytes_equal(in->continue_, buf_bytes(&m->continue_)) ||
		 m->empty_pages > EMPTY_PAGES_MAX || ++m->pages > PAGES_MAX)
		machine_refuse(m, "the pages of the list do not come to an end");
	else if (!machine_set_text(&m->continue_, in->continue_))
		machine_refuse(m, "the list has a continue token of more than 64 kB");
	else
		machine_list(m, in);
}

static void machine_on_listed(struct feed_machine *m, const struct feed_input *in)
{
	(void)machine_set_text(
		&m->rv, buf_bytes(&m->list_rv)); /* it fits: both have the same limit */
	buf_reset(&m->continue_);
	m->want_list = m->newest = m->unpaged = m->deletion = false;
	m->strikes = 0;
	if (!in->lacking) {
		m->tolerant = false;
		m->unreadable = 0;
	}
	m->listed = true;
	m->phase = FEED_SYNCED; /* recorded with LIST_END */
	machine_watch(m, in);
	m->action.keep = m->alive = m->progress = m->streamed;
}

static void machine_on_event(struct feed_machine *m, const struct feed_input *in)
{
	machine_on_alive(m, in);
	m->progress = true;
	m->expired = false;
	m->strikes = 0;
	if (in->on == FEED_ON_EVENT && !m->tolerant)
		m->unreadable = 0;
	struct bytes shown = buf_bytes(m->shown.size ? &m->shown : &m->rv);
	if (in->on == FEED_ON_BOOKMARK && rv_compare(in->rv, shown) == -1) {
		/* The server lags, or its etcd was restored: only a list shows which. */
		machine_restart_list(m);
		m->newest = true;
		machine_back_off(m, in);
		return;
	}
	int order = rv_compare(in->rv, buf_bytes(&m->rv));

	if (in->rv.size && order != -1) {
		m->deletion = in->deletion || (m->deletion && order == 0);
		(void)machine_set_text(&m->rv, in->rv); /* if too long, the older one is as good */
		buf_reset(&m->shown);
	} else if (in->on == FEED_ON_BOOKMARK) {
		(void)machine_set_text(&m->shown, in->rv);
	}
}

/* Proves nothing of this watch: it may be of another server of the cluster, and further behind. */
static void machine_on_progress(struct feed_machine *m, const struct feed_input *in)
{
	if (rv_compare(in->rv, buf_bytes(&m->rv)) != 1)
		return;
	if (!m->shown.size && !machine_set_text(&m->shown, buf_bytes(&m->rv)))
		return; /* no memory: the next bookmark would look like another state of etcd */
	m->deletion = false;
	(void)machine_set_text(&m->rv, in->rv);
}

static void machine_on_start(struct feed_machine *m, const struct feed_input *in)
{
	m->phase = in->phase;
	m->listed = in->listed;
	m->resolved = in->resolved;
	m->deletion = in->deletion;
	/* Without memory for the RV nothing can be watched. FEED_ON_RELIST may have come
	 * already. */
	m->want_list |= !machine_set_text(&m->rv, in->rv) || in->list_open || !in->rv.size ||
			in->phase == FEED_GONE;
	machine_begin(m, in);
}

static void machine_on_rewind(struct feed_machine *m, const struct feed_input *in)
{
	m->listed = in->listed;
	m->phase = in->phase;
	m->deletion = in->deletion;
	bool known = machine_set_text(&m->rv, in->rv);
	if (!known)
		buf_reset(&m->rv); /* it is newer than the journal */
	if (!known || in->list_open || !in->rv.size || m->want_list)
		machine_restart_list(m);
	m->state = FEED_AT_HELD;
	m->action.what = FEED_DO_WAIT;
	m->action.until_ns = UINT64_MAX;
}

/* The one state for an event, else ignored; FEED_AT_START: any. */
static const enum feed_state machine_states[FEED_ON_MAX] = {
	[FEED_ON_TURN] = FEED_AT_QUEUED,
	[FEED_ON_PAGE] = FEED_AT_LISTING,
	[FEED_ON_DOUBTED] = FEED_AT_FINISHING,
	[FEED_ON_LISTED] = FEED_AT_FINISHING,
	[FEED_ON_EVENT] = FEED_AT_WATCHING,    /* a stream's initial events come in any order and */
	[FEED_ON_BOOKMARK] = FEED_AT_WATCHING, /* move no RV (docs/protocol.md 4.4) */
	[FEED_ON_PROGRESS] = FEED_AT_WATCHING,
	[FEED_ON_INITIAL] = FEED_AT_STREAMING,
	[FEED_ON_TICK] = FEED_AT_WAITING,
	[FEED_ON_RESUME] = FEED_AT_HELD,
};

void feed_machine_step(
	struct feed_machine *m, const struct feed_input *in, struct feed_action *ret_action)
{
	enum feed_on on =
		machine_states[in->on] && machine_states[in->on] != m->state ? FEED_ON_MAX : in->on;

	m->action = (struct feed_action){.what = FEED_DO_NOTHING, .rv = "", .continue_ = ""};
	switch (on) {
	case FEED_ON_START:
		machine_on_start(m, in);
		break;
	case FEED_ON_RESOLVED:
		m->resolved = true;
		if (m->state == FEED_AT_RESOLVING)
			machine_go_on(m, in);
		break;
	case FEED_ON_TURN:
		machine_list(m, in);
		break;
	case FEED_ON_ALIVE:
		machine_on_alive(m, in);
		break;
	case FEED_ON_PAGE:
		machine_on_page(m, in);
		break;
	case FEED_ON_INITIAL:
		machine_on_alive(m, in);
		if (!machine_take_list_rv(m, in))
			break;
		m->lost_streams = 0;
		machine_finish(m, true);
		break;
	case FEED_ON_DOUBTED:
		/* List the newest state after a pause for the server to recover. */
		machine_restart_list(m);
		m->newest = true;
		machine_wait(m, in->now_ns + machine_spread(m->policy->hold_pause_ns, in->random));
		break;
	case FEED_ON_LISTED:
		machine_on_listed(m, in);
		break;
	case FEED_ON_EVENT:
	case FEED_ON_BOOKMARK:
		machine_on_event(m, in);
		break;
	case FEED_ON_PROGRESS:
		machine_on_progress(m, in);
		break;
	case FEED_ON_ENDED:
		machine_on_ended(m, in);
		break;
	case FEED_ON_FAILED:
		machine_on_failed(m, in);
		break;
	case FEED_ON_TICK:
		if (in->now_ns >= m->until_ns)
			machine_go_on(m, in);
		break;
	case FEED_ON_REWIND:
		machine_on_rewind(m, in);
		break;
	case FEED_ON_RESUME:
		machine_begin(m, in);
		break;
	case FEED_ON_RELIST:
		machine_restart_list(m);
		m->newest = true;
		if (m->state != FEED_AT_HELD && m->state != FEED_AT_START)
			machine_go_on(m, in);
		break;
	case FEED_ON_MAX:
		break;
	}
	*ret_action = m->action;
}
