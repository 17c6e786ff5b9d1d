/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/daemon.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/daemon/parent.h"
#include "common/daemon/signals.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "common/options.h"
#include "common/proc.h"

#define TICK_NS       20000000ull
#define FILES_MAX     65536u
#define ROOM_PAUSE_MS 1000

/* ---- commands ----------------------------------------------------------- */

static bool daemon_has_command(const struct daemon *d, const char *command)
{
	for (const char *const *known = d->program->commands; known && *known; known++)
		if (strcmp(*known, command) == 0)
			return true;
	return false;
}

/* ---- while it runs ------------------------------------------------------ */

/* Schedules the next look at the configuration's file in STILL ns; 0: none. */
static void daemon_look_again(struct daemon *d, uint64_t still)
{
	d->settled_ns = still ? proc_monotonic_ns() + still : 0;
}

bool daemon_awaits_file(const struct daemon *d)
{
	return d->settled_ns || d->reload || d->config_refused;
}

int daemon_attend(struct daemon *d)
{
	struct pollfd parent = {.fd = d->parent_fd, .events = POLLIN};

	d->ticked_ns = proc_monotonic_ns();
	for (int number; (number = signals_next(d->signals_fd)) > 0;) {
		d->stop |= number == SIGTERM || number == SIGINT;
		d->reload |= number == SIGHUP;
	}
	control_turn(d->control);
	/* A reload for the frame, and one other command for the program. Another reload waits: the
	 * file may have changed since the first one read it. */
	if (!d->reload_call)
		d->reload_call = control_next(d->control, "reload");
	d->reload |= d->reload_call != NULL;
	while (!d->call && (d->call = control_next_other(d->control, "reload")) &&
		!daemon_has_command(d, control_command(d->call)))
		control_end(&d->call, -EPROTO, "unknown command");
	if (d->settled_ns && proc_monotonic_ns() >= d->settled_ns) {
		d->settled_ns = 0;
		d->reload |= config_file_changed(d->config);
	}
	if (!d->stop && d->parent_fd >= 0 && poll(&parent, 1, 0) > 0) {
		LOG(supervisor_gone, .daemon = d->program->name, .pid = getpid());
		d->stop = true;
	}
	stats_heartbeat(d->stats);
	if (d->ticked_ns - d->notified_ns >= SECOND_NS) {
		d->notified_ns = d->ticked_ns;
		parent_notify("WATCHDOG=1");
	}
	return d->stop ? err_say(-EINTR, "stopping") : 0;
}

int daemon_tick(struct daemon *d)
{
	if (d->stop || proc_monotonic_ns() - d->ticked_ns >= TICK_NS)
		return daemon_attend(d);
	return 0;
}

bool daemon_second(struct daemon *d)
{
	uint64_t now = proc_monotonic_ns();

	if (now - d->second_ns < SECOND_NS)
		return false;
	d->second_ns = now;
	return true;
}

void daemon_poll_fds(const struct daemon *d, struct pollfd ret_fds[DAEMON_FDS])
{
	/* poll(2) passes over a negative descriptor. */
	ret_fds[0] = (struct pollfd){.fd = d->signals_fd, .events = POLLIN};
	ret_fds[1] = (struct pollfd){.fd = d->parent_fd, .events = POLLIN};
	ret_fds[2] = (struct pollfd){.fd = control_fd(d->control), .events = POLLIN};
}

void daemon_sleep(struct daemon *d, int timeout_ms)
{
	struct pollfd fds[DAEMON_FDS];

	daemon_poll_fds(d, fds);
	(void)poll(fds, DAEMON_FDS, timeout_ms); /* any result: everything is checked */
	(void)daemon_attend(d);                  /* the caller checks d->stop */
}

/* Names the changed keys of PROGRAM (USER) that need its restart. */
static void daemon_name_keys(
	struct daemon *d, const struct config *config, enum config_user user, const char *program)
{
	char keys[CONFIG_KEYS_SIZE];

	if (!config_needs_restart(d->config, config, user, keys))
		return;
	LOG(config_needs_restart, .daemon = program, .keys = keys);
	control_note(d->reload_call,
		"%s uses a changed value of these keys only after a restart: %s", program, keys);
}

/* Names the changed keys that need a restart of `kinf run`, this daemon's parent: it has no command
 * "reload" and rereads the file at SIGHUP. */
