/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf-processor: follows the journal and keeps the index. common/daemon is the frame; this file
 * opens the store, and reopens the pair of journal and index after every error, after growing
 * pauses. The work is in pair.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/daemon/daemon.h"
#include "common/daemon/faults.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "processor/pair.h"
#include "processor/readers.h"
#include "store/env/env.h"
#include "store/env/env_copy.h"
#include "store/index/index.h"

#define PLACES_NS (10 * SECOND_NS)
#define WAIT_MS   200 /* the longest sleep */
/* Both daemons start at once, and a reflector needs time to replace an unreadable journal. */
#define PATIENCE_NS    (5 * SECOND_NS)
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 5000

/* The program's own options. */
static struct {
	bool once, rebuild;
} processor_options;

struct app {
	struct daemon *daemon;
	bool done;  /* with --once */
	int failed; /* with --once: its final error */
	struct err_kept failure;
	struct processor p;
	struct readers readers;
	struct pair *pair;
	bool index_damaged;              /* the next pair_open() builds another index */
	struct control_call *rebuilding; /* the command for another index; NULL: none */
	struct control_call *compacting; /* the command for a copy of it; NULL: none */
	bool compact_due;                /* copy it without a command */
	bool places_checked;             /* of this pair */
	struct bloat bloat;
	bool waiting_logged; /* for a journal */
	int backoff_ms;
	uint64_t checked_ns, opened_ns; /* monotonic */
	/* start of the time without a pair; 0: there was one in the last turn */
	uint64_t without_pair_ns;
};

/* An error loses nothing: the journal has the batch, and the pair is reopened after a pause. */
static void processor_fail(struct app *app, int error)
{
	stats_add(app->p.stats, STAT_INDEX_COMMIT_ERRORS, 1);
	if (processor_options.once) {
		app->failed = error;
		err_keep(&app->failure);
	} else {
		failure_add(&app->daemon->failure, app->daemon->stats, error, err_text(error));
	}
	app->p.retrying = true;
	control_end(&app->rebuilding, error, err_text(error));
	err_forget();
	pair_close(&app->pair);
	if (error == ERR_CORRUPT)
		stats_add(app->p.stats, STAT_DAMAGED, 1);
	/* Stays set until an index was built: the attempt may lack room. */
	app->index_damaged |= error == ERR_CORRUPT || error == -EIO;
	app->backoff_ms = app->backoff_ms ? app->backoff_ms * 2 : BACKOFF_MIN_MS;
	if (app->backoff_ms > BACKOFF_MAX_MS)
		app->backoff_ms = BACKOFF_MAX_MS;
	daemon_sleep(app->daemon, app->backoff_ms);
}

static int processor_report(void *arg, uint64_t bytes)
{
	struct app *app = arg;

	control_progress(app->compacting, bytes >> 20, 0, "MiB");
	if (control_is_gone(app->compacting))
		return err_say(-ECANCELED, "cancelled: the client has gone");
	return daemon_tick(app->daemon);
}

/* Replaces the index by a compact copy, while the pair is closed. */
static void processor_compact(struct app *app)
{
	const struct index_options options = {.map_bytes = app->p.config->map_bytes};

	uint64_t begun = proc_monotonic_ns();

	stats_set_state(app->p.stats, "compacting the index");
	int r = index_compact(app->p.home, &options, processor_report, app);
	if (r == NOT_FOUND)
		r = err_say(-ENOENT, "there is no index yet");
	bloat_end(&app->bloat, r, begun, proc_monotonic_ns());
	app->compact_due = false;
	if (r == 0)
		LOG(index_compacted);
	else if (!app->compacting && !app->daemon->stop)
		LOG(index_compact_failed, .error = err_text(r));
	control_end(&app->compacting, r, r < 0 ? err_text(r) : "done");
	app->index_damaged |= r == ERR_CORRUPT || r == -EIO;
	err_ignore(r, "the client has the reason, and the index is as before");
}

