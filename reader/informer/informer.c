/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Informers: handlers come and go, a dispatch gives each one its turns. Nothing is unlinked or
 * freed while a callback may be running: a handler removed by a callback is freed when the dispatch
 * ends.
 *
 * Between two dispatches no snapshot is held, however much is left to do, because the next one may
 * come much later.
 */
#include "reader/informer/informer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

#define TURN          32   /* items of one handler before the next handler's turn */
#define EXAMINED_EACH 64   /* items to skip for each callback asked for */
#define RUN_MAX       1000 /* callbacks between two commits */
#define MS            UINT64_C(1000000)
#define CHECK_NS      (1000 * MS)
#define NO_BELL_NS    (50 * MS)
#define INDEX_NS      (10 * MS)  /* while a handler waits for the index */
#define AGAIN_NS      (10 * MS)  /* after the feeds have changed */
#define ERROR_NS      (100 * MS) /* after an error */

/* ---- making and freeing ------------------------------------------------- */

static int informer_copy_options(
	struct kinf_informer *informer, const struct kinf_informer_options *options)
{
	int r = kinf_check_size("kinf_informer_options", options->size, sizeof(*options));

	if (r < 0)
		return r;
	if (options->flags &
		~(uint32_t)(KINF_TRACK_KEYS | KINF_COMMIT_BY_HAND | KINF_OWN_DEFAULT_RESYNC))
		return err_set(
			ERR_UNSUPPORTED, "kinf_informer_options with flags %x", options->flags);
	if (options->resync_jitter_percent > 100)
		return err_say(-EINVAL, "a resync's jitter of %u percent: 0 to 100",
			options->resync_jitter_percent);
	if (options->cursor && options->from)
		return err_say(-EINVAL,
			"an informer goes on from a cursor or from an event number, not from both");
	informer->flags = options->flags;
	informer->from = options->from;
	informer->on_state = options->on_state;
	informer->arg = options->arg;
	informer_resync_init(informer, options);
	if (!options->cursor)
		return 0;
	informer->cursor = strdup(options->cursor);
	if (!informer->cursor)
		return err_set(-ENOMEM, "informer");
	struct home *home = store_home(informer->kinf->store);
	r = cursor_claim(home, informer->cursor, &informer->claim);
	if (r == 0)
		r = cursor_load(home, informer->cursor, true, &informer->begin);
	return r < 0 ? r : 0;
}

static void informer_release(struct kinf_informer **informer_pointer)
{
	struct kinf_informer *informer = TAKE(*informer_pointer);

	if (!informer)
		return;
	while (informer->first) {
		struct kinf_handler *h = informer->first;

		informer->first = h->next;
		handler_free(&h);
	}
	wake_close(&informer->wake);
	kinf_snapshot_close(&informer->snapshot);
	free(informer->feeds);
	free(informer->states);
	cursor_release(&informer->begin);
	cursor_unclaim(&informer->claim);
	free(informer->cursor);
	free(informer->saved);
	free(informer->now);
	free(informer->feed);
	informer->magic = 0;
	free(informer);
}

int kinf_informer_new(struct kinf *kinf, const char *feed,
	const struct kinf_informer_options *options, struct kinf_informer **ret_informer)
{
	static const struct kinf_informer_options none = {.size = sizeof(none)};
	CLEANUP(informer_release) struct kinf_informer *informer = NULL;
	int r = kinf_alive(kinf);

	if (r < 0)
		return r;
	if (!feed)
		return kinf_result(kinf, err_set(-EINVAL, "an informer without a feed"));
	informer = calloc(1, sizeof(*informer));
	if (!informer)
		return kinf_result(kinf, err_set(-ENOMEM, "informer"));
	informer->magic = KINF_INFORMER_MAGIC;
	informer->kinf = kinf;
	informer->wake = (struct wake){.epoll = -1, .timer = -1, .stop = -1, .bell = -1};
	informer->feed = strdup(feed);
	r = informer->feed ? informer_copy_options(informer, options ? options : &none)
			   : err_set(-ENOMEM, "informer");
	if (r == 0)
		r = wake_open(&informer->wake);
	if (r == 0)
		r = informer_find_feeds(informer);
	if (r == 0 || r == AGAIN)
		r = wake_arm(&informer->wake, 0);
	if (r == 0)
		*ret_informer = TAKE(informer);
	return kinf_result(kinf, r);
}