static void daemon_name_supervisors_keys(struct daemon *d)
{
	CLEANUP(config_free) struct config *config = NULL;
	struct config_flags flags = d->flags;
	bool store, runtime_dir;

	parent_given(&store, &runtime_dir);
	flags.store = store ? flags.store : NULL;
	flags.runtime_dir = runtime_dir ? flags.runtime_dir : NULL;
	int r = config_load(&flags, &config);
	if (r < 0)
		err_ignore(r, "the file was good before: its next change is read again");
	else
		daemon_name_keys(d, config, CONFIG_RUN, "kinf run");
}

bool daemon_reload(struct daemon *d)
{
	struct config *config = NULL;
	config_note_file(d->config);
	/* Opening a pipe would wait. */
	int r = S_ISFIFO(d->config->file_read.st_mode)
			? err_say(ERR_CONFIG, "'%s' is a pipe: name a file", d->config->file)
			: config_load(&d->flags, &config);

	d->reload = false;
	if (r >= 0 && d->config->n_feeds)
		r = config_need_feeds(config); /* a lost file must not cost all objects */
	if (r < 0) {
		config_free(&config);
		daemon_look_again(d, CONFIG_STILL_NS);
		LOG(config_refused, .daemon = d->program->name, .error = err_text(r));
		stats_set_error(d->stats, err_text(r));
		d->config_refused = true;
		control_end(&d->reload_call, r, err_text(r));
		err_forget();
		return false;
	}
	daemon_name_keys(d, config, d->program->user, d->program->name);
	if (d->reload_call && d->parent_fd >= 0 && d->program->user == CONFIG_REFLECTOR)
		daemon_name_supervisors_keys(d);
	config_keep_fixed(config, d->config);
	config_free(&d->config);
	d->config = config;
	daemon_look_again(d, config_unsettled_ns(config));
	if (d->config_refused)
		stats_set_error(d->stats, "");
	d->config_refused = false;
	LOG(config_loaded, .daemon = d->program->name, .feeds = config->n_feeds);
	return true;
}

void daemon_needs_restart(struct daemon *d, const char *what)
{
	LOG(config_needs_restart, .daemon = d->program->name, .keys = what);
	control_note(
		d->reload_call, "%s uses this only after a restart: %s", d->program->name, what);
}

void daemon_reloaded(struct daemon *d, int r)
{
	const struct config *config = d->config;
	char used[PATH_MAX + 32];

	(void)snprintf(used, sizeof(used), "%s%s", config->file ? config->file : "its command line",
		config->file && d->flags.watch.n ? ", with the feeds of --watch" : "");
	control_end(&d->reload_call, r, r < 0 ? err_text(r) : used);
}

/* ---- from start to end -------------------------------------------------- */

int daemon_continue_page(struct daemon *d, int runtime_fd)
{
	int r = stats_continue(runtime_fd, d->program->status_page, &d->stats);

	return r == -ENOENT || r == ERR_FORMAT
		       ? stats_create(runtime_fd, d->program->status_page, &d->stats)
		       : r;
}

int daemon_open_page(struct daemon *d, int runtime_fd)
{
	size_t size;
	int r = stats_create(runtime_fd, d->program->status_page, &d->stats);

	if (r < 0)
		return r;
	char *note = stats_check_text(d->stats, &size);
	check_note_into(note, size);
	return control_open(runtime_fd, d->program->control_socket, &d->control);
}

static bool daemon_lacks_room(int r)
{
	return r == -ENOSPC || r == -EDQUOT;
}

bool daemon_await_room(struct daemon *d, int r)
{
	if (!daemon_lacks_room(r) || d->stop)
		return false;
	failure_add(&d->failure, d->stats, r, err_text(r));
	err_forget();
	parent_notify("EXTEND_TIMEOUT_USEC=10000000"); /* the service manager's, for starting */
	daemon_sleep(d, ROOM_PAUSE_MS);
	return !d->stop;
}

void daemon_ready(struct daemon *d)
{
	if (!d->ready)
		parent_notify("READY=1");
	d->ready = true;
}

static int daemon_complain(const struct daemon_program *program, int error)
{
	if (program->is_of_command && program->is_of_command())
		(void)fprintf(stderr, "Error: %s\n", err_text(error));
	else
		LOG(daemon_ended, .daemon = program->name, .error = err_text(error));
	return (int)proc_exit_of(error);
}

/* Writes the reason of the end, or of a failed start in the store of CONFIG, into the status page.
 * Keeps the sentence. */
