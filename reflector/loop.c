/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/loop.h"

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
#include "common/proc.h"
#include "reflector/cluster/cluster.h"
#include "reflector/cluster/documents.h"
#include "reflector/feeds/feeds.h"
#include "reflector/record/compaction.h"
#include "reflector/record/trimming.h"
#include "reflector/published.h"
#include "reflector/reports.h"
#include "reflector/wire/upstream.h"
#include "reflector/wishes.h"

#define LOOP_MAGIC     0x4c4f4f50u
#define SECOND         1000000000ull
#define OPEN_PAUSE_MS  200
#define RING_CAPACITY  (1u << 20)
#define BEAT           SECOND
#define HOLD_FIRST     SECOND
#define HOLD_SLOW      (10 * SECOND)
#define HOLD_LOOK      SECOND

struct loop {
	uint32_t magic;
	struct daemon *daemon;
	struct home *home;
	struct stats *stats;
	struct journal *journal;
	struct ring *ring;
	struct doorbell *doorbell; /* NULL: none could be made yet */
	bool doorbell_warned;
	bool bells_left; /* followers are still to be rung */
	struct reports reports;
	struct wishes wishes;
	struct kubeconfig *kubeconfig;
	struct http *http;
	struct upstream upstream;
	struct discovery *discovery;
	struct documents documents;
	struct cluster *cluster;
	struct recorder *recorder;
	struct feeds *feeds;
	struct retention *retention;

	bool rolled_back;    /* etcd was: another journal is to be begun */
	bool work_left;
	uint64_t beat_ns;
	uint64_t commits; /* as counted at the last turn: a change may be committed as it comes in */
	struct trimming trimming;
	struct compaction compaction;
	uint64_t held_ns;    /* nothing is read until then (monotonic); 0: not held */
	uint64_t hold_pause; /* of the next hold */
	uint64_t resumed_ns; /* when the last hold ended */
};

/* ---- opening and closing ---- */

static struct journal_options loop_journal_options(const struct loop *loop)
{
	return (struct journal_options){.map_bytes = loop->daemon->config->map_bytes,
		.durable = loop->daemon->config->durable};
}

static struct retention_options loop_retention_options(const struct loop *loop)
{
	return (struct retention_options){.time_ns = loop->daemon->config->retention_ns,
		.bytes = loop->daemon->config->retention_bytes, .cursor_ns = loop->daemon->config->cursor_ns};
}

/* Opens the journal. While another program has its lock.mdb open, which only the reflector needs, waits
 * without limit: the journal is whole, and after a new one the reflector would list all feeds again, and
 * each follower would begin again. */