void kinf_informer_free(struct kinf_informer **informer)
{
	if (!informer || !*informer)
		return;
	CHECK_OBJ(*informer, KINF_INFORMER_MAGIC);
	if ((*informer)->dispatching || (*informer)->running) {
		(*informer)->freed = true; /* in a callback */
		*informer = NULL;
	} else {
		informer_release(informer);
	}
}

/* ---- handlers ----------------------------------------------------------- */

static bool informer_is_stopped(const struct kinf_informer *informer)
{
	/* Pairs with the release in kinf_informer_stop. */
	return __atomic_load_n(&informer->stopped, __ATOMIC_ACQUIRE);
}

int kinf_informer_add_handler(struct kinf_informer *informer,
	const struct kinf_handler_options *options, struct kinf_handler **ret_handler)
{
	CHECK_OBJ(informer, KINF_INFORMER_MAGIC);
	CLEANUP(handler_free) struct kinf_handler *h = NULL;
	int r = kinf_alive(informer->kinf);

	if (r == 0 && informer_is_stopped(informer))
		r = err_say(-ECANCELED,
			"a handler can't be added to the informer of '%s' because it has stopped "
			"already",
			informer->feed);
	if (r == 0)
		r = handler_new(informer, options, &h);
	if (r == 0)
		r = handler_find_indexes(h);
	/* kinf_informer_dispatch reports a missing feed. */
	if (r >= 0 || (h && r == ERR_NO_FEED))
		r = wake_arm(&informer->wake, 0);
	if (r < 0)
		return kinf_result(informer->kinf, r);
	informer_resync_add(informer, h);
	struct kinf_handler **last = &informer->first;
	while (*last)
		last = &(*last)->next;
	if (ret_handler)
		*ret_handler = h;
	*last = TAKE(h);
	return kinf_result(informer->kinf, 0);
}

/* Frees the handlers removed during a dispatch. */
static void informer_reap(struct kinf_informer *informer)
{
	struct kinf_handler **place = &informer->first;

	while (*place) {
		struct kinf_handler *h = *place;

		if (h->removed) {
			*place = h->next;
			handler_free(&h);
		} else {
			place = &h->next;
		}
	}
}

int kinf_informer_remove_handler(struct kinf_informer *informer, struct kinf_handler *handler)
{
	CHECK_OBJ(informer, KINF_INFORMER_MAGIC);
	/* HANDLER is only compared: it may be freed already, or be another informer's. */
	for (struct kinf_handler *h = informer->first; h; h = h->next) {
		if (h != handler || h->removed)
			continue;
		h->removed = true;
		if (!informer->dispatching)
			informer_reap(informer);
		return 0;
	}
	return NOT_FOUND;
}

int kinf_handler_synced(const struct kinf_handler *handler)
{
	CHECK_OBJ(handler, KINF_HANDLER_MAGIC);
	return handler_is_synced(handler);
}

uint64_t kinf_handler_event(const struct kinf_handler *handler)
{
	CHECK_OBJ(handler, KINF_HANDLER_MAGIC);
	const struct follow_position *positions;
	size_t n = handler->follow ? follow_positions(handler->follow, &positions) : 0;
	uint64_t event = n ? positions[0].seq : 0;

	for (size_t i = 1; i < n; i++)
		if (positions[i].seq < event)
			event = positions[i].seq;
	return event;
}

/* ---- dispatching -------------------------------------------------------- */

/* The limit of one dispatch, and its counts. */
struct informer_round {
	int max; /* callbacks; 0: any number */
	int called;
	uint64_t examined;
	bool left; /* there may be more to do at once */
	int error; /* the first one of a handler without on_error, and its sentence */
	char text[512];
};

static bool round_is_over(const struct kinf_informer *informer, const struct informer_round *round)
{
	if (informer->freed || informer_is_stopped(informer) || kinf_is_forked(informer->kinf))
		return true;
	return round->max > 0 && (round->called >= round->max ||
					 round->examined >= (uint64_t)round->max * EXAMINED_EACH);
}

