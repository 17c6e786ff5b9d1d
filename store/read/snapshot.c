/* SPDX-License-Identifier: Apache-2.0 */
#include "store/read/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/read/snapshot_parts.h"

#define CURRENT_CHECK_NS 1000000u /* CURRENT is looked at this often, not at each renewal */
#define REOPEN_NS        1000000000u /* and whether the directories are still those of the store, this often */
#define FAILING_NS 1000000000u /* what was open is read on for so long when the next can't be opened */
#define TRIES            32       /* to get a journal that goes with the index */

/* ---- the pair that CURRENT names ---- */

static void pair_close(struct pair **pair)
{
	struct pair *p = *pair;

	if (!p)
		return;
	journal_close(&p->journal);
	index_close(&p->index);
	free(p);
	*pair = NULL;
}

/* The caller holds store->lock. */
static void pair_unref(struct pair **pair)
{
	struct pair *p = TAKE(*pair);

	if (p && --p->refs == 0)
		pair_close(&p);
}

static int pair_journal(struct pair *pair, struct home *home)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct index_meta meta;
	int r = txn_begin_read(index_env(pair->index), &txn);

	if (r == 0)
		r = index_meta(pair->index, txn, &meta);
	if (r < 0)
		return r;
	txn_abort(&txn);
	return journal_open_read(home, meta.journal, &pair->journal);
}

/* NOT_FOUND when there is no index, or its journal is gone. */
static int pair_open(struct home *home, struct pair **ret_pair)
{
	CLEANUP(pair_close) struct pair *pair = calloc(1, sizeof(*pair));

	if (!pair)
		return err_set(-ENOMEM, "opening the store");
	int r = index_open_read(home, &pair->index);

	if (r == 0)
		r = pair_journal(pair, home);
	if (r != 0)
		return r;
	pair->refs = 1;
	*ret_pair = TAKE(pair);
	return 0;
}

static struct file_identity identity_of(int directory_fd)
{
	struct stat st;

	if (directory_fd < 0 || fstatat(directory_fd, "CURRENT", &st, 0) < 0)
		return (struct file_identity){0};
	return (struct file_identity){.inode = st.st_ino, .modified = st.st_mtim};
}

static bool same_identity(const struct file_identity *a, const struct file_identity *b)
{
	return a->inode == b->inode && a->modified.tv_sec == b->modified.tv_sec &&
	       a->modified.tv_nsec == b->modified.tv_nsec;
}

/*
 * In a directory that was moved aside CURRENT never changes again, and in one that was removed it is missing:
 * opens the store again, if it was replaced, at once in the second case, now and then in the first. True: CURRENT
 * has to be examined again.
 */
static bool store_reopen(struct store *store, const struct file_identity *index_current,
	const struct file_identity *journal_current)
{
	uint64_t now = proc_monotonic_ns();

	if (index_current->inode && journal_current->inode && now - store->reopened_ns < REOPEN_NS)
		return false;
	store->reopened_ns = now;
	err_ignore(home_reopen(store->home), "until the next store is there this one goes on being read");
	return true;
}

/*
 * Opens the pair that CURRENT names, unless it is open. The caller holds store->lock, which is given back while
 * the pair is opened: that may have to wait for another process (open_lock.h), and other threads of this one go
 * on reading from the pair that is open. Only one thread opens at a time.
 */
static int store_open_current(struct store *store, bool force)
{
	/* The identities first: a CURRENT that is replaced after this is seen as new the next time. */
	struct file_identity index_current = identity_of(home_index_fd(store->home));
	struct file_identity journal_current = identity_of(home_journal_fd(store->home));

	if (store_reopen(store, &index_current, &journal_current)) {
		index_current = identity_of(home_index_fd(store->home));
		journal_current = identity_of(home_journal_fd(store->home));
	}
	store->checked_ns = proc_monotonic_ns();
	if (store->pair && !force && same_identity(&index_current, &store->index_current) &&
		same_identity(&journal_current, &store->journal_current))
		return 0;
	struct pair *pair = NULL;
	store->opening = true;
	(void)pthread_mutex_unlock(&store->lock);
	int r = pair_open(store->home, &pair);
	(void)pthread_mutex_lock(&store->lock);
	store->opening = false;
	store->open_result = r;
	err_keep(&store->open_error);
	(void)pthread_cond_broadcast(&store->opened); /* can't fail */
	if (r != 0)
		return r;
	pair_unref(&store->pair);
	store->pair = pair;
	store->index_current = index_current;
	store->journal_current = journal_current;
	return 0;
}

