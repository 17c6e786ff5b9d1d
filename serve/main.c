/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf-serve's main thread, in the frame of common/daemon: opens everything, accepts connections
 * for the worker with the fewest, attends to signals, the store's directory and the certificates.
 * --check checks the configuration's files and addresses.
 */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <malloc.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/daemon/daemon.h"
#include "common/daemon/faults.h"
#include "common/daemon/parent.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "serve/answer/answer.h"
#include "serve/auth/auth.h"
#include "serve/http/forward.h"
#include "serve/http/listener.h"
#include "serve/http/tls.h"
#include "serve/metrics.h"
#include "serve/worker_internal.h"
#include "store/env/generation.h"
#include "store/env/home.h"
#include "store/env/text_file.h"

#define WAIT_MS           200 /* the longest sleep */
#define ACCEPT_PAUSE_NS   (UINT64_C(100) * 1000000)
#define RENEW_PAUSE_NS    (UINT64_C(10) * 1000000000)
#define COMPLAIN_NS       (UINT64_C(60) * 1000000000)
#define ACCEPTS_AT_ONCE   256
#define DESCRIPTORS_SPARE 256                   /* for the store, and for decisions */
#define TRIM_AFTER        ((uint64_t)2 << 20)   /* free bytes beyond those of the last time */
#define TRIM_QUIET        ((uint64_t)256 << 10) /* their change in a quiet second */
/* in the store: the one place where kinf-serve writes files */
#define SERVE_DIRECTORY       "serve"
#define SERVE_ADDRESSES       "addresses"
#define SERVE_CONNECTIONS_MAX 20000
#define SERVE_WORKERS_MAX     4

struct serve {
	struct daemon *daemon;
	struct home *home;
	int directory_fd; /* STORE/serve */
	int lock_fd;
	struct worker_shared shared;
	struct tls *tls; /* of the TCP listeners; NULL: there are none */
	struct listeners listeners;
	struct serve_worker *workers[SERVE_WORKERS_MAX];
	unsigned n_workers;
	size_t connections_max;
	uint64_t accept_at_ns;   /* after a failed accept: when to try again */
	uint64_t renew_at_ns;    /* when to look at the certificates again */
	uint64_t complain_at_ns; /* from when on a connection that is not taken is logged again */
	uint64_t reported_connections, reported_watches; /* as the status page has them */
	uint64_t free, trimmed; /* bytes of the heap: a second ago, after the last trim */
};

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
	const struct tls_files listening = {s->certificate, s->key, s->client_ca};
	const struct tls_files asking = {s->review_certificate, s->review_key, NULL};
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
	struct listeners trial = {.trial = true};
	int r = words ? listeners_open(&trial, LISTENER_API, words, -1, 0) : 0;

	listeners_close(&trial);
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
		r = answer_check(config);
	if (r == 0)
		r = check_addresses(config, "serve.listen", config->serve.listen);
	return r == 0 ? check_addresses(config, "serve.metrics", config->serve.metrics) : r;
}

/* ---- the directory ------------------------------------------------------ */

/* Gives the directory the rights of the store: its group may be newer. */
static int serve_share_directory(const struct serve *serve)
{
	unsigned mode = generation_directory_mode(home_file_mode(serve->home));
	struct stat store, ours;

	if (fstat(home_fd(serve->home), &store) < 0 || fstat(serve->directory_fd, &ours) < 0 ||
		(ours.st_gid != store.st_gid &&
			fchown(serve->directory_fd, (uid_t)-1, store.st_gid) < 0) ||
		((ours.st_mode & 07777) != mode && fchmod(serve->directory_fd, mode) < 0))
		return err_set(-errno,
			"giving the directory '%s/" SERVE_DIRECTORY "' the rights of the store",
			home_path(serve->home));
	return 0;
}

/* Checks that the store has the rights that the directory, the socket and the decisions were given
 * at the start. The reflector may give the store to a group just after it. */
