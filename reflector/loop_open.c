/* SPDX-License-Identifier: Apache-2.0 */
/* Opens everything before the first turn, and closes it after the last. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/daemon/faults.h"
#include "common/daemon/parent.h"
#include "common/err.h"
#include "common/log.h"
#include "reflector/loop_internal.h"
#include "store/index/index.h"
#include "store/read/cursor_file.h"
#include "store/ring/ring.h"

#define OPEN_PAUSE_MS 200
#define RING_CAPACITY (1u << 20)

struct journal_options loop_journal_options(const struct loop *loop)
{
	return (struct journal_options){.map_bytes = loop->daemon->config->map_bytes,
		.durable = loop->daemon->config->durable};
}

static struct retention_options loop_retention_options(const struct loop *loop)
{
	return (struct retention_options){.time_ns = loop->daemon->config->retention_ns,
		.bytes = loop->daemon->config->retention_bytes,
		.cursor_ns = loop->daemon->config->cursor_ns};
}

/* Returns the index's newest event of the journal UUID; 0: none, or it can't be read. */
static uint64_t published_taken(struct home *home, const uint8_t uuid[16])
{
	CLEANUP(index_close) struct index *index = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct index_meta meta = {.taken = 0};
	int r = index_open_read(home, &index);

	if (r == 0)
		r = txn_begin_read(index_env(index), &txn);
	if (r == 0)
		r = index_meta(index, txn, &meta);
	err_ignore(r < 0 ? r : 0, "it says nothing of the journal");
	return r == 0 && memcmp(meta.journal, uuid, 16) == 0 ? meta.taken : 0;
}

/* Checks that the journal holds all published events, before the ring is written. It does not if an
 * older copy was put in its place: the copy's next events would get the numbers of others, and a
 * follower after those would miss them. If the ring of an earlier reflector, or the index, has
 * events missing in *JOURNAL, begins another journal there. Else makes the cursors after the
 * journal's end lapse: cp(1) leaves them there. A stop in order leaves the ring while readers live
 * on. */
static int published_check(
	struct home *home, struct journal **journal, const struct journal_options *options)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct journal_meta meta;
	char reason[160];
	uint64_t newest = ring_newest(home_runtime_fd(home), DELTA_RING, journal_uuid(*journal));
	uint64_t taken = published_taken(home, journal_uuid(*journal));
	if (newest < taken)
		newest = taken;
	int r = txn_begin_read(journal_env(*journal), &txn);

	if (r == 0)
		r = journal_meta(*journal, txn, &meta);
	txn_abort(&txn);
	if (r < 0)
		return r;
	if (newest < meta.next_seq) {
		r = cursor_lapse_later(home, journal_uuid(*journal), meta.next_seq);
		err_ignore(r < 0 ? r : 0,
			"their followers lapse unless the journal has grown beyond them by then");
		return 0;
	}
	(void)snprintf(reason, sizeof(reason),
		"event %" PRIu64 " was published, and the journal ends at event %" PRIu64
		": an older copy was put in its place",
		newest, meta.next_seq - 1);
	LOG(journal_created, .reason = reason);
	return journal_begin_anew(journal, home, options);
}

/* Opens the journal. Waits without limit while another program has its lock.mdb open: the journal
 * is whole, and after a new one the reflector would list all feeds again, and each follower would
 * begin again. */
static int loop_open_journal(struct loop *loop)
{
	struct journal_options options = loop_journal_options(loop);
	bool reported = false;
	char reason[256];
	int r;

	while ((r = journal_open_write(loop->home, &options, reason, &loop->journal)) ==
			ERR_LOCKED ||
		r == -ENOSPC || r == -EDQUOT) {
		if (r == ERR_LOCKED) {
			if (!reported)
				LOG(journal_locked, .error = err_text(r));
			reported = true;
			stats_set_state(loop->stats,
				"waiting for the journal, which another program has open");
			stats_set_error(loop->stats, err_text(r));
			daemon_sleep(loop->daemon, OPEN_PAUSE_MS);
			parent_notify(
				/* the service manager's, for starting */
				"EXTEND_TIMEOUT_USEC=10000000");
		}
		if (r == ERR_LOCKED ? loop->daemon->stop : !daemon_await_room(loop->daemon, r))
			return r;
		r = home_check(loop->home);
		if (r < 0)
			return r;
	}
	if (r == 0 && reported)
		stats_set_error(loop->stats, "");
	if (r == 0 && *reason)
		LOG(journal_created, .reason = reason);
	return r < 0 ? r : published_check(loop->home, &loop->journal, &options);
}