static void daemon_note_failure(struct daemon *d, const struct config *config, int error)
{
	struct err_kept why;

	err_keep(&why);
	if (!d->stats && config && d->program->open_page)
		d->program->open_page(d, config);
	err_restore(&why);
	stats_set_error(d->stats, err_text(error));
	stats_set_state(d->stats, "failed");
}

/* The same for a refused configuration: its store counts if it is readable. */
static void daemon_note_refusal(struct daemon *d, int error)
{
	CLEANUP(config_free) struct config *config = NULL;
	struct config_flags flags = d->flags;
	struct err_kept why;

	err_keep(&why);
	flags.store_only = true;
	err_ignore(config_load(&flags, &config), "the log alone says why");
	err_restore(&why);
	daemon_note_failure(d, config, error);
}

int daemon_end(struct daemon *d, int error)
{
	int status = PROC_OK;

	parent_notify("STOPPING=1");
	if (d->stop && daemon_lacks_room(error)) /* it waited, and was stopped */
		error = 0;
	if (error < 0) {
		daemon_note_failure(d, d->config, error);
		status = daemon_complain(d->program, error); /* a failure is one line */
		/* A right that it had may come back. */
		if (d->ready && status == PROC_CONFIG)
			status = PROC_TEMPORARY;
	} else {
		stats_set_state(d->stats, "stopped");
		LOG(daemon_stopped, .daemon = d->program->name, .pid = getpid());
	}
	return status;
}

static void daemon_release(struct daemon *d)
{
	check_note_into(NULL, 0);
	control_close(&d->control);
	stats_close(&d->stats);
	config_free(&d->config);
	config_flags_release(&d->flags);
	cleanup_fd(&d->signals_fd);
}

int daemon_main(const struct daemon_program *program, int argc, char **argv)
{
	CLEANUP(daemon_release)
	struct daemon d = {.program = program, .signals_fd = -1, .parent_fd = -1};
	static const struct option_spec specs[] = {
		{0, "check", OPTION_FLAG, offsetof(struct daemon, check), NULL,
			"check the configuration, and the files and names in it, then exit"}};
	struct options_group groups[4] = {config_running_options(&d.flags),
		config_common_options(&d.flags), {"Checking", specs, ARRAY_SIZE(specs), &d}};
	if (program->options)
		groups[3] = *program->options;
	struct options options = {.program = program->name,
		.usage = "",
		.about = program->about,
		.groups = groups,
		.n_groups = program->options ? 4 : 3};
	int first;

	proc_begin();
	int r = options_parse(&options, argc, argv, &first);

	if (r == END)
		return PROC_OK;
	if (!r && first < argc)
		r = options_bad(&options, "unexpected operand '%s'", argv[first]);
	if (r < 0) {
		(void)fprintf(stderr, "%s: %s\n", program->name, err_text(r));
		return r == ERR_SYNTAX ? PROC_USAGE : PROC_FAILED;
	}
	log_setup(program->name, LOG_INFO, config_log_format(&d.flags));
	r = failpoint_setup();
	if (r >= 0)
		r = config_load(&d.flags, &d.config);
	if (d.check && r >= 0 && program->check)
		r = program->check(d.config);
	if (d.check) {
		if (r < 0)
			(void)fprintf(stderr, "Error: %s\n", err_text(r));
		return r < 0 ? PROC_CONFIG : PROC_OK;
	}
	if (r < 0) {
		daemon_note_refusal(&d, r);
		(void)daemon_complain(program, r);
		return PROC_CONFIG; /* also for a missing file: a restart alone does not help */
	}
	log_setup(program->name, d.config->log_level, d.config->log_format);
	if (program->instead && (r = program->instead(d.config)) != END) {
		if (r < 0)
			(void)fprintf(stderr, "Error: %s\n", err_text(r));
		return r < 0 ? PROC_FAILED : r;
	}
	if (d.config->passed_over)
		LOG(config_passed_over, .daemon = program->name, .why = d.config->passed_over);
	if (d.config->overruled)
		LOG(config_overruled, .daemon = program->name, .why = d.config->overruled);
	/* Each reading process costs the writer a descriptor; the limit of most systems is 1024. */
	r = proc_raise_files(FILES_MAX);
	if (r < 0) {
		(void)daemon_complain(program, r);
		return PROC_CONFIG; /* a restart does not help */
	}
	d.signals_fd = signals_open();
	if (d.signals_fd < 0)
		return daemon_complain(program, d.signals_fd);
	d.parent_fd = parent_pipe();
	daemon_look_again(&d, config_unsettled_ns(d.config));
	return program->run(&d);
}
