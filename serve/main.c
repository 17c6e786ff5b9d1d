/* SPDX-License-Identifier: Apache-2.0 */
/* kinf-serve: common/daemon is the frame; serve.c opens, accepts and closes. */
#include <errno.h>

#include "common/cleanup.h"
#include "common/daemon/daemon.h"
#include "common/daemon/faults.h"
#include "common/err.h"
#include "common/log.h"
#include "serve/check.h"
#include "serve/serve.h"

#define WAIT_MS 200 /* the longest sleep */

/* Waits until there are a store and its runtime directory; the daemons make both. */
static int main_open_home(struct daemon *daemon, struct home **ret_home)
{
	const struct home_options options = {.runtime_dir = NULL};
	bool logged = false;

	for (;;) {
		int r = home_open(daemon->config->store, &options, ret_home);

		if (r == 0 && home_runtime_fd(*ret_home) >= 0)
			return 0;
		if (r < 0 && r != ERR_NO_STORE && r != -ENOENT)
			return r;
		if (!logged)
			LOG(serve_waiting,
				.error = r < 0 ? err_text(r) : home_lacks_runtime(*ret_home));
		logged = true;
		err_forget();
		home_close(ret_home);
		daemon_ready(daemon);
		daemon_sleep(daemon, WAIT_MS);
		if (daemon->stop)
			return err_say(-EINTR, "stopping");
	}
}

static int main_loop(struct serve *serve)
{
	struct daemon *daemon = serve->daemon;

	daemon_ready(daemon);
	/* Without a heartbeat for long enough the supervisor starts a new process. */
	while (serve_hangs(serve) ? !daemon->stop : daemon_tick(daemon) >= 0) {
		if (daemon_second(daemon)) {
			int r = home_check(serve->home);
			if (r < 0)
				return r;
			serve_report(serve);
			serve_trim(serve);
			serve_renew(serve);
		}
		if (daemon->reload && daemon_reload(daemon)) {
			daemon_reloaded(daemon, serve_reload(serve));
			err_forget();
		}
		int r = serve_turn(serve, WAIT_MS);
		if (r < 0)
			return r;
	}
	return 0;
}

static int main_run(struct daemon *daemon)
{
	struct serve serve = {.directory_fd = -1, .lock_fd = -1};
	int r = main_open_home(daemon, &serve.home);

	if (r == 0) {
		faults_catch(daemon->program->name, home_path(serve.home));
		r = serve_open(&serve, daemon);
	}
	if (r == 0)
		r = main_loop(&serve);
	if (r == -EINTR && daemon->stop)
		r = 0;
	int status = daemon_end(daemon, r);
	serve_close(&serve);
	return status;
}

int main(int argc, char **argv)
{
	static const struct daemon_program program = {
		.name = "kinf-serve",
		.about = "Answers get, list and watch over HTTP as the API server does, from a "
			 "kinformer store.",
		.status_page = "stats.serve",
		.control_socket = "control.serve",
		.user = CONFIG_SERVE,
		.check = serve_check,
		.run = main_run,
	};

	return daemon_main(&program, argc, argv);
}
