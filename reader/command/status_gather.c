/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reader/command/status.h"
#include "reader/handle.h"
#include "store/ring/ring.h"


void status_release(struct status *status)
{
	free(status->feeds);
	free(status->readers);
	*status = (struct status){.n_feeds = 0};
}

/* The first thing that is wrong is what is said. */
static void note_error(struct status *status, const char *who, const char *what)
{
	if (!status->error[0] && *what)
		(void)snprintf(status->error, sizeof(status->error), "%s%s%s", who,
			*who ? ": " : "", what);
}

/* ---- processes ---- */

/* The ring counts the starts of its writer. */
static void count_restarts(int runtime, const char *ring, struct status_process *process)
{
	struct ring_reader *reader = NULL;
	struct ring_status status;

	if (ring_attach(runtime, ring, &reader) < 0)
		return; /* closed or never made: not known */
	ring_status(reader, &status);
	process->restarts = status.epoch ? status.epoch - 1 : 0;
	ring_detach(&reader);
}

/* By its role. */
static const struct status_daemon {
	const char *name, *page, *ring;
} daemons[STATUS_PROCESSES] = {
	[HOME_REFLECTOR] = {"kinf-reflector", "stats.reflector", "delta.ring"},
	[HOME_PROCESSOR] = {"kinf-processor", "stats.processor", "event.ring"},
};

static void gather_process(const struct home *home, enum home_role role,
	struct status_process *process)
{
	CLEANUP(stats_close) struct stats *stats = NULL;
	uint64_t now = proc_realtime_ns();
	int runtime = home_runtime_fd(home);

	process->looked_for = true;
	if (runtime < 0 || stats_open(runtime, daemons[role].page, &stats) < 0 ||
		stats_process(stats, &process->page) < 0) {
		process->alive = home_role_holder(home, role) != 0;
		return;
	}
	enum daemon_life life = daemon_life(home, role, &process->page);
	if (life == DAEMON_OTHERS)
		return;
	process->known = true;
	process->alive = life == DAEMON_ALIVE;
	for (size_t i = 0; i < STAT_MAX; i++)
		process->counters[i] = stats_get(stats, (enum counter)i);
	process->responding = process->alive && process->page.responding;
	if (process->alive && now > process->page.start_ns)
		process->uptime_seconds = (now - process->page.start_ns) / 1000000000;
	count_restarts(runtime, daemons[role].ring, process);
}

static void gather_processes(const struct home *home, struct status *status)
{
	for (size_t i = 0; i < STATUS_PROCESSES; i++) {
		struct status_process *process = &status->processes[i];

		gather_process(home, (enum home_role)i, process);
		if (!process->known)
			continue;
		if (!process->alive)
			note_error(status, process->name, process->page.check);
		note_error(status, process->name, process->page.error);
	}
}

const char *status_process_state(const struct status_process *process)
{
	if (!process->looked_for)
		return "unknown";
	if (!process->alive)
		return "not running";
	if (!process->known)
		return "running, its status page can't be read";
	return process->responding ? process->page.state : "not responding";
}

/* ---- readers ---- */

struct reader_walk {
	struct status *status;
	uint64_t last_txn;
};

static void read_name(struct status_reader *reader)
{
	char path[40];
	ssize_t n = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)reader->pid);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, reader->name, sizeof(reader->name) - 1);
	reader->name[n > 0 ? n : 0] = '\0';
	reader->name[strcspn(reader->name, "\n")] = '\0';
}

static int find_reader(struct status *status, int32_t pid, struct status_reader **ret_reader)
{
	for (size_t i = 0; i < status->n_readers; i++)
		if (status->readers[i].pid == pid) {
			*ret_reader = &status->readers[i];
			return 0;
		}
	struct status_reader *readers =
		reallocarray(status->readers, status->n_readers + 1, sizeof(*readers));
	if (!readers)
		return err_set(-ENOMEM, "readers");
	status->readers = readers;
	readers[status->n_readers] = (struct status_reader){.pid = pid};
	*ret_reader = &readers[status->n_readers++];
	read_name(*ret_reader);
	return 0;
}

static int add_reader(void *arg, int32_t pid, uint64_t txn)
{
	struct reader_walk *walk = arg;
	struct status_reader *reader;

	if (pid == getpid())
		return 0;
	int r = find_reader(walk->status, pid, &reader);
	if (r < 0)
		return r;
	reader->slots++;
	if (!txn)
		return 0;
	reader->snapshots++;
	if (walk->last_txn > txn && walk->last_txn - txn > reader->behind)
		reader->behind = walk->last_txn - txn;
	return 0;
}

static int gather_database(struct env *env, struct status *status, struct status_database *database)
{
	int r = env_info(env, &database->info);

	if (r < 0)
		return r;
	database->open = true;
	if (status->copy) /* opened without locks: there is no reader table */
		return 0;
	struct reader_walk walk = {status, database->info.last_txn};
	return env_each_reader(env, add_reader, &walk);
}

/* ---- what is stored ---- */

