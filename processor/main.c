/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf-processor: follows the journal and keeps the index. This file is the frame: options, role,
 * signals, heartbeat, back-off. What is done is in pair.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/config/config.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/options.h"
#include "common/proc.h"
#include "processor/doorbell.h"
#include "processor/pair.h"
#include "processor/readers.h"

#define PROGRAM        "kinf-processor"
#define STATUS_PAGE    "stats.processor"
#define SECOND_NS      1000000000ull
#define TICK_NS        20000000ull
#define WAIT_MS        200 /* signals are looked at this often while nothing comes */
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 5000

struct app {
	struct processor p;
	struct config_flags flags;
	struct config *config;
	struct readers *readers;
	struct pair *pair;
	int signals_fd, death_fd;
	bool stop, reload;
	bool anew;    /* the index is damaged: build another */
	bool waiting; /* "no journal yet" was said */
	bool mute;    /* "no doorbell" was */
	bool homeless; /* "no runtime folder" was */
	int lost;     /* the store was taken away: why; 0: it is there */
	int failing;  /* the error that was said and is not yet survived; 0: none */
	int backoff_ms;
	uint64_t ticked, notified, looked, checked, opened; /* when, monotonic */
};

/* ---- signals, heartbeat ---- */

static void read_signals(struct app *app)
{
	for (int number; (number = proc_signals_next(app->signals_fd)) > 0;) {
		app->stop |= number == SIGTERM || number == SIGINT;
		app->reload |= number == SIGHUP;
	}
	struct pollfd death = {.fd = app->death_fd, .events = POLLIN};
	if (app->death_fd >= 0 && poll(&death, 1, 0) > 0 && !app->stop) {
		log_event(LOG_NOTICE, "processor", "supervisor gone", "pid=%d", (int)getpid());
		app->stop = true;
	}
}

/* Called from all long work. */
static int app_tick(void *arg)
{
	struct app *app = arg;
	uint64_t now = proc_monotonic_ns();

	if (now - app->ticked < TICK_NS)
		return 0;
	app->ticked = now;
	read_signals(app);
	stats_heartbeat(app->p.stats);
	if (now - app->notified >= SECOND_NS) {
		app->notified = now;
		proc_notify("WATCHDOG=1");
	}
	return app->stop ? err_set(-EINTR, "stopping") : 0;
}

static void pause_ms(struct app *app, int timeout_ms)
{
	struct pollfd fds[] = {
		{.fd = app->signals_fd, .events = POLLIN}, {.fd = app->death_fd, .events = POLLIN}};

	(void)poll(fds, 2, timeout_ms); /* any result: look again */
	app->ticked = 0;
	(void)app_tick(app); /* app->stop says it */
}

/* ---- errors ---- */

/* What a person can do something about, in the words of the status page. */
static const char *waiting_for(int error)
{
	switch (error) {
	case -ENOSPC:
	case -EDQUOT:
		return "waiting for disk space";
	case ERR_MAP_FULL:
		return "waiting for room in the database map";
	case -ENOMEM:
		return "waiting for memory";
	default:
		return "retrying after an error";
	}
}

/* Nothing is lost: the batch is in the journal, the pair is opened again after a while. */
static void fail(struct app *app, int error)
{
	if (!app->failing)
		log_event(
			LOG_ERROR, "processor", "failed", "reason=%s", log_quote(err_text(error)));
	app->failing = error;
	app->p.retrying = true;
	stats_set_error(app->p.stats, err_text(error));
	stats_set_state(app->p.stats, waiting_for(error));
	err_clear();
	pair_close(&app->pair);
	app->anew |= error == ERR_CORRUPT || error == -EIO; /* until one was built: it may lack room */
	app->backoff_ms = app->backoff_ms ? app->backoff_ms * 2 : BACKOFF_MIN_MS;
	if (app->backoff_ms > BACKOFF_MAX_MS)
		app->backoff_ms = BACKOFF_MAX_MS;
	pause_ms(app, app->backoff_ms);
}

/* A second of work went well, what had failed included. */
static void survive(struct app *app)
{
	if (app->failing) {
		log_event(LOG_NOTICE, "processor", "going on", "backoff_ms=%d", app->backoff_ms);
		stats_set_error(app->p.stats, "");
	}
	app->failing = 0;
	app->p.retrying = false;
	app->backoff_ms = 0;
}