/* ---- the store ---- */

static void store_unref(struct store *store)
{
	(void)pthread_mutex_lock(&store->lock);
	bool last = --store->refs == 0;

	if (last)
		pair_unref(&store->pair);
	(void)pthread_mutex_unlock(&store->lock);
	if (!last)
		return;
	home_close(&store->home);
	(void)pthread_cond_destroy(&store->opened);
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

/* Without locks nobody would know that we read: only right when nobody writes. */
static int refuse_running_copy(struct home *home)
{
	for (int role = 0; role < HOME_ROLE_MAX; role++) {
		int pid = home_role_holder(home, (enum home_role)role);

		if (pid != 0)
			return err_say(ERR_LOCKED,
				"the store '%s' cannot be written by this user but "
				"its daemons run: read it as its owner or reader group, "
				"or read a copy of it",
				home_path(home));
	}
	return 0;
}

int store_open(const char *directory, const struct store_options *options, struct store **ret_store)
{
	CLEANUP(store_close) struct store *store = calloc(1, sizeof(*store));
	struct home_options how = {0};

	if (!store)
		return err_set(-ENOMEM, "opening the store");
	store->magic = STORE_MAGIC;
	store->refs = 1;
	(void)pthread_mutex_init(&store->lock, NULL); /* a default one cannot fail on Linux */
	(void)pthread_cond_init(&store->opened, NULL); /* likewise */
	if (options)
		store->options = *options;
	int r = home_open(directory, &how, &store->home);

	if (r < 0)
		return r;
	store->copy = !home_is_writable(store->home);
	if (store->copy)
		r = refuse_running_copy(store->home);
	(void)pthread_mutex_lock(&store->lock);
	if (r == 0)
		r = store_open_current(store, false);
	(void)pthread_mutex_unlock(&store->lock);
	if (r < 0)
		return err_add(r, "opening the store '%s'", directory);
	*ret_store = TAKE(store);
	return 0;
}

struct home *store_home(struct store *store)
{
	CHECK_OBJ(store, STORE_MAGIC);
	return store->home;
}

bool store_is_copy(const struct store *store)
{
	CHECK_OBJ(store, STORE_MAGIC);
	return store->copy;
}

/* ---- taking a snapshot ---- */

static uint64_t feed_visible(const struct snapshot *s, const struct index_feed *feed)
{
	if (feed->listed == 0)
		return 0;
	return feed->list_begin ? feed->list_begin - 1 : s->index.taken;
}

static int add_feed(void *arg, const struct index_feed *feed)
{
	struct snapshot *s = arg;

	if (s->n_feeds == s->feeds_room) {
		size_t room = s->feeds_room ? s->feeds_room * 2 : 16;
		struct index_feed *moved = reallocarray(s->feeds, room, sizeof(*moved));

		if (!moved)
			return err_set(-ENOMEM, "taking a snapshot");
		s->feeds = moved;
		s->feeds_room = room;
	}
	s->feeds[s->n_feeds++] = *feed;
	if (feed->listed && !feed->removed && feed_visible(s, feed) < s->oldest)
		s->oldest = feed_visible(s, feed);
	return 0;
}

/* The feeds' rows move only with `taken`. Its value is compared too, because LMDB may give a tree
 * that is newer than the transaction's id says (docs/architecture.md, LMDB). */
static int read_feeds(struct snapshot *s)
{
	uint64_t id = txn_id(s->index_txn);

	if (s->feeds_txn == id && s->feeds_taken == s->index.taken)
		return 0;
	s->feeds_txn = 0;
	s->n_feeds = 0;
	s->oldest = s->index.taken;
	int r = index_each_feed(s->pair->index, s->index_txn, add_feed, s);

	if (r < 0)
		return r;
	s->feeds_txn = id;
	s->feeds_taken = s->index.taken;
	return 0;
}

static int begin_or_renew(struct env *env, struct txn **txn)
{
	return *txn ? txn_renew(*txn) : txn_begin_read(env, txn);
}

/*
 * The hints that go with what was just taken. They are opened for each snapshot on its own, so that a
 * larger table in their place is nobody else's matter. A copy has none: nobody says which boot its
 * bytes are of.
 */
static void look_for_hints(struct snapshot *s)
{
	s->use_hints = s->hints;
	if (s->store->copy || (s->hints && hints_taken(s->hints) >= s->index.taken))
		return;
	s->use_hints = NULL;
	if (s->hints_looked_ns && s->taken_ns - s->hints_looked_ns < CURRENT_CHECK_NS)
		return;
	s->hints_looked_ns = s->taken_ns;
	hints_close(&s->hints);
	if (index_open_hints(s->pair->index, s->index.journal, &s->hints) == FOUND &&
		hints_taken(s->hints) >= s->index.taken)
		s->use_hints = s->hints;
}

static void give_back(struct snapshot *s)
{
	if (s->index_txn)
		txn_reset(s->index_txn);
	if (s->journal_txn)
		txn_reset(s->journal_txn);
	s->active = false;
}

/* AGAIN when the journal does not go with this index any more, or not yet. */
static int take_once(struct snapshot *s)
{
	struct pair *pair = s->pair;
	int r = begin_or_renew(index_env(pair->index), &s->index_txn);

	if (r == 0)
		r = index_meta(pair->index, s->index_txn, &s->index);
	if (r == 0)
		r = read_feeds(s);
	if (r == 0)
		r = begin_or_renew(journal_env(pair->journal), &s->journal_txn);
	if (r == 0)
		r = journal_meta(pair->journal, s->journal_txn, &s->journal);
	if (r < 0)
		return r;
	if (memcmp(s->journal.uuid, s->index.journal, sizeof(s->journal.uuid)) != 0 ||
		s->journal.horizon > s->oldest || s->journal.next_seq <= s->index.taken)
		return AGAIN;
	s->active = true;
	return 0;
}

/* Leaves the pair it reads from, with its transactions. */
static void leave_pair(struct snapshot *s)
{
	txn_abort(&s->journal_txn);
	txn_abort(&s->index_txn);
	(void)pthread_mutex_lock(&s->store->lock);
	pair_unref(&s->pair);
	(void)pthread_mutex_unlock(&s->store->lock);
	s->feeds_txn = 0;
	hints_close(&s->hints);
	s->use_hints = NULL;
	s->hints_looked_ns = 0;
}

/* What was open goes on being read while CURRENT's journal is not there yet, and for a moment while what
 * it names can't be opened: not for longer, it would be old and nobody would say so. */
static bool goes_on(const struct store *store, int r)
{
	return store->pair &&
		(r >= 0 || proc_monotonic_ns() - store->failing_ns < FAILING_NS);
}

/* Waits for the thread that opens a pair, which takes some seconds at most, and returns what it got. */
static int store_await_opening(struct store *store)
{
	while (store->opening)
		(void)pthread_cond_wait(&store->opened, &store->lock); /* fails for no lock of ours */
	if (store->open_result < 0)
		err_restore(&store->open_error);
	return store->open_result;
}

/* Looks when it is time to. While it fails each time: whoever comes has to be told. */
static int look_when_due(struct store *store, bool force)
{
	if (!force && store->pair && !store->failing_ns &&
		proc_monotonic_ns() - store->checked_ns < CURRENT_CHECK_NS)
		return 0;
	if (store->opening) {
		bool is_fresh = !store->failing_ns || proc_monotonic_ns() - store->failing_ns < FAILING_NS;

		return store->pair && is_fresh && !force ? 0 : store_await_opening(store);
	}
	int r = store->copy ? refuse_running_copy(store->home) : 0;
	if (r < 0) {
		store->failing_ns = 1; /* for ever: not to be read any more */
		return r;
	}
	r = store_open_current(store, force);
	if (r >= 0)
		store->failing_ns = 0;
	else if (!store->failing_ns)
		store->failing_ns = proc_monotonic_ns();
	return r;
}

/* Makes the snapshot read from what CURRENT names. AGAIN when there is nothing to read. */
static int join_pair(struct snapshot *s, bool force)
{
	struct store *store = s->store;

	(void)pthread_mutex_lock(&store->lock);
	int r = look_when_due(store, force);
	struct pair *pair = goes_on(store, r) ? store->pair : NULL;

	if (pair && pair != s->pair)
		pair->refs++;
	(void)pthread_mutex_unlock(&store->lock);
	if (r < 0 && !pair)
		return r;
	if (!pair)
		return AGAIN;
	if (pair != s->pair) {
		leave_pair(s);
		s->pair = pair;
	}
	return 0;
}

static int take(struct snapshot *s)
{
	for (int i = 0; i < TRIES; i++) {
		int r = join_pair(s, i > TRIES / 2);

		if (r == 0)
			r = take_once(s);
		if (r == 0) {
			s->taken_ns = proc_monotonic_ns();
			look_for_hints(s);
			return 0;
		}
		give_back(s);
		if (r < 0)
			return err_add(r, "taking a snapshot");
		if (!s->pair)
			return AGAIN;
	}
	return AGAIN;
}

int snapshot_open(struct store *store, struct snapshot **ret_snapshot)
{
	CLEANUP(snapshot_close) struct snapshot *s = calloc(1, sizeof(*s));

	CHECK_OBJ(store, STORE_MAGIC);
	if (!s)
		return err_set(-ENOMEM, "taking a snapshot");
	s->magic = SNAPSHOT_MAGIC;
	(void)pthread_mutex_lock(&store->lock);
	store->refs++;
	(void)pthread_mutex_unlock(&store->lock);
	s->store = store;
	int r = take(s);

	if (r != 0)
		return r;
	*ret_snapshot = TAKE(s);
	return 0;
}

int snapshot_renew(struct snapshot *snapshot)
{
	CHECK_OBJ(snapshot, SNAPSHOT_MAGIC);
	if (snapshot->active) {
		int r = snapshot_reset(snapshot);

		if (r < 0)
			return r;
	}
	return take(snapshot);
}

/* Without locks a writer may have reused pages under us; then it has also committed. */
static int check_copy(const struct snapshot *s)
{
	struct env_info index, journal;
	int r = env_info(index_env(s->pair->index), &index);

	if (r == 0)
		r = env_info(journal_env(s->pair->journal), &journal);
	if (r < 0)
		return r;
	if (index.last_txn != txn_id(s->index_txn) || journal.last_txn != txn_id(s->journal_txn))
		return err_say(ERR_SNAPSHOT_EXPIRED,
			"the store was written while it was read as a copy: read it again");
	return 0;
}

int snapshot_check(const struct snapshot *snapshot)
{
	return snapshot->store->copy ? check_copy(snapshot_active(snapshot)) : 0;
}

int snapshot_reset(struct snapshot *snapshot)
{
	CHECK_OBJ(snapshot, SNAPSHOT_MAGIC);
	if (!snapshot->active)
		return 0;
	int r = snapshot_check(snapshot);

	give_back(snapshot);
	return r;
}

void snapshot_close(struct snapshot **snapshot)
{
	struct snapshot *s = *snapshot;

	if (!s)
		return;
	CHECK_OBJ(s, SNAPSHOT_MAGIC);
	if (s->store) {
		leave_pair(s);
		store_unref(s->store);
	}
	free(s->feeds);
	s->magic = 0;
	free(s);
	*snapshot = NULL;
}

/* ---- what it is ---- */

uint64_t snapshot_taken(const struct snapshot *snapshot)
{
	return snapshot_active(snapshot)->index.taken;
}

uint64_t snapshot_horizon(const struct snapshot *snapshot)
{
	return snapshot_active(snapshot)->journal.horizon;
}

const uint8_t *snapshot_uuid(const struct snapshot *snapshot)
{
	return snapshot_active(snapshot)->journal.uuid;
}

static const struct index_feed *find_feed(const struct snapshot *s, uint32_t feed)
{
	for (size_t i = 0; i < s->n_feeds; i++)
		if (s->feeds[i].feed == feed)
			return &s->feeds[i];
	return NULL;
}

uint64_t snapshot_visible(struct snapshot *snapshot, uint32_t feed)
{
	const struct index_feed *row = find_feed(snapshot_active(snapshot), feed);

	return row ? feed_visible(snapshot, row) : 0;
}

uint64_t snapshot_age_ns(const struct snapshot *snapshot)
{
	return proc_monotonic_ns() - snapshot_active(snapshot)->taken_ns;
}

struct index *snapshot_index(struct snapshot *snapshot)
{
	return snapshot_active(snapshot)->pair->index;
}

struct txn *snapshot_index_txn(struct snapshot *snapshot)
{
	return snapshot_active(snapshot)->index_txn;
}

struct journal *snapshot_journal(struct snapshot *snapshot)
{
	return snapshot_active(snapshot)->pair->journal;
}

struct txn *snapshot_journal_txn(struct snapshot *snapshot)
{
	return snapshot_active(snapshot)->journal_txn;
}