static int serve_check_rights(const struct serve *serve)
{
	struct stat store, ours;

	if (fstat(home_fd(serve->home), &store) < 0 || fstat(serve->directory_fd, &ours) < 0)
		return err_set(
			-errno, "looking at the rights of the store '%s'", home_path(serve->home));
	if (store.st_gid == ours.st_gid &&
		(store.st_mode & 0040) == (home_file_mode(serve->home) & 0040))
		return 0;
	return err_say(ERR_MOVED,
		"the store '%s' was given to another group: kinf-serve ends, and has its rights "
		"when it is started again",
		home_path(serve->home));
}

/* Opens STORE/serve and takes the lock: one kinf-serve runs on a store. */
static int serve_open_directory(struct serve *serve)
{
	if (mkdirat(home_fd(serve->home), SERVE_DIRECTORY, 0700) < 0 && errno != EEXIST)
		return err_set(-errno,
			"making the directory '%s/" SERVE_DIRECTORY "'; kinf-serve must run as a "
			"user who may write there",
			home_path(serve->home));
	serve->directory_fd = openat(home_fd(serve->home), SERVE_DIRECTORY,
		O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (serve->directory_fd < 0)
		return err_set(-errno, "opening the directory '%s/" SERVE_DIRECTORY "'",
			home_path(serve->home));
	int r = serve_share_directory(serve);
	if (r < 0)
		return r;
	serve->lock_fd = proc_lock(serve->directory_fd, "serve.lock");
	if (serve->lock_fd == ERR_LOCKED)
		return err_add(ERR_LOCKED,
			"serving store '%s': it has one kinf-serve ('kinf backup DIR/' makes a "
			"copy for another, such as one of the past)",
			home_path(serve->home));
	return serve->lock_fd < 0
		       ? err_add(serve->lock_fd, "serving store '%s'", home_path(serve->home))
		       : 0;
}

/* Writes the addresses for clients, one a line; `kinf kubeconfig` reads them. */
static int serve_write_addresses(const struct serve *serve)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;

	for (size_t i = 0; i < serve->listeners.n; i++) {
		const struct listener *l = &serve->listeners.items[i];

		if (*l->path)
			buf_printf(&text, "api unix %s\n", l->path);
		else if (l->local)
			buf_printf(&text, "api unix %s/" LISTENER_SOCKET "\n",
				home_runtime(serve->home));
		else
			buf_printf(&text, "%s %s %s %s\n",
				l->kind == LISTENER_API ? "api" : "metrics",
				l->tls ? "https" : "http", l->name, auth_mode_name(l->auth));
	}
	int r = buf_error(&text);
	return r < 0 ? r
		     : text_file_replace(serve->directory_fd, SERVE_ADDRESSES, buf_cstr(&text),
			       home_file_mode(serve->home));
}

/* ---- TLS ---------------------------------------------------------------- */

/* Adds NAME to NAMES, each with a NUL, unless it is there. */
static void serve_add_name(struct buf *names, const char *name)
{
	const char *text = buf_cstr(names);

	for (size_t at = 0; at < names->size; at += strlen(text + at) + 1)
		if (strcmp(text + at, name) == 0)
			return;
	buf_put(names, name, strlen(name) + 1);
}

/* Collects the names of the TCP listeners for the certificate: the loopback ones, the machine's,
 * and the configured addresses; of a wildcard address, each address of the machine. */
static void serve_collect_names(const struct serve *serve, struct buf *names)
{
	char host[256] = "";
	const char *const own[] = {"localhost", "127.0.0.1", "::1", host};
	struct ifaddrs *addresses = NULL;
	bool wildcard = false;

	(void)gethostname(host, sizeof(host) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (*own[i])
			serve_add_name(names, own[i]);
	for (size_t i = 0; i < serve->listeners.n; i++) {
		const char *name = serve->listeners.items[i].name, *colon = strrchr(name, ':');
		bool brackets = *name == '[';

		if (serve->listeners.items[i].local || !colon)
			continue;
		(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - name) - 2 * brackets,
			name + brackets);
		if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
			wildcard = true;
		else
			serve_add_name(names, host);
	}
	if (!wildcard || getifaddrs(&addresses) < 0)
		return;
	for (const struct ifaddrs *a = addresses; a; a = a->ifa_next) {
		int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;
		socklen_t size = family == AF_INET ? sizeof(struct sockaddr_in)
						   : sizeof(struct sockaddr_in6);

		if ((family == AF_INET || family == AF_INET6) &&
			getnameinfo(a->ifa_addr, size, host, sizeof(host), NULL, 0,
				NI_NUMERICHOST) == 0 &&
			!strchr(host, '%'))
			serve_add_name(names, host);
	}
	freeifaddrs(addresses);
}

