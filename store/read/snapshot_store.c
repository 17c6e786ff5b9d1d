/* SPDX-License-Identifier: Apache-2.0 */
/* The handle on a store: opens the current index and journal, and lends them to snapshots. */
#include "store/read/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/env/forks.h"
#include "store/read/snapshot_internal.h"

#define REOPEN_NS    1000000000u /* the directories are examined this often */
#define LOG_CHECK_NS 50000000u   /* between two attempts to open a pair while they fail */
/* the open pair is read for this long if the next can't be opened */
#define FAILING_NS 1000000000u

/* ---- the current pair --------------------------------------------------- */

static void store_close_pair(struct store_pair **pair)
{
	struct store_pair *p = *pair;

	if (!p)
		return;
	journal_close(&p->journal);
	index_close(&p->index);
	free(p);
	*pair = NULL;
}

/* The caller holds store->lock. */
static void store_unref_pair(struct store_pair **pair)
{
	struct store_pair *p = TAKE(*pair);

	if (p && --p->refs == 0)
		store_close_pair(&p);
}

/* Returns: 0; NOT_FOUND: there is no index, or its journal is gone; errors. */
static int store_open_pair(struct home *home, struct store_pair **ret_pair)
{
	CLEANUP(store_close_pair) struct store_pair *pair = calloc(1, sizeof(*pair));
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct index_meta meta;

	if (!pair)
		return err_set(-ENOMEM, "opening the store");
	int r = index_open_read(home, &pair->index);

	if (r == 0)
		r = txn_begin_read(index_env(pair->index), &txn);
	if (r == 0)
		r = index_meta(pair->index, txn, &meta);
	if (txn)
		r = index_advise(pair->index, txn_result(txn, r));
	txn_abort(&txn);
	if (r < 0)
		return err_add(r, "store '%s'", home_path(home));
	if (r == 0)
		r = journal_open_read(home, meta.journal, &pair->journal);
	if (r != 0)
		return r;
	/* A reader may live in a container with little memory: read-ahead by the kernel would evict
	 * pages in use. names.h reads ahead. */
	env_expect_random(index_env(pair->index), true);
	env_expect_random(journal_env(pair->journal), true);
	pair->refs = 1;
	*ret_pair = TAKE(pair);
	return 0;
}

static struct store_identity store_identity_of(int directory_fd)
{
	struct stat st;

	if (directory_fd < 0 || fstatat(directory_fd, "CURRENT", &st, 0) < 0)
		return (struct store_identity){0};
	return (struct store_identity){.inode = st.st_ino, .modified = st.st_mtim};
}

static bool store_same_identity(const struct store_identity *a, const struct store_identity *b)
{
	return a->inode == b->inode && a->modified.tv_sec == b->modified.tv_sec &&
	       a->modified.tv_nsec == b->modified.tv_nsec;
}

bool store_pair_is_untrusted(const struct store_pair *pair)
{
	return index_is_untrusted(pair->index) || journal_is_untrusted(pair->journal);
}

/* A reader without pins is right only while there is no writer. */
bool store_is_written(const struct home *home)
{
	return home_role_holder(home, HOME_REFLECTOR) || home_role_holder(home, HOME_PROCESSOR);
}

/* Opens the current pair unless it is open. The caller holds store->lock: other threads wait, some
 * milliseconds, when CURRENT has changed. */
