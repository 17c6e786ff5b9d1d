/* SPDX-License-Identifier: Apache-2.0 */
#include "store/read/names.h"

#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/env/env.h"
#include "store/read/snapshot_internal.h"

#define NAMES_MAGIC 0x6b6e616du
#define ROOM        (2 * AHEAD_MOST)
#define CPU_AHEAD   4 /* versions prefetched by the CPU */

struct names {
	uint32_t magic;
	struct snapshot *snapshot;
	struct index_walk *walk;
	names_accept_fn *accept; /* NULL: all */
	void *arg;
	struct snapshot_object objects[ROOM]; /* a ring */
	unsigned first, n;                    /* read and not given */
	unsigned step;                        /* how many are read at once */
	int end; /* the state after them: FOUND: more; END; an error, with its sentence in WHY */
	struct err_kept why;
	struct ahead ahead;
};

int names_open(struct snapshot *snapshot, uint32_t feed, struct bytes prefix, struct bytes from,
	names_accept_fn *accept, void *arg, struct names **ret_names)
{
	CLEANUP(names_close) struct names *names = calloc(1, sizeof(*names));

	if (!names)
		return err_set(-ENOMEM, "the names of feed %u", feed);
	names->magic = NAMES_MAGIC;
	names->snapshot = snapshot;
	names->accept = accept;
	names->arg = arg;
	names->step = AHEAD_FIRST;
	names->end = FOUND;
	int r = index_names(snapshot_index(snapshot), snapshot_index_txn(snapshot), feed, prefix,
		from, &names->walk);
	if (r < 0)
		return r;
	*ret_names = TAKE(names);
	return 0;
}

/* Announces the versions of the last COUNT objects. */
static void names_announce(struct names *names, unsigned count)
{
	struct txn *txn = snapshot_journal_txn(names->snapshot);

	for (unsigned i = names->n - count; i < names->n; i++) {
		const struct index_entry *entry = &names->objects[(names->first + i) % ROOM].entry;

		if (snapshot_has_place(names->snapshot, entry))
			ahead_add(&names->ahead, txn, entry->place, entry->place_size);
	}
	ahead_send(&names->ahead, txn);
}

/* Examines the next objects; for a small limit or feed it examines a few more than it gives. */
static void names_read(struct names *names)
{
	unsigned before = names->n;

	for (unsigned i = 0; i < names->step && names->end == FOUND; i++) {
		struct snapshot_object *object = &names->objects[(names->first + names->n) % ROOM];

		int r = names->end = index_walk_next(names->walk, &object->key, &object->entry);
		if (r == FOUND && names->accept)
			r = names->accept(names->arg, object->key, &object->entry);
		names->n += r == FOUND;
		if (r < 0)
			names->end = r;
	}
	if (names->end < 0)
		err_keep(&names->why);
	if (ahead_is_cold(&names->ahead))
		names_announce(names, names->n - before);
	names->step = ahead_grow(names->step);
}

int names_next(struct names *names, struct bytes *ret_key, struct index_entry *ret_entry)
{
	CHECK_OBJ(names, NAMES_MAGIC);
	if (names->n < names->step && names->end == FOUND)
		names_read(names);
	while (!names->n && names->end == FOUND)
		names_read(names);
	if (!names->n && names->end < 0)
		err_restore(&names->why);
	if (!names->n)
		return names->end;
	const struct snapshot_object *object = &names->objects[names->first];
	if (names->n > CPU_AHEAD)
		snapshot_prefetch(
			names->snapshot, &names->objects[(names->first + CPU_AHEAD) % ROOM].entry);
	*ret_key = object->key;
	*ret_entry = object->entry;
	names->first = (names->first + 1) % ROOM;
	names->n--;
	return FOUND;
}

void names_close(struct names **names)
{
	if (!*names)
		return;
	struct names *n = TAKE(*names);

	CHECK_OBJ(n, NAMES_MAGIC);
	index_walk_close(&n->walk);
	n->magic = 0;
	free(n);
}