/* Makes the certificates if the configuration names none, and reads them. */
static int serve_load_tls(struct serve *serve)
{
	CLEANUP(buf_release) struct buf names = BUF_INIT;
	const struct config_serve *config = &serve->daemon->config->serve;
	char certificate[64], key[64];
	struct tls_files files = {config->certificate, config->key, config->client_ca};
	int r = 0;

	if (!files.certificate) {
		(void)snprintf(certificate, sizeof(certificate),
			"/proc/self/fd/%d/" TLS_CERTIFICATE, serve->directory_fd);
		(void)snprintf(key, sizeof(key), "/proc/self/fd/%d/" TLS_KEY, serve->directory_fd);
		files.certificate = certificate;
		files.key = key;
		serve_collect_names(serve, &names);
		r = tls_make_certificates(serve->directory_fd, &names);
	}
	if (r < 0)
		return r;
	return serve->tls ? tls_reload(serve->tls, &files) : tls_open(&files, &serve->tls);
}

/* ---- listeners ---------------------------------------------------------- */

static int serve_set_auth(struct serve *serve, struct listener *l)
{
	const struct config_serve *config = &serve->daemon->config->serve;

	l->auth = (enum config_auth)config->auth;
	/* A Unix socket has no certificates, a TCP one no users. */
	if (l->local && (l->auth == CONFIG_AUTH_REVIEW || l->auth == CONFIG_AUTH_ALLOW ||
				l->auth == CONFIG_AUTH_TOKEN))
		l->auth = CONFIG_AUTH_PEERS;
	if (l->auth == CONFIG_AUTH_DEFAULT || (!l->local && l->auth == CONFIG_AUTH_PEERS))
		l->auth = l->local ? CONFIG_AUTH_PEERS : CONFIG_AUTH_SELF;
	if (l->auth == CONFIG_AUTH_OPEN && !l->any_loopback && !config->open_remote)
		return err_say(ERR_CONFIG,
			"serve.auth: open on %s would give the whole cache to other machines; "
			"listen on a loopback address, choose another mode, or set "
			"serve.openRemote: true",
			l->name);
	return 0;
}

static int serve_listen(struct serve *serve)
{
	const struct config_serve *config = &serve->daemon->config->serve;
	unsigned mode = home_file_mode(serve->home) & 0040 ? 0660 : 0600;
	int runtime = home_runtime_fd(serve->home);
	bool any_tcp = false;

	int r = listeners_open(&serve->listeners, LISTENER_API,
		config->listen ? config->listen : "unix", runtime, mode);

	for (size_t i = 0; r == 0 && i < serve->listeners.n; i++) {
		any_tcp |= !serve->listeners.items[i].local;
		r = serve_set_auth(serve, &serve->listeners.items[i]);
	}
	if (r == 0 && any_tcp)
		r = serve_load_tls(serve);
	for (size_t i = 0; r == 0 && i < serve->listeners.n; i++)
		if (!serve->listeners.items[i].local)
			serve->listeners.items[i].tls = serve->tls;
	if (r == 0 && config->metrics)
		r = listeners_open(
			&serve->listeners, LISTENER_METRICS, config->metrics, runtime, mode);
	return r;
}

