/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/loop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/check.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/loop_internal.h"
#include "store/ring/progress_request.h"

#define BEAT            SECOND_NS
#define HOLD_SLOW       (10 * SECOND_NS)
#define HOLD_LOOK       SECOND_NS
#define PLUGIN_PATIENCE (5 * SECOND_NS)
#define PROGRESS_PAUSE  (SECOND_NS / 50) /* from one reading of progress requests to the next */

/* ---- holds: a batch could not be stored --------------------------------- */

/* Nothing of a failed batch is stored. The feeds go back to their checkpoints, and nothing is read
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
	cluster_restart(loop->cluster); /* its identity may have been in that batch */
	int r = feeds_rewind(loop->feeds, text);
	loop->held_ns = proc_monotonic_ns() + loop->hold_pause;
	loop->hold_pause = loop->hold_pause * 2 < HOLD_SLOW ? loop->hold_pause * 2 : HOLD_SLOW;
	loop->trimming.due_ns = 0;
	return r;
}

/* Resumes reading after the pause, if a transaction can be begun: an attempt without any room
 * would only cost the API server requests. */
static void loop_resume(struct loop *loop)
{
	uint64_t now = proc_monotonic_ns();

	if (!loop->held_ns || now < loop->held_ns)
		return;
	int r = journal_begin(loop->journal);
	if (r < 0) {
		err_ignore(
			r, "the failure that began the hold is reported, and this is tried again");
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
	/* Failing ends with a commit, or after some time without a failure: while the API server
	 * is away nothing is committed. */
	if (loop->commits != before || proc_monotonic_ns() - loop->resumed_ns >= HOLD_SLOW) {
		failure_end(&loop->daemon->failure, loop->stats, "running");
		loop->hold_pause = HOLD_FIRST;
	}
	return 0;
}

/* ---- the loop ----------------------------------------------------------- */

static int loop_reload(struct loop *loop)
{
	char changed[512];

	if (!daemon_reload(loop->daemon))
		return 0;
	const struct config *config = loop->daemon->config;
	if (kubeconfig_has_changed(loop->kubeconfig, config->kubeconfig, config->context, changed,
		    sizeof(changed)))
		daemon_needs_restart(loop->daemon, changed);
	daemon_reloaded(loop->daemon, 0);
	return loop_configure(loop);
}

static void loop_compact(struct loop *loop, struct control_call **call)
{
	struct journal_options options = loop_journal_options(loop);

	compaction_begin(
		&loop->compaction, loop->home, loop->journal, &options, loop->retention, call);
}

/* Carries out a command of the control socket. */
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

/* Shows a hanging exec plugin and its age in the state; logs it once a run. */
static void loop_show_plugin(struct loop *loop, uint64_t now)
{
	char state[STATS_TEXT];
	uint64_t since;
	const char *command = http_awaited_plugin(loop->http, &since);
	bool awaited = command && now >= since + PLUGIN_PATIENCE;

	if (awaited && !loop->shows_plugin)
		LOG(plugin_awaited, .command = command, .seconds = now - since);
	if (awaited)
		(void)snprintf(state, sizeof(state),
			"running, waiting for %.0f s for the exec plugin '%.150s' of the "
			"kubeconfig",
			(double)((now - since) / SECOND_NS), command);
	if (!loop->daemon->failure.failing && (awaited || loop->shows_plugin))
		stats_set_state(loop->stats, awaited ? state : "running");
	loop->shows_plugin = awaited;
}

/* Does the work of each second. An error ends the reflector. */
static int loop_beat(struct loop *loop)
{
	const char *obstacle = cluster_obstacle(loop->cluster);
	uint64_t now = proc_monotonic_ns();
	struct replaced_loss loss;
	int r = 0;

	if (now < loop->beat_ns)
		return 0;
	loop->beat_ns = now + BEAT;
	ring_heartbeat(loop->ring);
	loop_make_doorbell(loop);
	/* While the API server is away, the sound part of a damaged journal is of more use. */
	if (cluster_is_known(loop->cluster) && !*obstacle)
		r = journal_check_damage(loop->journal);
	else if (!cluster_is_known(loop->cluster) && *obstacle)
		feeds_show_obstacle(loop->feeds, obstacle);
	progress_request_keep(loop->home, &loop->progress_fd);
	if (home_maintain_replaced(loop->home, &loss))
		LOG(snapshot_given_up, .program = loss.program, .pid = loss.pid, .uid = loss.uid,
			.snapshots = loss.snapshots, .bytes = loss.bytes);
	err_ignore(upstream_write(&loop->upstream, loop->kubeconfig, loop->http, loop->home),
		"the next beat tries it again");
	if (!loop->daemon->ready && !loop->daemon->failure.failing)
		stats_set_state(loop->stats, "running");
	loop_show_plugin(loop, now);
	daemon_ready(loop->daemon);
	if (r == 0)
		r = home_check(loop->home);
	return r < 0 ? r : journal_check(loop->journal, loop->home);
}

static int loop_timeout_ms(const struct loop *loop)
{
	const struct compaction *c = &loop->compaction;
	uint64_t now = proc_monotonic_ns(), until = loop->beat_ns,
		 gathers = recorder_gathers_until(loop->recorder);
	/* A turn without an event gets on with the copy of the journal. */
	bool copies =
		c->copy && !loop->held_ns && !(c->is_complete && feeds_is_checking(loop->feeds));

	if (loop->work_left || loop->trimming.running || copies)
		return 0;
	if (!loop->held_ns && cluster_until(loop->cluster) < until)
		until = cluster_until(loop->cluster);
	if (loop->held_ns && loop->held_ns < until)
		until = loop->held_ns;
	if (gathers && gathers < until)
		until = gathers;
	if (!loop->held_ns && feeds_until(loop->feeds) < until)
		until = feeds_until(loop->feeds);
	if (loop->progress_ns > now && loop->progress_ns < until)
		until = loop->progress_ns;
	/* The index may have let the horizon go on, without an event to follow. */
	if (trimming_has_too_much(&loop->trimming) && loop->trimming.soon_ns < until)
		until = loop->trimming.soon_ns;
	return until <= now ? 0 : (int)((until - now) / 1000000 + 1);
}

/* Does the work without network, in the transaction of the latest answers. */
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

/* Returns true while the batch stays open: a commit for each piece of a list costs more than
 * recording it. Trimming, compaction and the work of each second need a closed transaction. */
static bool loop_gathers(const struct loop *loop)
{
	uint64_t now = proc_monotonic_ns();

	return !loop->held_ns && now < recorder_gathers_until(loop->recorder) &&
	       now < loop->beat_ns && trimming_is_idle(&loop->trimming) && !loop->compaction.copy;
}

/* Passes a bounded number of progress requests to the feeds. */
static void loop_receive_progress(struct loop *loop)
{
	const uint8_t *uuid = journal_uuid(loop->journal);
	struct progress_request request;

	for (unsigned n = 0; n < PROGRESS_REQUESTS_MAX &&
			     progress_request_receive(loop->progress_fd, &request) == FOUND;
		n++)
		if (memcmp(request.journal, uuid, sizeof(request.journal)) == 0)
			feeds_progress(loop->feeds, request.feed, request.rv);
	loop->progress_ns = proc_monotonic_ns() + PROGRESS_PAUSE;
}

static int loop_turn(struct loop *loop)
{
	struct pollfd fds[DAEMON_FDS + 1];
	const char *text;

	if (loop_timeout_ms(loop) > 0 && !journal_txn(loop->journal))
		env_prepare(journal_env(loop->journal));
	daemon_poll_fds(loop->daemon, fds);
	fds[DAEMON_FDS] = (struct pollfd){
		.fd = loop->progress_ns <= proc_monotonic_ns() ? loop->progress_fd : -1,
		.events = POLLIN};
	int r = http_poll(loop->http, loop_timeout_ms(loop), fds, DAEMON_FDS + 1);
	if (r < 0)
		return r;
	if (fds[0].revents || fds[1].revents || fds[2].revents)
		(void)daemon_attend(loop->daemon);
	if (fds[DAEMON_FDS].revents)
		loop_receive_progress(loop);
	(void)daemon_tick(loop->daemon);
	if (loop->daemon->stop)
		return END;
	r = loop->daemon->reload ? loop_reload(loop) : 0;
	if (r < 0)
		return r;
	if (!daemon_awaits_file(loop->daemon))
		feeds_hold_removals(loop->feeds, false);
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
	/* loop_commit() reports an error of the journal; others end the reflector. */
	if (r < 0 && !recorder_error(loop->recorder, &text))
		return r;
	bool gathers = loop_gathers(loop);
	r = loop->held_ns || gathers ? 0 : loop_commit(loop);
	if (r < 0)
		return r;
	if (!gathers && trimming_is_due(&loop->trimming) && !loop->compaction.copy) {
		/* During a hold nothing can be written; old lists are abandoned afterwards. */
		r = loop->held_ns
			    ? 0
			    : feeds_abandon_old(loop->feeds, loop->daemon->config->retention_ns);
		if (r >= 0)
			trimming_plan(
				&loop->trimming, feeds_list_begin(loop->feeds), loop->held_ns != 0);
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
	doorbell_turn(loop->doorbell);
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
