/* SPDX-License-Identifier: Apache-2.0 */
/* kinf-serve: common/daemon is the frame; serve.c opens, accepts and closes. --check checks the
 * configuration's files and addresses. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/daemon/daemon.h"
#include "common/daemon/faults.h"
#include "common/err.h"
#include "common/log.h"
#include "serve/http/listener.h"
#include "serve/http/tls.h"
#include "serve/serve.h"

#define WAIT_MS 200 /* the longest sleep */

/* ---- --check -------------------------------------------------------------- */

/* Checks that the file PATH of KEY is readable; NULL: there is none. */
static int check_file(const struct config *config, const char *key, const char *path)
{
	AUTO_FD int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	char byte;
	int error = 0;

	if (!path)
		return 0;
	if (fd < 0 || read(fd, &byte, 1) < 0)
		error = errno;
	if (!error || error == EAGAIN)
		return 0;
	if (error == ENOENT || error == ENOTDIR)
		return config_blame(config, key, err_say(ERR_CONFIG, "'%s' does not exist", path));
	if (error == EACCES)
		return config_blame(config, key,
			err_say(ERR_CONFIG, "user %u may not read '%s'", (unsigned)geteuid(),
				path));
	return config_blame(config, key, err_say(ERR_CONFIG, "'%s': %s", path, strerror(error)));
}

static int check_files(const struct config *config)
{
	const struct config_serve *s = &config->serve;
	const struct {
		const char *key, *path;
	} files[] = {
		{"serve.tls.cert", s->certificate},
		{"serve.tls.key", s->key},
		{"serve.tls.clientCA", s->client_ca},
		{"serve.review.tokenFile", s->review_token_file},
		{"serve.review.cert", s->review_certificate},
		{"serve.review.key", s->review_key},
	};
	const struct tls_files listening = {s->certificate, s->key, s->client_ca, NULL};
	const struct tls_files asking = {s->review_certificate, s->review_key, NULL, NULL};
	enum tls_part part;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
		r = check_file(config, files[i].key, files[i].path);
	if (r < 0)
		return r;
	r = tls_check(&listening, &part);
	if (r < 0)
		return config_blame(config, files[part].key, r);
	r = tls_check(&asking, &part);
	return r < 0 ? config_blame(config,
			       part == TLS_PART_KEY ? "serve.review.key" : "serve.review.cert", r)
		     : 0;
}

/* Checks that kinf-serve could listen on WORDS. Another process's address may be free when it
 * starts. */
static int check_addresses(const struct config *config, const char *key, const char *words)
{
	int r = words ? listeners_try(words) : 0;

	if (r != -EADDRINUSE)
		return r < 0 ? config_blame(config, key, r) : 0;
	(void)fprintf(stderr, "note: %s: %s: a process that runs now uses the address\n", key,
		err_text(r));
	err_ignore(r, "it is noted");
	return 0;
}

static int check_all(const struct config *config)
{
	int r = check_files(config);

	if (r == 0)
		r = check_addresses(config, "serve.listen", config->serve.listen);
	return r == 0 ? check_addresses(config, "serve.metrics", config->serve.metrics) : r;
}

/* ---- serving -------------------------------------------------------------- */

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
		.check = check_all,
		.run = main_run,
	};

	return daemon_main(&program, argc, argv);
}