static int serve_open_auth(struct serve *serve)
{
	struct auth_options options = {.config = serve->daemon->config,
		.metrics = serve->shared.metrics,
		.runtime_fd = home_runtime_fd(serve->home)};
	struct stat st;

	if (fstat(home_fd(serve->home), &st) < 0)
		return err_set(-errno, "finding the owner of store '%s'", home_path(serve->home));
	options.owner = st.st_uid;
	options.group = st.st_gid;
	options.has_group = home_file_mode(serve->home) & 0040;
	for (size_t i = 0; i < serve->listeners.n; i++) {
		unsigned auth = serve->listeners.items[i].auth;

		options.review |= auth == CONFIG_AUTH_REVIEW;
		options.self |= auth == CONFIG_AUTH_SELF || auth == CONFIG_AUTH_REVIEW;
		options.allow |= auth == CONFIG_AUTH_ALLOW;
		options.token |= auth == CONFIG_AUTH_TOKEN;
	}
	return auth_open(&options, &serve->shared.auth);
}

/* Allows as many descriptors as the process may have, and limits the connections to them. */
static void serve_raise_limit(struct serve *serve)
{
	struct rlimit limit;

	serve->connections_max = SERVE_CONNECTIONS_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	rlim_t spare = DESCRIPTORS_SPARE + (serve->shared.forward ? 2 * FORWARD_MAX : 0);
	rlim_t wanted = SERVE_CONNECTIONS_MAX + spare;
	if (limit.rlim_cur < wanted) {
		limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
		(void)setrlimit(RLIMIT_NOFILE, &limit); /* read again below */
		(void)getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur < wanted)
		serve->connections_max =
			limit.rlim_cur > 2 * spare ? limit.rlim_cur - spare : limit.rlim_cur / 2;
}

/* ---- begin and end ------------------------------------------------------ */

static int serve_start_workers(struct serve *serve)
{
	unsigned cpus = proc_cpus(), wanted = cpus < SERVE_WORKERS_MAX ? cpus : SERVE_WORKERS_MAX;

	for (unsigned i = 0; i < wanted; i++) {
		struct serve_worker *worker = calloc(1, sizeof(*worker));

		if (!worker)
			return err_set(-ENOMEM, "making a worker");
		serve->workers[serve->n_workers++] = worker;
		int r = serve_worker_init(worker, &serve->shared);
		if (r < 0)
			return r;
	}
	const struct answer_options options = {.config = serve->daemon->config,
		.workers = serve->workers,
		.n_workers = serve->n_workers,
		.auth = serve->shared.auth,
		.metrics = serve->shared.metrics};
	int r = answer_open(&options, &serve->shared.answer);
	for (unsigned i = 0; r == 0 && i < serve->n_workers; i++)
		r = loop_start(serve->workers[i]);
	return r;
}

/* Makes the status page; its count of starts outlives the processes. */
static int serve_open_page(struct serve *serve)
{
	CLEANUP(stats_close) struct stats *before = NULL;
	struct daemon *daemon = serve->daemon;
	int runtime = home_runtime_fd(serve->home);
	uint64_t starts = 0;

	int r = stats_open(runtime, daemon->program->status_page, &before);
	if (r == 0)
		starts = stats_get(before, STAT_SERVE_STARTS);
	err_ignore(r, "this is the first start since the runtime directory was made");
	r = daemon_open_page(daemon, runtime);
	if (r == 0)
		stats_add(daemon->stats, STAT_SERVE_STARTS, starts + 1);
	return r;
}

static int serve_open(struct serve *serve, struct daemon *daemon)
{
	serve->daemon = daemon;
	serve->shared.forward = daemon->config->serve.forward;
	serve->shared.runtime_fd = home_runtime_fd(serve->home);
	int r = serve_open_directory(serve);
	if (r == 0)
		r = serve_open_page(serve);
	if (r == 0)
		r = metrics_new(&serve->shared.metrics);
	serve_raise_limit(serve);
	if (r == 0)
		r = serve_listen(serve);
	if (r == 0)
		r = serve_open_auth(serve);
	if (r == 0)
		r = serve_start_workers(serve);
	if (r == 0)
		r = serve_write_addresses(serve);
	if (r < 0)
		return r;
	home_guard_file(serve->home, daemon->program->status_page);
	home_guard_file(serve->home, daemon->program->control_socket);
	for (size_t i = 0; i < serve->listeners.n; i++) {
		const struct listener *l = &serve->listeners.items[i];

		if (l->local && !*l->path)
			home_guard_file(serve->home, LISTENER_SOCKET);
		LOG(serve_listening, .address = l->name, .tls = l->tls != NULL,
			.auth = l->kind == LISTENER_API ? auth_mode_name(l->auth) : "metrics");
	}
	LOG(daemon_started, .daemon = daemon->program->name, .pid = getpid(),
		.store = home_path(serve->home));
	return 0;
}