/* Makes all handlers begin again: the feeds are others, or the journal is. */
static void informer_forget_feeds(struct kinf_informer *informer)
{
	free(informer->feeds);
	informer->feeds = NULL;
	for (struct kinf_handler *h = informer->first; h; h = h->next) {
		handler_lapse(h);
		h->has_indexes = false;
	}
}

/* Runs up to TURN items of one handler. Returns 0: it may have more; AGAIN: it has nothing to do;
 * GONE; errors. */
static int informer_give_turn(
	struct kinf_informer *informer, struct kinf_handler *h, struct informer_round *round)
{
	if (!h->follow) {
		if (!informer->feeds)
			return AGAIN;
		int r = handler_find_indexes(h);
		/* LAPPED is reported once the next state is known. */
		if (r == 0 && !h->lapse_owed)
			r = handler_begin(h);
		h->error = r < 0 ? r : 0;
		if (r != 0)
			return r;
		h->retry_ns = 0;
	}
	int r = 0;
	for (unsigned i = 0; r == 0 && i < TURN && !h->removed && !round_is_over(informer, round);
		i++) {
		int calls;

		if (!h->follow && !h->lapse_owed)
			return 0; /* it begins again in its next turn */
		r = handler_next(h, &calls);
		round->examined++;
		round->called += calls;
		informer->handed_out |= calls > 0;
	}
	return r;
}

/* Returns 0, GONE, or the error of a handler without on_error: it ends no other handler's turn. */
static int informer_give_turns(struct kinf_informer *informer, struct informer_round *round)
{
	for (struct kinf_handler *h = informer->first; h; h = h->next)
		h->failed = false;
	do {
		round->left = false;
		for (struct kinf_handler *h = informer->first; h; h = h->next) {
			if (round_is_over(informer, round)) {
				round->left = true;
				break;
			}
			if (h->removed || h->failed ||
				(h->retry_ns && h->retry_ns > proc_monotonic_ns()))
				continue;
			int before = h->error;
			int r = informer_give_turn(informer, h, round);
			if (r == GONE)
				return r;
			round->left |= r == 0;
			if (r >= 0)
				continue;
			h->failed = true;
			/* A walk is retried a second later if it can't begin. */
			h->retry_ns = h->error && h->options.on_error
					      ? proc_monotonic_ns() + CHECK_NS
					      : 0;
			if (!h->options.on_error && !round->error) {
				round->error = r;
				(void)snprintf(round->text, sizeof(round->text), "%s", err_text(r));
			} else if (h->options.on_error && r != before) {
				h->options.on_error(h->options.arg, r, err_text(r));
			}
		}
	} while (round->left && !round_is_over(informer, round));
	return round->error ? err_say(round->error, "%s", round->text) : 0;
}

static int informer_dispatch(struct kinf_informer *informer, struct informer_round *round)
{
	uint64_t now = proc_monotonic_ns();
	int rested = 0;
	bool awaits_index = false;

	if (wake_read(&informer->wake) || informer_is_stopped(informer))
		return 0;
	if (!informer->started)
		resync_start(&informer->resync, now);
	informer->started = true;
	wake_connect(&informer->wake, home_runtime_fd(store_home(informer->kinf->store)), now);
	int r = informer->feeds ? 0 : informer_find_feeds(informer);
	int again = informer_check_feeds(informer, now);
	if (again == GONE)
		informer_forget_feeds(informer);
	r = r < 0 ? r : again < 0 ? again : 0;
	informer_resync_check(informer, now);
	if (r == 0 && !informer->freed)
		r = informer_give_turns(informer, round);
	if (kinf_is_forked(informer->kinf)) /* by a callback: timer and cursor are the parent's */
		return kinf_alive(informer->kinf);
	if (r == GONE)
		informer_forget_feeds(informer);
	for (struct kinf_handler *h = informer->first; h; h = h->next) {
		int rest = h->follow ? follow_rest(h->follow) : 0;

		awaits_index |= h->follow && follow_awaits_index(h->follow);
		if (rest == ERR_SNAPSHOT_EXPIRED)
			rest = handler_fail(h, rest);
		rested = rested ? rested : rest;
	}
	/* The latest time for the next dispatch; 0: at once. */
	uint64_t end = proc_monotonic_ns(), resync = resync_next(&informer->resync);
	uint64_t next = end + (informer->wake.bell >= 0 && informer->feeds ? CHECK_NS : NO_BELL_NS);
	if (awaits_index)
		next = end + INDEX_NS;
	if (r != 0)
		next = end + (r < 0 ? ERROR_NS : AGAIN_NS);
	else if (round->left)
		next = 0;
	else if (resync < next)
		next = resync;
	int armed = wake_arm(&informer->wake, next);
	if (r >= 0)
		r = rested < 0 ? rested : armed;
	int saved = r < 0 || informer->left_out ? 0 : informer_cursor_save_when_due(informer, now);
	return r < 0 ? r : saved;
}

