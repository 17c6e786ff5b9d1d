/* SPDX-License-Identifier: Apache-2.0 */
/* The feeds of an informer's name, and their states. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/err.h"
#include "reader/informer/informer.h"

#define CHECK_EVERY_NS UINT64_C(1000000000)

static int informer_set_feeds(struct kinf_informer *informer, const struct feed_set *set)
{
	uint32_t *feeds = calloc(set->n + 1, sizeof(*feeds));

	if (!feeds)
		return err_set(-ENOMEM, "feeds of '%s'", informer->feed);
	informer->listed = 0;
	for (size_t i = 0; i < set->n; i++) {
		uint64_t first_list = set->feeds[i].checkpoint.first_list;
		uint64_t listed = first_list ? first_list : UINT64_MAX;

		feeds[i] = set->feeds[i].definition.id;
		if (listed > informer->listed)
			informer->listed = listed;
	}
	free(informer->feeds);
	informer->feeds = feeds;
	informer->n_feeds = set->n;
	informer->last = snapshot_last(informer->snapshot->snapshot);
	memcpy(informer->journal, snapshot_uuid(informer->snapshot->snapshot),
		sizeof(informer->journal));
	informer_resync_update(informer, set);
	return 0;
}

/* ---- states ------------------------------------------------------------- */

/* Returns: 0; END: the callback has freed the informer. */
static int informer_check_state(void *arg, const struct kinf_feed_info *status)
{
	struct kinf_informer *informer = arg;
	size_t i = 0;

	while (i < informer->n_states && informer->states[i].feed != status->feed)
		i++;
	if (i == informer->n_states) {
		int r = ARRAY_ADD(informer->states, informer->n_states, informer->states_room,
			((struct kinf_feed_info){.feed = status->feed}), "the states of feeds");

		if (r < 0) {
			err_ignore(r, "the state is reported a second later");
			return 0;
		}
	}
	bool differs = strcmp(informer->states[i].state, status->state) != 0;
	informer->states[i] = *status;
	if (differs)
		informer->on_state(informer->arg, status);
	return differs && informer->freed ? END : 0;
}

/* Reports each removed feed of the name once as gone. Returns: 0; END: the callback has freed the
 * informer. */
static int informer_report_gone(struct kinf_informer *informer, const struct feed_set *set)
{
	for (size_t i = 0; i < informer->n_states;) {
		struct kinf_feed_info status = informer->states[i];
		bool there = false;

		for (size_t k = 0; set && k < set->n; k++)
			there |= set->feeds[k].definition.id == status.feed;
		if (there) {
			i++;
			continue;
		}
		informer->states[i] = informer->states[--informer->n_states];
		(void)snprintf(status.state, sizeof(status.state), "gone");
		informer->on_state(informer->arg, &status);
		if (informer->freed)
			return END;
	}
	return 0;
}

/* ---- feeds -------------------------------------------------------------- */

int informer_find_feeds(struct kinf_informer *informer)
{
	const struct feed_set *set;
	int r = kinf_snapshot_take(informer->kinf, &informer->snapshot);

	if (r != 0)
		return r;
	r = feed_set_get(informer->snapshot, informer->feed, &set);
	if (r == FOUND || r == AGAIN) /* AGAIN: the walks wait for the first lists */
		r = informer_set_feeds(informer, set);
	informer->checked_ns = 0; /* the next check reports states at once */
	int reset = kinf_snapshot_reset(informer->snapshot);
	return r == 0 ? reset : r;
}

int informer_check_feeds(struct kinf_informer *informer, uint64_t now)
{
	const struct feed_set *set;

	if (informer->checked_ns && now - informer->checked_ns < CHECK_EVERY_NS)
		return 0;
	informer->checked_ns = now;
	int r = kinf_snapshot_take(informer->kinf, &informer->snapshot);
	if (r != 0)
		return r == AGAIN ? 0 : r;
	r = feed_set_get(informer->snapshot, informer->feed, &set);
	if (r == FOUND || r == AGAIN) {
		informer_resync_update(informer, set);
		/* The name may stand for an unfollowed feed, e.g. of a newly configured namespace.
		 * The walks notice a removed feed. */
		for (size_t i = 0; informer->feeds && r != GONE && i < set->n; i++) {
			bool followed = !set->feeds[i].visible;

			for (size_t k = 0; k < informer->n_feeds; k++)
				followed |= informer->feeds[k] == set->feeds[i].definition.id;
			r = followed ? r : GONE;
		}
	}
	if (informer->on_state && (r == FOUND || r == AGAIN || r == GONE || r == ERR_NO_FEED)) {
		/* A feed comes after the one it replaces, so the last state of a name is not
		 * "gone". */
		int state = informer_report_gone(informer, r != ERR_NO_FEED ? set : NULL);

		if (state == 0 && r != ERR_NO_FEED)
			state = kinf_feed_status(
				informer->snapshot, informer->feed, informer_check_state, informer);
		if (state < 0)
			r = state;
	}
	if (informer->snapshot) {
		int reset = kinf_snapshot_reset(informer->snapshot);
		if (r >= 0 && reset < 0)
			r = reset;
	}
	return r == AGAIN ? 0 : r;
}