static int store_open_current(struct store *store, bool force)
{
	/* The identities first: a later change of CURRENT is seen the next time. */
	struct store_identity index_current = store_identity_of(home_index_fd(store->home));
	struct store_identity journal_current = store_identity_of(home_journal_fd(store->home));

	uint64_t now = proc_monotonic_ns();

	/* The directories may be other ones: one moved aside keeps its CURRENT, a removed one has
	 * none. The second is examined at once, the first now and then. */
	if (!index_current.inode || !journal_current.inode ||
		now - store->reopened_ns >= REOPEN_NS) {
		store->reopened_ns = now;
		err_ignore(
			home_reopen(store->home), "this store is read until the next one exists");
		index_current = store_identity_of(home_index_fd(store->home));
		journal_current = store_identity_of(home_journal_fd(store->home));
	}
	store->checked_ns = proc_monotonic_ns();
	if (store->pair && !force && store_same_identity(&index_current, &store->index_current) &&
		store_same_identity(&journal_current, &store->journal_current))
		return 0;
	CLEANUP(store_close_pair) struct store_pair *pair = NULL;
	int r = store_open_pair(store->home, &pair);
	if (r == 0)
		store->copy = !env_is_pinned(index_env(pair->index)) ||
			      !env_is_pinned(journal_env(pair->journal));
	/* The directory for pins may have gone since it was found, or a daemon has started. */
	if (r == 0 && store->copy && store_is_written(store->home)) {
		r = home_check_all_pins(store->home);
		if (r == 0)
			r = err_say(ERR_LOCKED,
				"the store '%s' was opened just when its daemons began to use it: "
				"try again",
				home_path(store->home));
	}
	if (r != 0)
		return r;
	store_unref_pair(&store->pair);
	store->pair = TAKE(pair);
	store->index_current = index_current;
	store->journal_current = journal_current;
	return 0;
}

/* ---- the store ---------------------------------------------------------- */

void store_ref(struct store *store)
{
	(void)pthread_mutex_lock(&store->lock);
	store->refs++;
	(void)pthread_mutex_unlock(&store->lock);
}

void store_unref(struct store *store)
{
	bool forked = store->forks != forks_count();

	/* In a forked child, a lost thread may hold the lock for ever, in the middle of a change.
	 * Then the store stays as it is: a copy of the parent's memory. */
	if (forked && pthread_mutex_trylock(&store->lock) != 0)
		return;
	if (!forked)
		(void)pthread_mutex_lock(&store->lock);
	bool last = --store->refs == 0;

	if (last)
		store_unref_pair(&store->pair);
	(void)pthread_mutex_unlock(&store->lock);
	if (!last)
		return;
	home_close(&store->home);
	if (!forked)
		(void)pthread_mutex_destroy(&store->lock);
	store->magic = 0;
	free(store);
}

void store_close(struct store **store)
{
	if (!*store)
		return;
	CHECK_OBJ(*store, STORE_MAGIC);
	store_unref(TAKE(*store));
}

int store_open(const char *directory, const struct store_options *options, struct store **ret_store)
{
	CLEANUP(store_close) struct store *store = calloc(1, sizeof(*store));
	struct home_options how = {0};

	if (!store)
		return err_set(-ENOMEM, "opening the store");
	store->magic = STORE_MAGIC;
	store->refs = 1;
	store->forks = forks_count();
	(void)pthread_mutex_init(&store->lock, NULL); /* a default one cannot fail on Linux */
	if (options)
		store->options = *options;
	how.unchecked = store->options.unchecked;
	int r = home_open(directory, &how, &store->home);

	if (r < 0)
		return r;
	r = home_check_all_pins(store->home);
	store->copy = r < 0;
	if (store->copy && !store_is_written(store->home)) {
		err_ignore(r, "no daemon runs: it is read without pins");
		r = 0;
	}
	(void)pthread_mutex_lock(&store->lock);
	if (r == 0)
		r = store_open_current(store, false);
	(void)pthread_mutex_unlock(&store->lock);
	if (r < 0)
		return r;
	*ret_store = TAKE(store);
	return 0;
}

struct home *store_home(struct store *store)
{
	CHECK_OBJ(store, STORE_MAGIC);
	return store->home;
}

bool store_is_untrusted(struct store *store)
{
	CHECK_OBJ(store, STORE_MAGIC);
	(void)pthread_mutex_lock(&store->lock);
	bool result = store->pair && store_pair_is_untrusted(store->pair);
	bool has_pair = store->pair != NULL;
	(void)pthread_mutex_unlock(&store->lock);
	if (has_pair || !home_is_unchecked(store->home))
		return result;
	CLEANUP(journal_close)
	struct journal *journal = NULL; /* without an index it can be read by itself */
	int r = journal_open_read(store->home, NULL, &journal);
	err_ignore(r, "a journal that can't be opened is no copy to check");
	return r == FOUND && journal_is_untrusted(journal);
}