static int serve_reload_tls(struct serve *serve)
{
	int r = serve_load_tls(serve);

	if (r >= 0)
		return 0;
	LOG(serve_certificate_refused, .error = err_text(r));
	return err_add(r, "the certificate before stays in use");
}

/* Renews kinf-serve's own certificates before they expire, or after a jump of the clock. Once a
 * second. */
static void serve_renew(struct serve *serve)
{
	uint64_t now = proc_monotonic_ns();

	if (!serve->tls || serve->daemon->config->serve.certificate || now < serve->renew_at_ns)
		return;
	serve->renew_at_ns = now + RENEW_PAUSE_NS;
	if (tls_certificates_are_due(serve->directory_fd))
		err_ignore(
			serve_reload_tls(serve), "it was logged, and is tried again after a pause");
}

/* Ends everything within 5 s. REMOVE: also the runtime directory, if no daemon uses it. */
static void serve_close(struct serve *serve, bool remove)
{
	__atomic_store_n(&serve->shared.stopping, true, __ATOMIC_RELAXED);
	/* The socket's name stays: the next kinf-serve replaces it. */
	listeners_close(&serve->listeners);
	for (unsigned i = 0; i < serve->n_workers; i++)
		if (serve->workers[i]->started)
			loop_stop(serve->workers[i]);
	for (unsigned i = 0; i < serve->n_workers; i++)
		loop_join(serve->workers[i]);
	answer_close(&serve->shared.answer);
	auth_close(&serve->shared.auth);
	for (unsigned i = 0; i < serve->n_workers; i++) {
		serve_worker_release(serve->workers[i]);
		free(serve->workers[i]);
	}
	tls_close(&serve->tls);
	metrics_free(&serve->shared.metrics);
	cleanup_fd(&serve->lock_fd);
	if (serve->home && remove)
		home_remove_runtime(serve->home);
	cleanup_fd(&serve->directory_fd);
	home_close(&serve->home);
}

/* ---- the status page ---------------------------------------------------- */

static void serve_report_level(
	struct stats *stats, enum counter counter, uint64_t level, uint64_t *reported)
{
	stats_add(stats, counter, level - *reported); /* modulo 2^64 */
	*reported = level;
}

/* Returns whether a worker has not come back from its turn for a long time. */
static bool serve_hangs(const struct serve *serve)
{
	uint64_t now = proc_monotonic_ns();

	for (unsigned i = 0; i < serve->n_workers; i++) {
		uint64_t since = __atomic_load_n(&serve->workers[i]->turn_ns, __ATOMIC_RELAXED);

		if (since && now > since + STATS_HEARTBEAT_LIMIT_NS)
			return true;
	}
	return false;
}

/* Writes connections, watches, and the reason for waiting into the status page. */
static void serve_report(struct serve *serve)
{
	struct answer_check checks[ANSWER_CHECKS_MAX];
	struct stats *stats = serve->daemon->stats;
	char state[STATS_TEXT] = "running";
	uint64_t connections = 0;
	size_t n = answer_ready(serve->shared.answer, checks);

	for (size_t i = n; i-- > 0;)
		if (!checks[i].ok)
			(void)snprintf(
				state, sizeof(state), "running, not ready: %s", checks[i].reason);
	for (unsigned i = 0; i < serve->n_workers; i++)
		connections += __atomic_load_n(&serve->workers[i]->n_connections, __ATOMIC_RELAXED);
	stats_set_state(stats, state);
	serve_report_level(
		stats, STAT_SERVE_CONNECTIONS, connections, &serve->reported_connections);
	serve_report_level(stats, STAT_SERVE_WATCHES,
		metric_get(metrics_cell(serve->shared.metrics, METRIC_WATCHERS, NULL)),
		&serve->reported_watches);
}

