/* SPDX-License-Identifier: Apache-2.0 */
/* Which feeds stand behind an informer's name, and how they are. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/err.h"
#include "common/proc.h"
#include "reader/informer/informer.h"

#define LOOK_EVERY_NS UINT64_C(1000000000)

static int take_snapshot(struct kinf_informer *informer)
{
	return informer->snapshot ? kinf_snapshot_renew(informer->snapshot)
				  : kinf_snapshot_open(informer->kinf, &informer->snapshot);
}

static int take_feeds(struct kinf_informer *informer, const struct feed_set *set)
{
	uint32_t *feeds = calloc(set->n + 1, sizeof(*feeds));

	if (!feeds)
		return err_set(-ENOMEM, "feeds of '%s'", informer->feed);
	informer->listed = 0;
	for (size_t i = 0; i < set->n; i++) {
		uint64_t listed = set->feeds[i].index.listed ? set->feeds[i].index.listed : UINT64_MAX;

		feeds[i] = set->feeds[i].definition.id;
		if (listed > informer->listed)
			informer->listed = listed;
	}
	free(informer->feeds);
	informer->feeds = feeds;
	informer->n_feeds = set->n;
	informer->taken = snapshot_taken(informer->snapshot->snapshot);
	memcpy(informer->journal, snapshot_uuid(informer->snapshot->snapshot),
		sizeof(informer->journal));
	informer_resync_learn(informer, set);
	return 0;
}

/* ---- states ---- */

static struct feed_told *find_told(struct kinf_informer *informer, uint32_t feed)
{
	for (size_t i = 0; i < informer->n_told; i++)
		if (informer->told[i].status.feed == feed)
			return &informer->told[i];
	int r = ARRAY_ADD(informer->told, informer->n_told, informer->told_room,
		((struct feed_told){.status = {.feed = feed}}), "the states of feeds");
	if (r < 0) {
		err_ignore(r, "the state is reported a second later");
		return NULL;
	}
	return &informer->told[informer->n_told - 1];
}

/* END: the callback has ended the informer. */
static int tell_state(struct kinf_informer *informer, const struct kinf_feed_info *status)
{
	informer->on_state(informer->arg, status);
	return informer->freed ? END : 0;
}

static int take_status(void *arg, const struct kinf_feed_info *status)
{
	struct kinf_informer *informer = arg;
	struct feed_told *told = find_told(informer, status->feed);

	if (!told)
		return 0;
	bool differs = strcmp(told->status.state, status->state) != 0;
	told->seen = true;
	told->status = *status;
	return differs ? tell_state(informer, status) : 0;
}

/* Those that no longer stand behind the name are gone, and that is said once. */
static int tell_gone(struct kinf_informer *informer)
{
	for (size_t i = 0; i < informer->n_told;) {
		struct feed_told told = informer->told[i];

		if (told.seen) {
			informer->told[i++].seen = false;
			continue;
		}
		informer->told[i] = informer->told[--informer->n_told];
		(void)snprintf(told.status.state, sizeof(told.status.state), "gone");
		if (tell_state(informer, &told.status) == END)
			return END;
	}
	return 0;
}

/* ANY false: no feed stands behind the name. */
static int tell_states(struct kinf_informer *informer, bool any)
{
	int r = 0;

	if (!informer->on_state)
		return 0;
	if (any)
		r = kinf_feed_status(informer->snapshot, informer->feed, take_status, informer);
	if (r == 0)
		r = tell_gone(informer);
	return r == END ? 0 : r;
}

/* ---- looking ---- */

int informer_look_up(struct kinf_informer *informer)
{
	const struct feed_set *set;
	int r = take_snapshot(informer);

	if (r != 0)
		return r;
	r = feed_set_get(informer->snapshot, informer->feed, &set);
	if (r == FOUND || r == AGAIN) /* none is listed yet: their walks wait for it */
		r = take_feeds(informer, set);
	informer->looked_ns = 0; /* states at the next look */
	int reset = kinf_snapshot_reset(informer->snapshot);
	return r == 0 ? reset : r;
}

static bool is_followed(const struct kinf_informer *informer, uint32_t feed)
{
	for (size_t i = 0; i < informer->n_feeds; i++)
		if (informer->feeds[i] == feed)
			return true;
	return false;
}

/* The configuration may have given the name another namespace. One that goes is the walks' to tell. */
static bool has_come(const struct kinf_informer *informer, const struct feed_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->feeds[i].visible && !is_followed(informer, set->feeds[i].definition.id))
			return true;
	return false;
}

int informer_look_again(struct kinf_informer *informer, uint64_t now)
{
	const struct feed_set *set;

	if (informer->looked_ns && now - informer->looked_ns < LOOK_EVERY_NS)
		return 0;
	informer->looked_ns = now;
	int r = take_snapshot(informer);
	if (r != 0)
		return r == AGAIN ? 0 : r;
	r = feed_set_get(informer->snapshot, informer->feed, &set);
	if (r == FOUND || r == AGAIN)
		informer_resync_learn(informer, set);
	if (informer->feeds && (r == FOUND || r == AGAIN) && has_come(informer, set))
		r = GONE;
	if (r == FOUND || r == AGAIN || r == GONE || r == ERR_NO_FEED) {
		int told = tell_states(informer, r != ERR_NO_FEED);

		if (told < 0)
			r = told;
	}
	if (informer->snapshot) {
		int reset = kinf_snapshot_reset(informer->snapshot);
		if (r >= 0 && reset < 0)
			r = reset;
	}
	return r == AGAIN ? 0 : r;
}

void informer_feeds_release(struct kinf_informer *informer)
{
	kinf_snapshot_close(&informer->snapshot);
	free(informer->feeds);
	free(informer->told);
}