static int loop_open_store(struct loop *loop)
{
	const struct config *config = loop->daemon->config;
	struct home_options home = {
		.create = true, .runtime_dir = config->runtime_dir, .group = config->group};
	int r;

	do
		r = home_open(config->store, &home, &loop->home);
	while (daemon_await_room(loop->daemon, r));
	if (r < 0)
		return r;
	do
		r = home_take_role(loop->home, HOME_REFLECTOR);
	while (daemon_await_room(loop->daemon, r));
	if (r < 0)
		return r;
	faults_catch(loop->daemon->program->name, home_path(loop->home));
	do
		r = daemon_open_page(loop->daemon, home_runtime_fd(loop->home));
	while (daemon_await_room(loop->daemon, r));
	if (r < 0)
		return err_add(r, "the runtime directory '%s'", home_runtime(loop->home));
	do
		r = upstream_write(&loop->upstream, loop->kubeconfig, loop->http, loop->home);
	while (daemon_await_room(loop->daemon, r));
	if (r < 0)
		return err_add(r, "the runtime directory '%s'", home_runtime(loop->home));
	loop->stats = loop->daemon->stats;
	http_set_stats(loop->http, loop->stats);
	home_guard_file(loop->home, loop->daemon->program->status_page);
	home_guard_file(loop->home, loop->daemon->program->control_socket);
	stats_set_state(loop->stats, "opening");
	return loop_open_journal(loop);
}

void loop_close_feeds(struct loop *loop)
{
	compaction_cancel(&loop->compaction, "the reflector ends, or begins another journal");
	feeds_free(&loop->feeds);
	recorder_free(&loop->recorder);
	retention_free(&loop->retention);
	ring_close(&loop->ring);
}

static void loop_on_failure(void *arg, struct session *session, enum failure_kind kind)
{
	struct loop *loop = arg;

	(void)session;
	/* The next answer may come from another cluster; an absent resource may have moved. */
	if (kind == FAILURE_NETWORK)
		cluster_check_soon(loop->cluster);
	if (kind == FAILURE_ABSENT)
		feeds_rediscover(loop->feeds);
}

static void loop_on_well(void *arg, struct session *session)
{
	struct loop *loop = arg;

	(void)session;
	cluster_retry(loop->cluster);
}

static void loop_on_etcd_rollback(void *arg, struct session *session)
{
	struct loop *loop = arg;

	if (!feeds_take_etcd_rollback(loop->feeds, session))
		return;
	LOG(cluster_rolled_back);
	loop->rolled_back = true;
}

void loop_make_doorbell(struct loop *loop)
{
	if (!loop->doorbell) {
		int r = doorbell_open(loop->home, &loop->doorbell);

		if (r == 0)
			home_guard_file(loop->home, HOME_DOORBELL);
		else if (!loop->doorbell_warned)
			LOG(doorbell_missing, .error = err_text(r));
		loop->doorbell_warned = r < 0;
		err_ignore(r, "it is tried again each second");
	}
	recorder_set_doorbell(loop->recorder, loop->doorbell);
}

int loop_configure(struct loop *loop)
{
	const struct config *config = loop->daemon->config;
	struct retention_options retention = loop_retention_options(loop);

	retention_set(loop->retention, &retention);
	loop->trimming.most_bytes = retention.bytes;
	http_set_limits(loop->http, config->policy.connect_ns, config->policy.silence_ns);
	cluster_set_pause(loop->cluster, config->policy.backoff_max_ns);
	documents_configure(&loop->documents, config);
	feeds_hold_removals(loop->feeds, daemon_awaits_file(loop->daemon));
	return feeds_configure(loop->feeds, config);
}