void store_mismatch(struct store *store, char *text, size_t size)
{
	CHECK_OBJ(store, STORE_MAGIC);
	(void)pthread_mutex_lock(&store->lock);
	(void)snprintf(text, size, "%s", store->mismatch);
	(void)pthread_mutex_unlock(&store->lock);
}

bool store_is_copy(const struct store *store)
{
	CHECK_OBJ(store, STORE_MAGIC);
	return store->copy;
}

/* ---- pairs for snapshots ------------------------------------------------ */

/* Re-reads CURRENT at most once a millisecond; after a failure on every call, to give each caller
 * the error. The caller holds store->lock. */
static int store_check_current(struct store *store, bool force)
{
	if (!force && store->pair && !store->failing_ns &&
		proc_monotonic_ns() - store->checked_ns < CURRENT_CHECK_NS)
		return 0;
	int r;
	if (store->copy && store_is_written(store->home)) {
		r = home_check_all_pins(store->home);
		if (r < 0) {
			store->failing_ns = 1; /* forever: it must not be read any more */
			return r;
		}
		force = true; /* its daemons have made pins possible */
		store->failing_ns = 0;
	}
	r = store_open_current(store, force);
	if (r >= 0)
		store->failing_ns = 0;
	else if (!store->failing_ns)
		store->failing_ns = proc_monotonic_ns();
	return r;
}

int store_join(
	struct store *store, bool force, struct store_pair *held, struct store_pair **ret_pair)
{
	(void)pthread_mutex_lock(&store->lock);
	int r = store_check_current(store, force);
	/* The open pair is read on while CURRENT's journal does not exist yet, and for a moment
	 * while the current pair can't be opened. No longer: nothing would tell its age. */
	bool usable =
		store->pair && (r >= 0 || proc_monotonic_ns() - store->failing_ns < FAILING_NS);
	if (usable && store->pair != held)
		store->pair->refs++;
	if (usable)
		*ret_pair = store->pair;
	(void)pthread_mutex_unlock(&store->lock);
	if (!usable)
		return r < 0 ? r : AGAIN;
	err_ignore(r, "the open pair is read for a moment longer");
	return 0;
}

/* Returns whether the open journal may be followed although the current pair can't be opened:
 * the reflector still writes it, or did so a moment ago. The caller holds store->lock. */
static bool store_may_follow(struct store *store)
{
	struct err_kept failure;

	if (!store->pair || store->copy)
		return false;
	err_keep(&failure);
	bool result = journal_check(store->pair->journal, store->home) == 0 ||
		      proc_monotonic_ns() - store->failing_ns < FAILING_NS;
	err_restore(&failure);
	return result;
}

int store_join_log(struct store *store, struct store_pair *held, struct store_pair **ret_pair)
{
	int r = 0;

	(void)pthread_mutex_lock(&store->lock);
	uint64_t pause = store->failing_ns && !store->copy ? LOG_CHECK_NS : CURRENT_CHECK_NS;
	if (!store->pair || proc_monotonic_ns() - store->checked_ns >= pause)
		r = store_check_current(store, false);
	if (r < 0 && store_may_follow(store)) {
		err_ignore(r, "the open journal is followed meanwhile");
		r = 0;
	}
	bool usable = store->pair && r >= 0;
	if (usable && store->pair != held)
		store->pair->refs++;
	if (usable)
		*ret_pair = store->pair;
	(void)pthread_mutex_unlock(&store->lock);
	return usable ? 0 : r < 0 ? r : AGAIN;
}

void store_leave(struct store *store, struct store_pair **pair)
{
	(void)pthread_mutex_lock(&store->lock);
	store_unref_pair(pair);
	(void)pthread_mutex_unlock(&store->lock);
}