static int add_feed(void *arg, const struct kinf_feed_info *feed)
{
	struct status *status = arg;
	struct kinf_feed_info *feeds =
		reallocarray(status->feeds, status->n_feeds + 1, sizeof(*feeds));

	if (!feeds)
		return err_set(-ENOMEM, "feeds");
	status->feeds = feeds;
	feeds[status->n_feeds++] = *feed;
	return 0;
}

static int gather_snapshot(struct kinf_snapshot *s, struct status *status)
{
	struct snapshot *snapshot = s->snapshot;
	struct journal *journal = snapshot_journal(snapshot);
	struct journal_meta meta;
	int r = journal_meta(journal, snapshot_journal_txn(snapshot), &meta);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < sizeof(meta.uuid); i++)
		(void)snprintf(status->uuid + 2 * i, 3, "%02x", meta.uuid[i]);
	status->last_event = meta.next_seq - 1;
	status->horizon = meta.horizon;
	status->taken = snapshot_taken(snapshot);
	status->journal.generation = journal_generation(journal);
	status->index.generation = index_generation(snapshot_index(snapshot));
	r = gather_database(journal_env(journal), status, &status->journal);
	if (r == 0)
		r = gather_database(index_env(snapshot_index(snapshot)), status, &status->index);
	return r < 0 ? r : kinf_feed_status(s, NULL, add_feed, status);
}

/* An entry of the configuration that has no feed yet: "NAME: why". */
static int add_pending(struct status *status, const struct stats_feed *row)
{
	const char *colon = strstr(row->error, ": ");
	size_t size = colon ? (size_t)(colon - row->error) : 0;
	struct kinf_feed_info feed = {.size = sizeof(feed), .retries = row->retries,
		.last_contact_seconds = -1};

	(void)snprintf(feed.name, sizeof(feed.name), "%.*s", (int)size, row->error);
	(void)snprintf(feed.state, sizeof(feed.state), "%s", row->phase == FEED_GONE ? "gone"
		: row->phase == FEED_ERROR ? "error" : "offline");
	(void)snprintf(feed.last_error, sizeof(feed.last_error), "%s", colon ? colon + 2 : "");
	return add_feed(status, &feed);
}

static int gather_pending(struct home *home, struct status *status)
{
	CLEANUP(stats_close) struct stats *page = NULL;
	struct stats_feed row;
	int r = 0, found;

	if (!status->processes[0].responding ||
		stats_open(home_runtime_fd(home), "stats.reflector", &page) < 0)
		return 0;
	for (uint32_t i = 0; r == 0 && (found = stats_feed_at(page, i, &row)) != END; i++)
		if (found == FOUND && (row.feed & STATS_PENDING))
			r = add_pending(status, &row);
	return r;
}

static void gather_disk(struct home *home, struct status *status)
{
	struct statvfs fs;

	status->disk_known = fstatvfs(home_fd(home), &fs) == 0;
	if (status->disk_known)
		status->disk_free = (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* By name, as they are looked for. */
static int compare_feeds(const void *a, const void *b)
{
	const struct kinf_feed_info *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : strcmp(x->namespace_, y->namespace_);
}

/* What needs no database. */
static void gather_home(struct home *home, struct status *status)
{
	(void)snprintf(status->id, sizeof(status->id), "%s", home_id(home));
	gather_processes(home, status);
	gather_disk(home, status);
}

/* A store that readers refuse, for instance with a damaged index, may have its daemons all the same. */
static int gather_refused(const struct kinf *kinf, struct status *status)
{
	CLEANUP(home_close) struct home *home = NULL;

	note_error(status, "", kinf_error(kinf));
	int r = kinf->directory ? home_open(kinf->directory, &(struct home_options){0}, &home)
				: ERR_NO_STORE;
	if (r == 0)
		gather_home(home, status);
	for (size_t i = 0; r == ERR_NO_STORE && i < STATUS_PROCESSES; i++)
		status->processes[i].looked_for = true; /* nor do they run */
	err_clear();
	return ERR_NO_STORE;
}

int status_gather(struct kinf *kinf, struct status *status)
{
	struct kinf_snapshot *snapshot = NULL;

	*status = (struct status){.copy = kinf_is_copy(kinf)};
	if (kinf->directory)
		(void)snprintf(status->path, sizeof(status->path), "%s", kinf->directory);
	for (size_t i = 0; i < STATUS_PROCESSES; i++)
		status->processes[i].name = daemons[i].name;
	if (!kinf->store)
		return gather_refused(kinf, status);
	struct home *home = store_home(kinf->store);
	gather_home(home, status);
	int r = kinf_snapshot_open(kinf, &snapshot);
	if (r == 0) {
		r = gather_snapshot(snapshot, status);
		if (r > 0)
			r = 0;
	}
	kinf_snapshot_close(&snapshot);
	if (r >= 0) {
		int pending = gather_pending(home, status);
		r = pending < 0 ? pending : r;
	}
	if (status->n_feeds)
		qsort(status->feeds, status->n_feeds, sizeof(*status->feeds), compare_feeds);
	if (r == AGAIN) {
		note_error(status, "", "there is no index yet; is kinf-processor running?");
		return 0;
	}
	if (r < 0)
		note_error(status, "", err_text(r));
	return r;
}