int kinf_informer_dispatch(struct kinf_informer *informer, int max)
{
	CHECK_OBJ(informer, KINF_INFORMER_MAGIC);
	struct informer_round round = {.max = max};
	struct kinf *kinf = informer->kinf;
	int r = kinf_alive(kinf);

	if (r < 0)
		return r;
	if (informer->dispatching)
		return kinf_result(
			kinf, err_say(-EBUSY, "a callback of the informer of '%s' may not dispatch",
				      informer->feed));
	informer->dispatching = true;
	r = informer_dispatch(informer, &round);
	informer->dispatching = false;
	informer_reap(informer);
	if (informer->freed && !informer->running)
		informer_release(&informer);
	return kinf_result(kinf, r < 0 ? r : round.called);
}

int kinf_informer_fd(struct kinf_informer *informer)
{
	CHECK_OBJ(informer, KINF_INFORMER_MAGIC);
	return informer->wake.epoll;
}

int kinf_informer_run(struct kinf_informer *informer, int stop_fd)
{
	CHECK_OBJ(informer, KINF_INFORMER_MAGIC);
	struct kinf *kinf = informer->kinf;
	int r = 0;

	if (informer->running || informer->dispatching)
		return kinf_result(
			kinf, err_say(-EBUSY, "a callback of the informer of '%s' may not run it",
				      informer->feed));
	informer->running = true;
	while (r >= 0) {
		r = kinf_informer_dispatch(informer, RUN_MAX);
		/* The process was stopped for minutes: the handlers begin again with a lapse. */
		if (r == ERR_SNAPSHOT_EXPIRED && !informer->freed && !kinf_is_copy(kinf))
			r = 0;
		if (r < 0 || informer->freed || informer_is_stopped(informer))
			break;
		r = wake_wait(&informer->wake, stop_fd);
		if (r == END)
			break;
	}
	informer->running = false;
	if (informer->freed)
		informer_release(&informer);
	return kinf_result(kinf, r > 0 ? 0 : r);
}

void kinf_informer_stop(struct kinf_informer *informer)
{
	if (kinf_is_forked(informer->kinf))
		return; /* the descriptor is also the parent's, and would stop */
	/* Pairs with the acquire in informer_is_stopped. */
	__atomic_store_n(&informer->stopped, 1, __ATOMIC_RELEASE);
	wake_stop(&informer->wake);
}

int kinf_informer_phase(const struct kinf_informer *informer)
{
	CHECK_OBJ(informer, KINF_INFORMER_MAGIC);
	if (informer_is_stopped(informer))
		return KINF_INFORMER_STOPPED;
	return informer->started ? KINF_INFORMER_STARTED : KINF_INFORMER_NEW;
}

int kinf_informer_commit(struct kinf_informer *informer)
{
	CHECK_OBJ(informer, KINF_INFORMER_MAGIC);
	int r = kinf_alive(informer->kinf);

	if (r == 0 && !informer->cursor)
		r = err_say(-EINVAL, "the informer of '%s' has no cursor", informer->feed);
	if (r == 0 && informer->dispatching)
		r = err_say(-EBUSY, "a callback may not commit: its object is not handled yet");
	if (r == 0)
		r = informer_cursor_save(informer);
	if (r == AGAIN)
		return kinf_outcome(informer->kinf, r,
			"there is no position to commit yet: the informer has no handler, or one "
			"that is not synced yet");
	return kinf_result(informer->kinf, r);
}