static void processor_open_pair(struct app *app)
{
	if (app->compacting || app->compact_due)
		processor_compact(app);
	const char *rebuild = app->index_damaged ? "the old one is damaged"
			      : app->rebuilding || processor_options.rebuild
				      ? "'kinf rebuild-index' asks for it"
				      : NULL;
	if (!app->without_pair_ns)
		app->without_pair_ns = proc_monotonic_ns();
	app->p.once = processor_options.once;
	app->p.patient = !app->p.once && proc_monotonic_ns() - app->without_pair_ns < PATIENCE_NS;
	app->p.call = app->rebuilding;
	int r = pair_open(&app->p, rebuild, &app->pair);
	app->p.call = NULL;

	if (r == NOT_FOUND) {
		if (!app->waiting_logged)
			LOG(journal_awaited, .store = home_path(app->p.home));
		app->waiting_logged = true;
		control_end(&app->rebuilding, -EPROTO,
			"there is no journal yet: kinf-reflector makes it");
		stats_set_state(app->p.stats, "waiting for a journal");
		daemon_sleep(app->daemon, WAIT_MS);
	} else if (r < 0 && !app->daemon->stop) {
		processor_fail(app, r);
	} else if (!r) {
		app->waiting_logged = app->index_damaged = false;
		processor_options.rebuild = false;
		app->opened_ns = proc_monotonic_ns();
		app->without_pair_ns = 0;
		app->places_checked = false;
		control_end(&app->rebuilding, 0, "the index is built");
	}
}

/* Checks if a copy of the index is worth its cost: its file is much longer than its content, or the
 * journal was compacted. After the latter a command may soon ask for the other copy. */
static int processor_weigh(struct app *app, uint64_t now)
{
	struct env_info info;
	int r = env_info(pair_env(app->pair), &info);

	if (r == 0)
		app->compact_due = bloat_is_due(&app->bloat, &info, now);
	if (r < 0 || app->compact_due || app->places_checked ||
		!bloat_is_allowed(&app->bloat, now) || now - app->opened_ns < PLACES_NS)
		return r;
	app->places_checked = true;
	r = pair_find_old_places(app->pair);
	app->compact_due = r == FOUND;
	return r < 0 ? r : 0;
}

/* Checks the pair and the readers of the index, once a second. */
static int processor_check_pair(struct app *app)
{
	uint64_t now = proc_monotonic_ns();

	if (now - app->checked_ns < SECOND_NS)
		return 0;
	app->checked_ns = now;
	int r = pair_check(app->pair);
	if (!r)
		readers_check(&app->readers, pair_env(app->pair), pair_journal_env(app->pair),
			app->p.stats, now);
	if (!r && pair_is_published(app->pair) && !processor_options.once)
		r = processor_weigh(app, now);
	/* After a second of good work the failed work has succeeded too. */
	if (!r && now - app->opened_ns >= SECOND_NS) {
		failure_end(&app->daemon->failure, app->p.stats, pair_state(app->pair));
		app->p.retrying = false;
		app->backoff_ms = 0;
	}
	return r;
}

static void processor_step(struct app *app)
{
	int r = processor_check_pair(app);

	if (!r)
		r = pair_step(app->pair);
	app->done = r == AGAIN && pair_is_published(app->pair);
	if (r == AGAIN && !(app->done && processor_options.once))
		pair_wait(app->pair, WAIT_MS);
	if (r == GONE || r == LAPPED || (r >= 0 && app->compact_due))
		pair_close(&app->pair);
	else if (r < 0 && !app->daemon->stop)
		processor_fail(app, r);
}