/* Handshakes, ended connections, lists and groups of watches fragment the heap; free(3) gives back
 * only its end. So free memory that has grown since the last time is given back, in a quiet second.
 */
static void serve_trim(struct serve *serve)
{
	uint64_t n = mallinfo2().fordblks, before = serve->free;

	serve->free = n;
	if (n < serve->trimmed)
		serve->trimmed = n;
	if (n - serve->trimmed < TRIM_AFTER || n > before + TRIM_QUIET || n + TRIM_QUIET < before)
		return;
	serve->trimmed = n;
	(void)malloc_trim(0);
}

/* ---- the main thread's turns -------------------------------------------- */

/* Limits the lines about connections that are not taken: a client may open thousands a second. */
static bool serve_may_complain(struct serve *serve)
{
	uint64_t now = proc_monotonic_ns();

	if (now < serve->complain_at_ns)
		return false;
	serve->complain_at_ns = now + COMPLAIN_NS;
	return true;
}

/* Gives the connection to the worker with the fewest. */
static void serve_give(struct serve *serve, const struct listener *listener, int fd)
{
	struct serve_worker *least = serve->workers[0];
	size_t least_n = SIZE_MAX, total = 0;

	for (unsigned i = 0; i < serve->n_workers; i++) {
		size_t n = __atomic_load_n(&serve->workers[i]->n_connections, __ATOMIC_RELAXED);

		total += n;
		if (n < least_n) {
			least_n = n;
			least = serve->workers[i];
		}
	}
	if (total < serve->connections_max) {
		loop_give(least, listener, fd);
		return;
	}
	const char *why = "connections";
	metric_add(metrics_cell(serve->shared.metrics, METRIC_REFUSED, &why), 1);
	if (serve_may_complain(serve))
		LOG(serve_full, .connections = total);
	(void)close(fd);
}

static void serve_accept(struct serve *serve, const struct listener *listener)
{
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		int fd = listener_accept(listener);

		if (fd == -EAGAIN)
			return;
		if (fd < 0) {
			if (serve_may_complain(serve))
				LOG(serve_accept_failed, .error = err_text(fd));
			serve->accept_at_ns = proc_monotonic_ns() + ACCEPT_PAUSE_NS;
			return;
		}
		serve_give(serve, listener, fd);
	}
}

/* Accepts, and sleeps for at most TIMEOUT_MS. */
static int serve_turn(struct serve *serve, int timeout_ms)
{
	struct pollfd fds[LISTENERS_MAX + DAEMON_FDS];
	struct control_call **call = &serve->daemon->call;
	char text[CONTROL_SIZE];
	bool paused = proc_monotonic_ns() < serve->accept_at_ns;
	int failed = __atomic_load_n(&serve->shared.failed, __ATOMIC_RELAXED);

	if (failed)
		return err_say(failed, "a worker could not start (its message is above)");
	daemon_poll_fds(serve->daemon, fds);
	for (size_t i = 0; i < serve->listeners.n; i++)
		fds[i + DAEMON_FDS] = (struct pollfd){
			.fd = paused ? -1 : serve->listeners.items[i].fd, .events = POLLIN};
	int n = poll(fds, serve->listeners.n + DAEMON_FDS, timeout_ms);
	if (n > 0 && (fds[0].revents || fds[1].revents || fds[2].revents))
		(void)daemon_attend(serve->daemon); /* the caller checks daemon->stop */
	if (*call) {                                /* `kinf replay` */
		int r = answer_replay(
			serve->shared.answer, control_argument(*call), text, sizeof(text));
		control_end(call, r, r < 0 ? err_text(r) : text);
		err_forget();
	}
	for (size_t i = 0; n > 0 && i < serve->listeners.n; i++)
		if (fds[i + DAEMON_FDS].revents)
			serve_accept(serve, &serve->listeners.items[i]);
	return 0;
}