/* ---- the loop ---- */

static void open_pair(struct app *app)
{
	int r = pair_open(&app->p, app->anew, &app->pair);

	if (r == NOT_FOUND) {
		if (!app->waiting)
			log_event(LOG_NOTICE, "processor", "waiting for a journal", "store=%s",
				log_quote(home_path(app->p.home)));
		app->waiting = true;
		stats_set_state(app->p.stats, "waiting for a journal");
		pause_ms(app, WAIT_MS);
	} else if (r < 0 && !app->stop) {
		fail(app, r);
	} else if (!r) {
		app->waiting = app->anew = false;
		app->opened = proc_monotonic_ns();
		log_event(LOG_NOTICE, "processor", "following", "published=%s",
			pair_is_published(app->pair) ? "yes" : "no");
	}
}

static void reload(struct app *app)
{
	struct config *config = NULL;
	int r = config_load(&app->flags, &config);

	app->reload = false;
	if (r < 0) {
		log_event(LOG_ERROR, "config", "not reloaded", "reason=%s", log_quote(err_text(r)));
		err_clear();
		return;
	}
	char keys[CONFIG_KEYS_SIZE];
	if (config_needs_restart(app->config, config, CONFIG_PROCESSOR, keys))
		log_event(LOG_WARNING, "config", "needs-restart", "keys=%s text=%s", log_quote(keys),
			log_quote("the old values stay until kinf-processor is started again"));
	config_keep_fixed(config, app->config);
	config_free(&app->config);
	app->config = config;
	app->p.config = config;
	app->checked = 0;
	log_event(LOG_NOTICE, "config", "reloaded", "feeds=%zu", config->n_feeds);
}

static void note_checks(struct app *app)
{
	size_t size;
	char *note = stats_check_text(app->p.stats, &size);

	check_note_into(note, size);
}

/* Folders that somebody has taken away are made again, the status page in them too. Where that fails we
 * go on without, and try again. */
static void keep_folders(struct app *app)
{
	home_refresh(app->p.home);
	int r = stats_keep(app->p.stats, home_runtime_fd(app->p.home), STATUS_PAGE);

	if (r == GONE) {
		note_checks(app);
		log_event(LOG_NOTICE, "processor", "runtime folder made again", "folder=%s",
			log_quote(home_runtime(app->p.home)));
	} else if (r < 0 && !app->homeless) {
		log_event(LOG_WARNING, "processor", "the runtime folder is lost, nobody sees our status",
			"reason=%s", log_quote(err_text(r)));
	}
	app->homeless = r < 0;
}

/* Where none can be made followers are told later, not wrongly: no reason to stop. */
static void keep_doorbell(struct app *app)
{
	if (app->p.doorbell && doorbell_check(app->p.doorbell, app->p.home) == FOUND)
		return;
	doorbell_close(&app->p.doorbell);
	int r = doorbell_open(app->p.home, &app->p.doorbell);
	if (r < 0 && !app->mute)
		log_event(LOG_WARNING, "processor", "no doorbell, followers that poll are slower",
			"reason=%s", log_quote(err_text(r)));
	app->mute = r < 0;
}

/* Once a second. */
static int check(struct app *app)
{
	uint64_t now = proc_monotonic_ns();

	if (now - app->checked < SECOND_NS)
		return 0;
	app->checked = now;
	int r = pair_check(app->pair);
	if (!r)
		r = readers_check(app->readers, pair_env(app->pair), app->p.stats, now);
	if (!r && now - app->opened >= SECOND_NS)
		survive(app);
	return r;
}

static void step(struct app *app)
{
	int r = check(app);
	int more = r ? r : pair_step(app->pair);

	if (more == AGAIN)
		pair_wait(app->pair, WAIT_MS);
	else if (more == GONE || more == LAPPED)
		pair_close(&app->pair);
	else if (more < 0 && !app->stop)
		fail(app, more);
}