/* Returns: 0 when the daemon is to stop; the error at its end. */
static int processor_loop(struct app *app)
{
	struct daemon *daemon = app->daemon;
	struct replaced_loss loss;

	daemon_ready(daemon);
	while (daemon_tick(daemon) >= 0) {
		if (daemon_second(daemon)) {
			int r = home_check(app->p.home);
			if (r < 0)
				return r;
			if (home_maintain_replaced(app->p.home, &loss))
				LOG(snapshot_given_up, .program = loss.program, .pid = loss.pid,
					.uid = loss.uid, .snapshots = loss.snapshots,
					.bytes = loss.bytes);
		}
		if (daemon->reload && daemon_reload(daemon)) {
			app->p.config = daemon->config;
			app->p.config_version++;
			app->checked_ns = 0;
			daemon_reloaded(daemon, 0);
		}
		if (daemon->call && !app->rebuilding && !app->compacting) {
			if (strcmp(control_command(daemon->call), "compact") == 0)
				app->compacting = TAKE(daemon->call);
			else
				app->rebuilding = TAKE(daemon->call);
			pair_close(&app->pair);
		}
		if (app->pair)
			processor_step(app);
		else
			processor_open_pair(app);
		if (processor_options.once && (app->done || app->failed)) {
			if (app->failed)
				err_restore(&app->failure);
			return app->failed;
		}
	}
	return 0;
}

static int processor_open(struct app *app)
{
	const struct config *config = app->daemon->config;
	struct home_options options = {
		.create = true, .runtime_dir = config->runtime_dir, .group = config->group};
	int r;

	do
		r = home_open(config->store, &options, &app->p.home);
	while (daemon_await_room(app->daemon, r));
	if (!r)
		do
			r = home_take_role(app->p.home, HOME_PROCESSOR);
		while (daemon_await_room(app->daemon, r));
	if (!r) /* before the page: its map's watch passes other faults on */
		faults_catch(app->daemon->program->name, home_path(app->p.home));
	if (!r)
		do
			r = daemon_open_page(app->daemon, home_runtime_fd(app->p.home));
		while (daemon_await_room(app->daemon, r));
	if (r < 0)
		return r;
	app->p.config = config;
	app->p.stats = app->daemon->stats;
	home_guard_file(app->p.home, app->daemon->program->status_page);
	home_guard_file(app->p.home, app->daemon->program->control_socket);
	LOG(daemon_started, .daemon = app->daemon->program->name, .pid = getpid(),
		.store = home_path(app->p.home));
	return 0;
}

static void processor_release(struct app *app)
{
	pair_close(&app->pair);
	home_close(&app->p.home);
}

static int processor_attend(void *daemon)
{
	return daemon_tick(daemon);
}

static int processor_run(struct daemon *daemon)
{
	CLEANUP(processor_release)
	struct app app = {.daemon = daemon, .p = {.tick = processor_attend, .tick_arg = daemon}};

	if (processor_options.once &&
		daemon->config->log_level ==
			LOG_NOTICE) /* a command runs it and has its own words */
		log_setup(daemon->program->name, LOG_WARNING, daemon->config->log_format);
	int r = processor_open(&app);

	if (!r)
		r = processor_loop(&app);
	int status = daemon_end(daemon, r);
	pair_close(&app.pair); /* its own pin file keeps the runtime directory */
	if (app.p.home && (r >= 0 || r == ERR_MOVED))
		home_remove_runtime(app.p.home);
	return status;
}

static bool processor_is_of_command(void)
{
	return processor_options.once;
}

int main(int argc, char **argv)
{
	static const char *const commands[] = {"rebuild-index", "compact", NULL};
	static const struct option_spec specs[] = {
		{0, "once", OPTION_FLAG, offsetof(__typeof__(processor_options), once), NULL,
			"build the index if need be, take what the journal has, then exit"},
		{0, "rebuild", OPTION_FLAG, offsetof(__typeof__(processor_options), rebuild), NULL,
			"build the index again in any case"},
	};
	static const struct options_group options = {
		"Working once", specs, ARRAY_SIZE(specs), &processor_options};
	static const struct daemon_program program = {
		.name = "kinf-processor",
		.about =
			"Keeps the index of a kinformer store: follows the journal, tells readers.",
		.status_page = "stats.processor",
		.control_socket = "control.processor",
		.commands = commands,
		.user = CONFIG_PROCESSOR,
		.options = &options,
		.is_of_command = processor_is_of_command,
		.run = processor_run,
	};

	return daemon_main(&program, argc, argv);
}