/* ---- serving -------------------------------------------------------------- */

/* Returns true if HOME, a store of this user, has no daemons and no runtime directory: it was
 * imported, or is a copy. */
static bool main_is_alone(const struct home *home)
{
	struct stat st;

	return home_runtime_is_missing(home) && fstat(home_fd(home), &st) == 0 &&
	       st.st_uid == geteuid() && home_role_holder(home, HOME_REFLECTOR) == 0 &&
	       home_role_holder(home, HOME_PROCESSOR) == 0;
}

/* Waits until there are a store and its runtime directory. The daemons make both; a store without
 * daemons gets a directory here. */
static int main_open_home(struct daemon *daemon, struct home **ret_home)
{
	struct home_options options = {
		.runtime_dir = daemon->config->runtime_dir, .group = daemon->config->group};
	bool logged = false;

	for (;;) {
		int r = home_open(daemon->config->store, &options, ret_home);

		if (r == 0 && home_runtime_fd(*ret_home) >= 0)
			return 0;
		if (r == 0 && !options.create && main_is_alone(*ret_home)) {
			options.create = true;
			home_close(ret_home);
			continue;
		}
		if (r < 0 && r != ERR_NO_STORE && r != -ENOENT)
			return r;
		if (!logged) {
			LOG(serve_waiting,
				.error = r < 0 ? err_text(r) : home_lacks_runtime(*ret_home));
			parent_notify("READY=1"); /* daemon_ready(): when it listens */
		}
		logged = true;
		err_forget();
		home_close(ret_home);
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
			if (r == 0)
				r = serve_check_rights(serve);
			if (r < 0)
				return r;
			serve_report(serve);
			serve_trim(serve);
			serve_renew(serve);
		}
		if (daemon->reload && daemon_reload(daemon)) {
			/* If serve.tls is refused, all else is taken. */
			int refused = serve->tls ? serve_reload_tls(serve) : 0;
			auth_reload(serve->shared.auth, daemon->config);
			answer_reload(serve->shared.answer, daemon->config);
			daemon_reloaded(daemon, refused);
			err_forget();
		}
		int r = serve_turn(serve, WAIT_MS);
		if (r < 0)
			return r;
	}
	return 0;
}

static struct {
	const char *at, *replay;
} main_options;

/* An option replaces the file's value. */
static int main_set(char **value, const char *given)
{
	if (!given)
		return 0;
	free(*value);
	*value = strdup(given);
	return *value ? 0 : err_set(-ENOMEM, "the options");
}

static int main_run(struct daemon *daemon)
{
	struct config_serve *config = &daemon->config->serve;

	if (main_set(&config->at, main_options.at) < 0 ||
		main_set(&config->replay, main_options.replay) < 0)
		return daemon_end(daemon, -ENOMEM);
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
	serve_close(&serve, r >= 0 || r == ERR_MOVED);
	return status;
}

int main(int argc, char **argv)
{
	static const struct option_spec specs[] = {
		{0, "at", OPTION_TEXT, 0, "WHEN",
			"serve the past, which then stands still: serve.at of kinf.yaml(5)"},
		{0, "replay", OPTION_TEXT_OPTIONAL, offsetof(typeof(main_options), replay), "[Nx]",
			"with --at: from there on the changes come, N times as fast (1x); with 0x "
			"when 'kinf replay' says so"}};
	static const char *const commands[] = {"replay", NULL};
	static const struct options_group options = {
		"The past", specs, ARRAY_SIZE(specs), &main_options};
	static const struct daemon_program program = {
		.name = "kinf-serve",
		.about = "Answers get, list and watch over HTTP as the API server does, from a "
			 "kinformer store.",
		.status_page = "stats.serve",
		.control_socket = "control.serve",
		.commands = commands,
		.user = CONFIG_SERVE,
		.check = check_all,
		.options = &options,
		.run = main_run,
	};

	return daemon_main(&program, argc, argv);
}
