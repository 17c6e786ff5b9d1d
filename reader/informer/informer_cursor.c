/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The named cursor of an informer: for each feed the position of the slowest handler. It is written
 * only while all handlers are synced: before, there is no position to continue from.
 *
 * Positions move also without callbacks. Then the cursor is written every 5 s, even if the user
 * commits by hand, and the journal can drop history.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/err.h"
#include "common/proc.h"
#include "reader/informer/informer.h"

#define SILENT_NS UINT64_C(5000000000)
/* written again unmoved, because cursors expire (cursorExpiry) */
#define AGAIN_NS UINT64_C(60000000000)

int informer_cursor_begin(struct kinf_informer *informer, struct follow_options *ret_options)
{
	struct cursor_file *begin = &informer->begin;

	if (informer->from && !begin->n) {
		/* A cursor with every feed at the caller's event number. */
		cursor_release(begin);
		begin->positions = calloc(informer->n_feeds + 1, sizeof(*begin->positions));
		if (!begin->positions)
			return err_set(-ENOMEM, "position of '%s'", informer->feed);
		for (size_t i = 0; i < informer->n_feeds; i++)
			begin->positions[begin->n++] =
				(struct follow_position){informer->feeds[i], informer->from};
		memcpy(begin->uuid, informer->journal, sizeof(begin->uuid));
	}
	if (!begin->n)
		return NOT_FOUND;
	if (!cursor_is_of(begin, informer->feeds, informer->n_feeds))
		return LAPPED;
	/* Before the first list of a feed a follower at the event number knew at most an earlier
	 * feed of the name; after the newest event it was in another store. */
	if (informer->from &&
		(informer->from < informer->listed || informer->from > informer->last))
		return LAPPED;
	*ret_options = (struct follow_options){
		.from = begin->positions, .n_from = begin->n, .from_uuid = begin->uuid};
	return FOUND;
}

/* ---- writing ------------------------------------------------------------ */

/* Computes the smallest position of each feed into informer->now. Returns: 0; AGAIN: a handler is
 * not synced, or there is none. */
static int cursor_gather(struct kinf_informer *informer)
{
	bool any = false;

	if (!informer->feeds)
		return AGAIN;
	int r = ARRAY_ROOM(informer->now, 0, informer->now_room, informer->n_feeds + 1,
		"the positions of a cursor");
	if (r < 0)
		return r;
	struct follow_position *now = informer->now;
	for (struct kinf_handler *h = informer->first; h; h = h->next) {
		const struct follow_position *positions;

		if (h->removed)
			continue;
		if (!handler_is_synced(h) ||
			follow_positions(h->follow, &positions) != informer->n_feeds)
			return AGAIN;
		for (size_t i = 0; i < informer->n_feeds; i++)
			if (!any || positions[i].seq < now[i].seq)
				now[i] = positions[i];
		any = true;
	}
	return any ? 0 : AGAIN;
}

int informer_cursor_save(struct kinf_informer *informer)
{
	int r = cursor_gather(informer);

	if (r != 0)
		return r;
	informer->saved_ns = proc_monotonic_ns();
	informer->handed_out = false;
	bool moved = informer->n_saved != informer->n_feeds ||
		     memcmp(informer->saved, informer->now,
			     informer->n_feeds * sizeof(*informer->now)) != 0;
	if (!moved && informer->saved_ns - informer->written_ns < AGAIN_NS)
		return 0;
	r = cursor_save(store_home(informer->kinf->store), informer->cursor, informer->journal,
		informer->now, informer->n_feeds);
	if (r < 0) {
		informer->handed_out = true;
		return r;
	}
	informer->written_ns = informer->saved_ns;
	struct follow_position *before = informer->saved;
	size_t before_room = informer->saved_room;
	informer->saved = informer->now;
	informer->saved_room = informer->now_room;
	informer->n_saved = informer->n_feeds;
	informer->now = before;
	informer->now_room = before_room;
	return 0;
}

int informer_cursor_save_when_due(struct kinf_informer *informer, uint64_t now)
{
	if (!informer->cursor)
		return 0;
	if (informer->handed_out ? (informer->flags & KINF_COMMIT_BY_HAND) != 0
				 : now - informer->saved_ns < SILENT_NS)
		return 0;
	int r = informer_cursor_save(informer);
	return r == AGAIN ? 0 : r;
}
