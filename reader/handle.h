/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of libkinf share: the handles behind kinf.h, how a failure gets into a handle, and
 * the feeds behind a name as one snapshot sees them.
 */
#ifndef READER_HANDLE_H
#define READER_HANDLE_H

#include "common/check.h"
#include "common/value/selector.h"
#include "common/stats.h"
#include "reader/kinf.h"
#include "store/read/snapshot.h"

#define KINF_MAGIC          0x6b696e66u
#define KINF_SNAPSHOT_MAGIC 0x6b736e61u
#define KINF_LIST_MAGIC     0x6b6c6973u

struct kinf {
	uint32_t magic;
	unsigned forks; /* env_forks() when it was opened: a child of fork must not use it */
	bool check;
	struct store *store; /* NULL when opening failed: only kinf_error works then */
	char *directory;
};

/* The feeds a name stands for; found once per snapshot, the texts are the snapshot's. */
struct feed_set {
	char *name;
	struct snapshot_feed *feeds;
	size_t n;
};

/* One committed state of the store: while it is the same, so are the feeds. */
struct store_state {
	uint8_t journal[16];
	uint64_t index_txn, journal_txn, taken;
	uint32_t index_generation, journal_generation;
};

struct kinf_snapshot {
	uint32_t magic;
	struct kinf *kinf;
	struct snapshot *snapshot;
	bool held;          /* taken and not reset */
	uint64_t taken_as;  /* counts renewals: lists of an earlier one are over */
	struct feed_set **sets; /* each on its own: callbacks may read, and so add to them */
	size_t n_sets;
	struct store_state sets_of; /* the state they were read from */
};

/* Keeps the thread's sentence for CODE as that of its last error on the handle when CODE is one.
 * Returns CODE. */
int kinf_result(struct kinf *kinf, int code);

/* This process is a child of the one that opened it. For signal handlers too. */
bool kinf_is_forked(const struct kinf *kinf);
/* 0, or ERR_FORKED. */
int kinf_alive(struct kinf *kinf);
/* 0; ERR_FORKED; -EINVAL: it was reset, or could not be renewed, and holds nothing to read. */
int kinf_held(struct kinf_snapshot *snapshot);

/* FOUND; AGAIN: none of them has been listed yet; ERR_NO_FEED. NAME NULL: all. Borrowed from the
 * snapshot until it is renewed, reset or closed, whatever else is read from it. */
int feed_set_get(struct kinf_snapshot *snapshot, const char *name, const struct feed_set **ret_set);
/* Its first list has not ended, and is being tried: what it holds is not known yet. */
bool feed_is_listing(const struct snapshot_feed *feed);
void feed_sets_release(struct kinf_snapshot *snapshot);

/* "namespace/name", or "name" where NAMESPACE_ is NULL or "", into KEY; 0 or ERR_TOO_LARGE. */
int key_join(const char *namespace_, const char *name, char key[JOURNAL_KEY_MAX],
	struct bytes *ret_key);

/* Whose status page one finds in the store's runtime folder, and whether he lives. */
enum daemon_life {
	DAEMON_DEAD,
	DAEMON_ALIVE,
	DAEMON_OTHERS, /* of the store that this one is a copy of: nothing in the page is about ours */
};
enum daemon_life daemon_life(const struct home *home, enum home_role role,
	const struct stats_process *page);

void object_from_record(const struct record *record, struct kinf_object *ret_object);

#endif