/* Once a second, with a pair or without: is the store still where readers look for it? */
static void look_at_store(struct app *app)
{
	uint64_t now = proc_monotonic_ns();

	if (now - app->looked < SECOND_NS)
		return;
	app->looked = now;
	app->lost = home_check(app->p.home);
	if (!app->lost) {
		keep_folders(app);
		keep_doorbell(app);
		return;
	}
	app->stop = true;
	log_event(LOG_ERROR, "processor", "ended", "error=%s", log_quote(err_text(app->lost)));
}

static void run(struct app *app)
{
	proc_notify("READY=1");
	while (!app->stop) {
		(void)app_tick(app); /* app->stop says it */
		look_at_store(app);
		if (app->reload)
			reload(app);
		if (app->stop)
			break;
		if (app->pair)
			step(app);
		else
			open_pair(app);
	}
	proc_notify("STOPPING=1");
	stats_set_state(app->p.stats, "stopped");
	pair_close(&app->pair);
	log_event(LOG_NOTICE, "processor", "stopped", "pid=%d", (int)getpid());
}

/* ---- starting ---- */

static int bad_usage(int code)
{
	(void)fprintf(stderr, PROGRAM ": %s\n", err_text(code));
	return PROC_USAGE;
}

static int complain(int code, int status)
{
	log_event(LOG_ERROR, "main", "ended", "error=%s", log_quote(err_text(code)));
	return status;
}

static int open_home(struct app *app)
{
	struct home_options options = {.create = true,
		.runtime_dir = app->config->runtime_dir,
		.group = app->config->group};
	int r = home_open(app->config->store, &options, &app->p.home);

	if (!r)
		r = home_take_role(app->p.home, HOME_PROCESSOR);
	if (!r)
		r = stats_create(home_runtime_fd(app->p.home), STATUS_PAGE, &app->p.stats);
	if (!r)
		r = readers_new(&app->readers);
	if (r < 0)
		return r;
	note_checks(app);
	proc_catch_faults(PROGRAM, home_path(app->p.home));
	return 0;
}

static int start(struct app *app)
{
	log_setup(PROGRAM, LOG_INFO, config_first_format(&app->flags));
	int r = config_load(&app->flags, &app->config);

	if (r < 0)
		return complain(r, PROC_CONFIG);
	app->p.config = app->config;
	log_setup(PROGRAM, app->config->log_level, app->config->log_format);
	app->signals_fd = proc_signals_open();
	if (app->signals_fd < 0)
		return complain(app->signals_fd, PROC_FAILED);
	app->death_fd = proc_death_fd();
	r = open_home(app);
	if (r < 0)
		return complain(r, proc_exit_of(r));
	log_event(LOG_NOTICE, "processor", "started", "pid=%d store=%s", (int)getpid(),
		log_quote(home_path(app->p.home)));
	if (env_library_fault())
		log_event(LOG_WARNING, "store", "library", "text=%s", log_quote(env_library_fault()));
	run(app);
	return app->lost ? (int)proc_exit_of(app->lost) : PROC_OK;
}

static void app_release(struct app *app)
{
	pair_close(&app->pair);
	doorbell_close(&app->p.doorbell);
	readers_free(&app->readers);
	check_note_into(NULL, 0);
	stats_close(&app->p.stats);
	home_close(&app->p.home);
	config_free(&app->config);
	config_flags_release(&app->flags);
	cleanup_fd(&app->signals_fd);
}

int main(int argc, char **argv)
{
	CLEANUP(app_release) struct app app = {.signals_fd = -1, .death_fd = -1};
	struct options_group groups[] = {
		config_running_options(&app.flags), config_common_options(&app.flags)};
	struct options options = {.program = PROGRAM,
		.usage = "",
		.about =
			"Keeps the index of a kinformer store: follows the journal, tells readers.",
		.groups = groups,
		.n_groups = ARRAY_SIZE(groups)};
	int first;
	int r = failpoint_setup();

	if (r < 0)
		return bad_usage(r);
	r = options_parse(&options, argc, argv, &first);
	if (r == END)
		return PROC_OK;
	if (!r && first < argc)
		r = options_bad(&options, "unexpected operand '%s'", argv[first]);
	if (r < 0)
		return bad_usage(r);
	app.p.tick = app_tick;
	app.p.tick_arg = &app;
	return start(&app);
}