static int loop_open_journal(struct loop *loop)
{
	struct journal_options options = loop_journal_options(loop);
	bool reported = false;
	char reason[256];
	int r;

	while ((r = journal_open_write(loop->home, &options, reason, &loop->journal)) == ERR_LOCKED ||
		r == -ENOSPC || r == -EDQUOT) {
		if (r == ERR_LOCKED) {
			if (!reported)
				LOG(journal_locked, .error = err_text(r));
			reported = true;
			stats_set_state(loop->stats, "waiting for the journal, which another program has open");
			stats_set_error(loop->stats, err_text(r));
			daemon_sleep(loop->daemon, OPEN_PAUSE_MS);
			parent_notify("EXTEND_TIMEOUT_USEC=10000000"); /* the service manager's, for starting */
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
	struct home_options home = {.create = true, .runtime_dir = config->runtime_dir, .group = config->group};
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

static void loop_close_feeds(struct loop *loop)
{
	compaction_cancel(&loop->compaction, "the reflector ends, or begins another journal");
	feeds_free(&loop->feeds);
	recorder_free(&loop->recorder);
	retention_free(&loop->retention);
	ring_close(&loop->ring);
}

static void loop_on_doubt(void *arg, struct session *session, enum failure_kind kind)
{
	struct loop *loop = arg;

	(void)session;
	/* The next answer may come from another cluster; an absent resource may have moved. */
	if (kind == FAILURE_NETWORK)
		cluster_doubt(loop->cluster);
	if (kind == FAILURE_ABSENT)
		feeds_doubt(loop->feeds);
}

static void loop_on_well(void *arg, struct session *session)
{
	struct loop *loop = arg;

	(void)session;
	cluster_hope(loop->cluster);
}

static void loop_on_etcd_rollback(void *arg, struct session *session)
{
	struct loop *loop = arg;

	if (!feeds_take_etcd_rollback(loop->feeds, session))
		return;
	LOG(cluster_rolled_back);
	loop->rolled_back = true;
}

/* Without a doorbell followers that poll learn of changes later, so the reflector goes on. */
static void loop_make_doorbell(struct loop *loop)
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

/* Opens everything that belongs to one journal and its uuid. */
static int loop_open_feeds(struct loop *loop)
{
	struct retention_options retention = loop_retention_options(loop);
	struct session_shared shared = {.http = loop->http, .discovery = loop->discovery,
		.stats = loop->stats, .policy = loop->daemon->config->policy, .arg = loop,
		.on_doubt = loop_on_doubt, .on_well = loop_on_well,
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
	loop->trimming.most_bytes = retention.bytes;
	trimming_begin(&loop->trimming, loop->journal, loop->retention);
	cluster_begin(loop->cluster, loop->recorder);
	shared.recorder = loop->recorder;
	r = feeds_new(loop->journal, &shared, &loop->feeds);
	return r < 0 ? r : feeds_configure(loop->feeds, loop->daemon->config);
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
			"%s: the reflector runs as user %u; make the file readable for it, or name another with "
			"--kubeconfig or cluster.kubeconfig in kinf.yaml",
			err_text(r), (unsigned)geteuid());
	if (r >= 0)
		r = http_new(loop->kubeconfig, &loop->http);
	if (r >= 0)
		http_set_limits(loop->http, config->policy.connect_ns, config->policy.silence_ns);
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
		.magic = LOOP_MAGIC, .daemon = daemon, .reports = {.fd = -1}, .wishes = {.fd = -1},
		.hold_pause = HOLD_FIRST};
	if (env_library_fault())
		LOG(library_unfit, .text = env_library_fault());
	int r = loop_open_network(loop);
	if (r >= 0)
		r = loop_open_store(loop);
	if (r >= 0)
		documents_open(&loop->documents, loop->discovery, daemon->config, loop->home);
	if (r >= 0)
		r = cluster_new(&(struct cluster_options){.http = loop->http, .config = loop->kubeconfig, .stats = loop->stats,
			.pause_max_ns = loop->daemon->config->policy.backoff_max_ns}, &loop->cluster);
	if (r >= 0)
		r = loop_open_feeds(loop);
	if (r < 0)
		return r;
	*ret_loop = TAKE(loop);
	return 0;
}

void loop_retire(struct loop *loop)
{
	loop_close_feeds(loop); /* its own pin file keeps the runtime directory */
	home_retire(loop->home);
}

void loop_free(struct loop **loop)
{
	struct loop *l = *loop;

	if (!l)
		return;
	CHECK_OBJ(l, LOOP_MAGIC);
	loop_close_feeds(l);
	doorbell_close(&l->doorbell);
	reports_close(&l->reports);
	wishes_close(&l->wishes);
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

/* ---- holds: a batch could not be stored ---- */

/* Nothing of a batch that failed is stored. The feeds go back to their checkpoints, and nothing is read
 * from the API server until it can be stored. */
static int loop_hold(struct loop *loop)
{
	const char *text;
	int error = recorder_error(loop->recorder, &text);
	bool may_pass = error == -ENOSPC || error == -EDQUOT || error == ERR_MAP_FULL ||
		error == -ENOMEM || error == ERR_FAILPOINT || error == -EFBIG;

	if (!may_pass)
		return err_say(error, "%s", text);
	failure_add(&loop->daemon->failure, loop->stats, error, text);
	cluster_restart(loop->cluster); /* what is known of it may have been in that batch */
	int r = feeds_rewind(loop->feeds, text);
	loop->held_ns = proc_monotonic_ns() + loop->hold_pause;
	loop->hold_pause = loop->hold_pause * 2 < HOLD_SLOW ? loop->hold_pause * 2 : HOLD_SLOW;
	loop->trimming.due_ns = 0;
	return r;
}

/* Resumes reading after the pause, if a transaction can be begun: an attempt without any room would only
 * cost the API server requests. */
static void loop_resume(struct loop *loop)
{
	uint64_t now = proc_monotonic_ns();

	if (!loop->held_ns || now < loop->held_ns)
		return;
	int r = journal_begin(loop->journal);
	if (r < 0) {
		err_ignore(r, "the failure that began the hold is reported, and this is tried again");
		loop->held_ns = now + HOLD_LOOK;
		return;
	}
	journal_abort(loop->journal);
	loop->held_ns = 0;
	loop->resumed_ns = now;
	recorder_recover(loop->recorder);
	if (cluster_is_known(loop->cluster))
		feeds_resume(loop->feeds);
}

static int loop_commit(struct loop *loop)
{
	int r = recorder_flush(loop->recorder);

	if (r < 0)
		return loop_hold(loop);
	feeds_committed(loop->feeds);
	uint64_t before = loop->commits;
	loop->commits = stats_get(loop->stats, STAT_JOURNAL_COMMITS);
	/* Failing ends with a commit, or after some time without a failure: while the API server is away
	 * nothing is committed. */
	if (loop->commits != before || proc_monotonic_ns() - loop->resumed_ns >= HOLD_SLOW) {
		failure_end(&loop->daemon->failure, loop->stats, "running");
		loop->hold_pause = HOLD_FIRST;
	}
	return 0;
}

/* ---- the loop ---- */

static int loop_reload(struct loop *loop)
{
	if (!daemon_reload(loop->daemon))
		return 0;
	const struct config *config = loop->daemon->config;
	struct retention_options retention = loop_retention_options(loop);
	char changed[512];
	retention_set(loop->retention, &retention);
	loop->trimming.most_bytes = retention.bytes;
	http_set_limits(loop->http, config->policy.connect_ns, config->policy.silence_ns);
	cluster_set_pause(loop->cluster, config->policy.backoff_max_ns);
	documents_configure(&loop->documents, config);
	if (kubeconfig_has_changed(loop->kubeconfig, config->kubeconfig, config->context, changed, sizeof(changed)))
		daemon_needs_restart(loop->daemon, changed);
	daemon_reloaded(loop->daemon, 0);
	return feeds_configure(loop->feeds, config);
}

static void loop_compact(struct loop *loop, struct control_call **call)
{
	struct journal_options options = loop_journal_options(loop);

	compaction_begin(&loop->compaction, loop->home, loop->journal, &options, loop->retention, call);
}

/* Does what the command line asks for. */
static void loop_obey(struct loop *loop)
{
	char text[CONTROL_SIZE];

	if (!loop->daemon->call)
		return;
	if (strcmp(control_command(loop->daemon->call), "compact") == 0) {
		loop_compact(loop, &loop->daemon->call);
		return;
	}
	int r = feeds_relist(loop->feeds, control_argument(loop->daemon->call), text);
	control_end(&loop->daemon->call, r, text);
	err_ignore(r, "the caller has the reason");
}

static void loop_tend_formers(struct loop *loop)
{
	struct former_loss loss;

	if (home_tend_formers(loop->home, &loss))
		LOG(snapshot_given_up, .program = loss.program, .pid = loss.pid, .uid = loss.uid, .snapshots = loss.snapshots,
			.bytes = loss.bytes);
}

/* Does the work of each second. Returns the error that ends the reflector. */
static int loop_beat(struct loop *loop)
{
	uint64_t now = proc_monotonic_ns();

	if (now < loop->beat_ns)
		return 0;
	loop->beat_ns = now + BEAT;
	ring_heartbeat(loop->ring);
	loop_make_doorbell(loop);
	reports_make(&loop->reports, loop->home);
	if (cluster_is_known(loop->cluster))
		reports_receive(&loop->reports, loop->feeds, journal_uuid(loop->journal), loop->stats);
	else if (*cluster_obstacle(loop->cluster))
		feeds_show_obstacle(loop->feeds, cluster_obstacle(loop->cluster));
	wishes_make(&loop->wishes, loop->home);
	loop_tend_formers(loop);
	err_ignore(upstream_write(&loop->upstream, loop->kubeconfig, loop->http, loop->home), "the next beat tries it again");
	if (!loop->daemon->ready && !loop->daemon->failure.failing)
		stats_set_state(loop->stats, "running");
	daemon_ready(loop->daemon);
	int r = home_check(loop->home);
	return r < 0 ? r : journal_check(loop->journal, loop->home);
}

static int loop_timeout_ms(const struct loop *loop)
{
	uint64_t now = proc_monotonic_ns(), until = loop->beat_ns, gathers = recorder_gathers_until(loop->recorder);

	if (loop->work_left || loop->bells_left || loop->trimming.running || (loop->compaction.copy && !loop->held_ns))
		return 0;
	if (!loop->held_ns && cluster_until(loop->cluster) < until)
		until = cluster_until(loop->cluster);
	if (loop->held_ns && loop->held_ns < until)
		until = loop->held_ns;
	if (gathers && gathers < until)
		until = gathers;
	if (!loop->held_ns && feeds_until(loop->feeds) < until)
		until = feeds_until(loop->feeds);
	if (wishes_until(&loop->wishes, now) < until)
		until = wishes_until(&loop->wishes, now);
	/* The index may have taken the records that held the horizon, and no event has to follow. */
	if (trimming_has_too_much(&loop->trimming) && loop->trimming.soon_ns < until)
		until = loop->trimming.soon_ns;
	return until <= now ? 0 : (int)((until - now) / 1000000 + 1);
}

/* Does the work that needs no network, in the same transaction as what just came. */
static int loop_work(struct loop *loop)
{
	int r = feeds_write_resyncs(loop->feeds);

	if (r >= 0)
		r = cluster_work(loop->cluster);
	loop->work_left = false;
	if (r < 0 || !cluster_is_known(loop->cluster))
		return r;
	feeds_start(loop->feeds);
	r = documents_due(&loop->documents, proc_monotonic_ns());
	if (r >= 0)
		r = feeds_work(loop->feeds);
	loop->work_left = r == AGAIN;
	return r;
}

/* Returns whether the batch stays open: a commit for each piece of a list that comes in costs more than recording it.
 * Only between transactions are trimming, compaction and the work of each second done. */
static bool loop_gathers(const struct loop *loop)
{
	uint64_t now = proc_monotonic_ns();

	return !loop->held_ns && now < recorder_gathers_until(loop->recorder) && now < loop->beat_ns &&
		trimming_is_idle(&loop->trimming) && !loop->compaction.copy;
}

static int loop_turn(struct loop *loop)
{
	struct pollfd fds[DAEMON_FDS + 1];
	const char *text;

	if (loop_timeout_ms(loop) > 0 && !journal_txn(loop->journal))
		env_prepare(journal_env(loop->journal));
	daemon_poll_fds(loop->daemon, fds);
	fds[DAEMON_FDS] = (struct pollfd){.fd = wishes_fd(&loop->wishes, proc_monotonic_ns()), .events = POLLIN};
	int r = http_poll(loop->http, loop_timeout_ms(loop), fds, DAEMON_FDS + 1);
	if (r < 0)
		return r;
	if (fds[0].revents || fds[1].revents || fds[2].revents)
		(void)daemon_attend(loop->daemon);
	if (fds[DAEMON_FDS].revents)
		wishes_receive(&loop->wishes, loop->feeds, journal_uuid(loop->journal));
	(void)daemon_tick(loop->daemon);
	if (loop->daemon->stop)
		return END;
	r = loop->daemon->reload ? loop_reload(loop) : 0;
	if (r < 0)
		return r;
	loop_obey(loop);
	loop_resume(loop);
	if (!loop->rolled_back && !cluster_is_another(loop->cluster) && !loop->held_ns)
		r = loop_work(loop);
	if (loop->rolled_back || cluster_is_another(loop->cluster)) {
		struct journal_options options = loop_journal_options(loop);

		loop->rolled_back = false;
		cluster_restart(loop->cluster);
		loop_close_feeds(loop);
		if (journal_txn(loop->journal))
			journal_abort(loop->journal);
		r = journal_begin_anew(&loop->journal, loop->home, &options);
		return r < 0 ? r : loop_open_feeds(loop);
	}
	/* An error of the journal is the batch's, which loop_commit() reports; others end the reflector. */
	if (r < 0 && !recorder_error(loop->recorder, &text))
		return r;
	bool gathers = loop_gathers(loop);
	r = loop->held_ns || gathers ? 0 : loop_commit(loop);
	if (r < 0)
		return r;
	err_ignore(retention_sample(loop->retention), "history is kept for a moment longer");
	if (!gathers && trimming_is_due(&loop->trimming) && !loop->compaction.copy) {
		/* During a hold nothing can be written; lists that are old then are abandoned afterwards. */
		r = loop->held_ns ? 0 : feeds_abandon_old(loop->feeds, loop->daemon->config->retention_ns);
		if (r >= 0)
			r = trimming_aim(&loop->trimming, feeds_list_begin(loop->feeds), loop->held_ns != 0);
		if (!loop->held_ns && (r >= 0 || recorder_error(loop->recorder, &text)))
			r = loop_commit(loop);
		struct control_call *none = NULL;
		if (!loop->held_ns && r >= 0 && compaction_is_due(&loop->compaction, loop->journal))
			loop_compact(loop, &none);
	}
	if (!loop->compaction.copy)
		trimming_slice(&loop->trimming, loop->held_ns != 0);
	else if (!loop->held_ns && !journal_txn(loop->journal))
		compaction_slice(&loop->compaction, !feeds_is_checking(loop->feeds));
	feeds_settle(loop->feeds);
	loop->bells_left = doorbell_turn(loop->doorbell) == AGAIN;
	int lost = gathers ? 0 : loop_beat(loop);
	return lost < 0 ? lost : r;
}

int loop_run(struct loop *loop)
{
	int r;

	CHECK_OBJ(loop, LOOP_MAGIC);
	do
		r = loop_turn(loop);
	while (r >= 0 && r != END);
	if (r < 0)
		return r;
	const char *text;
	return recorder_error(loop->recorder, &text) ? 0 : recorder_flush(loop->recorder);
}