int loop_open_feeds(struct loop *loop)
{
	struct retention_options retention = loop_retention_options(loop);
	struct session_shared shared = {.http = loop->http,
		.discovery = loop->discovery,
		.stats = loop->stats,
		.policy = loop->daemon->config->policy,
		.arg = loop,
		.on_failure = loop_on_failure,
		.on_well = loop_on_well,
		.on_etcd_rollback = loop_on_etcd_rollback};
	stats_set_journal(loop->stats, journal_uuid(loop->journal));
	int r;

	do
		r = ring_create(home_runtime_fd(loop->home), DELTA_RING, RING_CAPACITY,
			journal_uuid(loop->journal), home_file_mode(loop->home), &loop->ring);
	while (daemon_await_room(loop->daemon, r));

	if (r >= 0)
		home_guard_file(loop->home, DELTA_RING);
	if (r >= 0)
		r = recorder_new(loop->journal, loop->ring, loop->stats, &loop->recorder);
	if (r >= 0)
		loop_make_doorbell(loop);
	if (r >= 0)
		r = retention_new(loop->home, loop->journal, &retention, &loop->retention);
	if (r < 0)
		return r;
	loop->trimming.home = loop->home;
	loop->trimming.stats = loop->stats;
	trimming_begin(&loop->trimming, loop->journal, loop->retention);
	cluster_begin(loop->cluster, loop->recorder);
	shared.recorder = loop->recorder;
	r = feeds_new(loop->journal, &shared, &loop->feeds);
	return r < 0 ? r : loop_configure(loop);
}

static void loop_on_discovered(void *arg, int result)
{
	struct loop *loop = arg;

	if (loop->feeds)
		feeds_discovered(loop->feeds, result);
	if (result >= 0)
		documents_write(&loop->documents);
}

static int loop_open_network(struct loop *loop)
{
	const struct config *config = loop->daemon->config;
	int r = kubeconfig_load(config->kubeconfig, config->context, &loop->kubeconfig);

	if (r == -ENOENT)
		return err_say(ERR_CONFIG, "%s", err_text(r));
	if (r == -EACCES)
		return err_say(ERR_CONFIG,
			"%s: the reflector runs as user %u; make the file readable for it, or name "
			"another with --kubeconfig or cluster.kubeconfig in kinf.yaml",
			err_text(r), (unsigned)geteuid());
	if (r >= 0)
		r = http_new(loop->kubeconfig, &loop->http);
	if (r >= 0)
		r = discovery_new(loop->http, loop_on_discovered, loop, &loop->discovery);
	return r;
}

int loop_new(struct daemon *daemon, struct loop **ret_loop)
{
	CLEANUP(loop_free) struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return err_set(-ENOMEM, "starting the reflector");
	*loop = (struct loop){
		.magic = LOOP_MAGIC, .daemon = daemon, .progress_fd = -1, .hold_pause = HOLD_FIRST};
	int r = loop_open_network(loop);
	if (r >= 0)
		r = loop_open_store(loop);
	if (r >= 0)
		documents_open(&loop->documents, loop->discovery, daemon->config, loop->home);
	if (r >= 0)
		r = cluster_new(
			&(struct cluster_options){.http = loop->http,
				.config = loop->kubeconfig,
				.stats = loop->stats,
				.pause_max_ns = loop->daemon->config->policy.backoff_max_ns},
			&loop->cluster);
	if (r >= 0)
		r = loop_open_feeds(loop);
	if (r < 0)
		return r;
	*ret_loop = TAKE(loop);
	return 0;
}

void loop_remove_runtime(struct loop *loop)
{
	loop_close_feeds(loop); /* its own pin file keeps the runtime directory */
	home_remove_runtime(loop->home);
}

void loop_free(struct loop **loop)
{
	struct loop *l = *loop;

	if (!l)
		return;
	CHECK_OBJ(l, LOOP_MAGIC);
	loop_close_feeds(l);
	doorbell_close(&l->doorbell);
	cleanup_fd(&l->progress_fd);
	cluster_free(&l->cluster);
	discovery_free(&l->discovery);
	http_free(&l->http);
	kubeconfig_free(&l->kubeconfig);
	journal_close(&l->journal);
	home_close(&l->home);
	l->magic = 0;
	free(l);
	*loop = NULL;
}
