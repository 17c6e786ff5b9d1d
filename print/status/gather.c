/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the status of a store: of its processes, readers, databases and feeds. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "print/status/status.h"
#include "reader/handle.h"
#include "store/env/text_file.h"
#include "store/ring/ring.h"
#include "store/ring/taken.h"

void status_release(struct store_status *status)
{
	free(status->feeds);
	for (size_t i = 0; i < status->n_readers; i++)
		free(status->readers[i].pin_file);
	free(status->readers);
	free(status->cursors);
	*status = (struct store_status){.n_feeds = 0};
}

/* Keeps the first error. */
static void status_keep_error(struct store_status *status, const char *process, const char *error)
{
	if (!status->error[0] && *error)
		(void)snprintf(status->error, sizeof(status->error), "%s%s%s", process,
			*process ? ": " : "", error);
}

/* A fault replaces the API server's error, also in the feeds' rows. */
static void status_note_error(struct store_status *status, const char *process, const char *error)
{
	if (*error && !status->faulty)
		status->error[0] = '\0';
	status->faulty |= *error != '\0';
	status_keep_error(status, process, error);
}

/* ---- processes ---------------------------------------------------------- */

/* Returns the pid of the kinf-serve of the store, as home_role_holder() does, and copies its
 * addresses. */
static int status_serve_holder(const struct home *home, char *addresses, size_t size)
{
	AUTO_FD int directory =
		openat(home_fd(home), "serve", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	char text[1024], *rest = text, line[32];
	size_t used = 0;
	int pid;

	*addresses = '\0';
	if (directory < 0 || !proc_is_locked(directory, "serve.lock"))
		return 0;
	if (text_file_read(directory, "addresses", text, sizeof(text), NULL) < 0)
		*text = '\0';
	for (char *address; (address = strsep(&rest, "\n"));)
		if (strncmp(address, "api ", 4) == 0 && used < size)
			used += (size_t)snprintf(addresses + used, size - used, "%s%s",
				used ? ", " : "", address + 4);
	if (text_file_read_line(directory, "serve.lock", line, sizeof(line), NULL) != FOUND ||
		sscanf(line, "%d", &pid) != 1 || pid <= 0)
		pid = -1; /* held, but its holder has not written its pid yet */
	return pid;
}

/* The page's pid is compared with the process of that number here: in another PID namespace there
 * is another one, or none. */
static void status_gather_usage(struct status_process *process)
{
	struct proc_stat stat;

	if (!process->alive || !process->page.alive)
		return;
	int r = proc_read_stat(process->page.pid, &stat);
	if (r == 0)
		r = proc_read_memory(process->page.pid, &process->memory);
	process->usage_known = r == 0;
	if (r == 0)
		process->cpu_seconds = (double)stat.cpu_ticks / (double)sysconf(_SC_CLK_TCK);
	err_ignore(r, "it has ended meanwhile");
}

static void status_gather_process(
	const struct home *home, size_t role, int holder, struct status_process *process)
{
	CLEANUP(daemon_view_release) struct daemon_view view = {.page = NULL};
	CLEANUP(ring_detach) struct ring_reader *reader = NULL;
	CLEANUP(taken_detach) struct taken_reader *word = NULL;
	struct ring_status ring;
	uint32_t starts = 0;
	uint64_t now = proc_realtime_ns();
	int runtime = home_runtime_fd(home);

	if (role == STATUS_SERVE)
		daemon_view_take_page(home, "stats.serve", holder, &view);
	else
		daemon_view_take(home, (enum home_role)role, &view);
	process->searched = true;
	process->known = view.page != NULL;
	process->alive = view.alive;
	process->responding = view.responding;
	process->page = view.process;
	if (!view.page)
		return;
	for (size_t i = 0; i < STAT_MAX; i++)
		process->counters[i] = stats_get(view.page, (enum counter)i);
	if (process->alive && now > process->page.start_ns)
		process->uptime_seconds = (now - process->page.start_ns) / 1000000000;
	status_gather_usage(process);
	/* The delta ring's epoch counts the starts of reflectors, the progress word those of
	 * processors. */
	if (role == HOME_REFLECTOR && ring_attach(runtime, DELTA_RING, &reader) >= 0) {
		ring_status(reader, &ring);
		starts = ring.epoch;
	} else if (role == HOME_PROCESSOR && taken_attach(runtime, &word) >= 0) {
		starts = taken_starts(word);
	} else if (role == STATUS_SERVE) {
		starts = (uint32_t)process->counters[STAT_SERVE_STARTS];
	}
	process->restarts = starts ? starts - 1 : 0;
}

/* kinf-serve may have been ended on purpose, and is not missed then: its last state is
 * "stopped", without an error. */
static bool status_expects_serve(const struct store_status *status)
{
	const struct status_process *process = &status->processes[STATUS_SERVE];

	return status->serve_configured || process->alive ||
	       (process->known &&
		       (strcmp(process->page.state, "stopped") != 0 || *process->page.error));
}

/* Collects everything outside of the databases. */
static void status_gather_home(struct home *home, struct store_status *status)
{
	struct statvfs fs;

	status->journal.missing =
		faccessat(home_fd(home), "journal/CURRENT", F_OK, 0) < 0 && errno == ENOENT;
	status->index.missing =
		faccessat(home_fd(home), "index/CURRENT", F_OK, 0) < 0 && errno == ENOENT;
	(void)snprintf(status->id, sizeof(status->id), "%s", home_id(home));
	for (size_t i = 0; i < STATUS_PROCESSES; i++) {
		struct status_process *process = &status->processes[i];
		int holder = i == STATUS_SERVE ? status_serve_holder(home, status->addresses,
							 sizeof(status->addresses))
					       : 0;

		status_gather_process(home, i, holder, process);
		if (i == STATUS_SERVE && !status_expects_serve(status))
			break;
		status->n_processes = i + 1;
		if (process->known && !process->alive)
			status_note_error(status, process->name, process->page.check);
		/* While the reflector runs in order, its error is the API server's absence: no
		 * fault of the store. A refused file is also the processor's error. */
		bool of_cluster = i == HOME_REFLECTOR && process->alive &&
				  strncmp(process->page.state, "running", strlen("running")) == 0;
		if (process->known)
			(of_cluster ? status_keep_error : status_note_error)(
				status, process->name, process->page.error);
	}
	status->disk_known = fstatvfs(home_fd(home), &fs) == 0;
	if (status->disk_known)
		status->disk_free = (uint64_t)fs.f_bavail * fs.f_frsize;
}

const char *status_process_state(const struct status_process *process)
{
	if (!process->searched)
		return "unknown";
	if (!process->alive)
		return "not running";
	if (!process->known)
		return "running, its status page can't be read";
	return process->responding ? process->page.state : "not responding";
}

/* ---- readers ------------------------------------------------------------ */

struct reader_walk {
	struct store_status *status;
	uint32_t slots;    /* of all readers */
	uint64_t last_txn; /* 0: of a replaced file */
};

/* Sets *RET_READER to the entry of a process, made if there is none. Processes of one program and
 * user in other PID namespaces (pid 0) share an entry. */
static int status_find_reader(struct store_status *status, const struct pin_owner *found,
	struct status_reader **ret_reader)
{
	struct status_reader made = {.pid = found->pid, .uid = found->uid};

	(void)snprintf(made.name, sizeof(made.name), "%s", found->program);
	for (size_t i = 0; i < status->n_readers; i++)
		if (status->readers[i].pid == found->pid && status->readers[i].uid == found->uid &&
			strcmp(status->readers[i].name, made.name) == 0) {
			*ret_reader = &status->readers[i];
			return 0;
		}
	int r = ARRAY_ADD(status->readers, status->n_readers, status->readers_room, made,
		"the list of readers");
	if (r < 0)
		return r;
	*ret_reader = &status->readers[status->n_readers - 1];
	return 0;
}

static int status_add_reader(void *arg, const struct pin_owner *found)
{
	struct reader_walk *walk = arg;
	struct status_reader *reader;
	uint64_t txn = found->oldest;

	walk->slots += found->slots;
	if (found->pid == getpid() && found->uid == geteuid())
		return 0;
	int r = status_find_reader(walk->status, found, &reader);
	if (r < 0)
		return r;
	reader->slots += found->slots;
	reader->snapshots += found->snapshots;
	reader->old_files += !walk->last_txn;
	if (!txn && walk->last_txn)
		return 0;
	uint64_t behind = walk->last_txn > txn ? walk->last_txn - txn : 0;
	if (reader->pin_file && behind <= reader->behind)
		return 0;
	reader->behind = behind;
	free(reader->pin_file);
	reader->pin_file = strdup(found->path);
	return reader->pin_file ? 0 : err_set(-ENOMEM, "the list of snapshots");
}

static int status_gather_database(struct env *env, struct txn *txn, struct store_status *status,
	struct status_database *database)
{
	int r = txn_info(txn, &database->info);

	if (r < 0)
		return r;
	database->open = true;
	if (status->copy) /* opened without pins, so its readers are not known */
		return 0;
	struct reader_walk walk = {.status = status, .last_txn = database->info.last_txn};
	r = env_each_reader(env, status_add_reader, &walk);
	database->readers = walk.slots;
	return r;
}

/* ---- cursors ------------------------------------------------------------ */

struct cursor_walk {
	struct store_status *status;
	struct snapshot *snapshot;
	const struct journal_meta *meta;
};

/* Returns true if a follower at POSITION lapses (store/read/follow_pass.c). */
static bool status_is_lost(const struct cursor_walk *walk, const struct follow_position *position)
{
	struct feed_checkpoint checkpoint;
	int r = journal_feed_checkpoint(snapshot_journal(walk->snapshot),
		snapshot_journal_txn(walk->snapshot), position->feed, &checkpoint);

	err_ignore(r, "the walk over the feeds reports damage");
	return r != FOUND || checkpoint.phase == FEED_REMOVED ||
	       position->seq < checkpoint.trimmed || position->seq >= walk->meta->next_seq;
}

static int status_add_cursor(void *arg, const char *name, const struct cursor_file *cursor)
{
	const struct cursor_walk *walk = arg;
	struct store_status *status = walk->status;
	struct status_cursor made = {.event = cursor_least(cursor),
		.feeds = cursor->n,
		.written_ns = cursor->written_ns,
		.lapsed = memcmp(cursor->uuid, walk->meta->uuid, sizeof(cursor->uuid)) != 0};

	if (status->n_cursors == STATUS_CURSORS_MAX)
		return 1;
	(void)snprintf(made.name, sizeof(made.name), "%s", name);
	for (size_t i = 0; i < cursor->n; i++)
		made.lapsed = made.lapsed || status_is_lost(walk, &cursor->positions[i]);
	return ARRAY_ADD(status->cursors, status->n_cursors, status->cursors_room, made,
		"the list of cursors");
}

static int status_compare_cursors(const void *a, const void *b)
{
	return strcmp(
		((const struct status_cursor *)a)->name, ((const struct status_cursor *)b)->name);
}

/* ---- feeds -------------------------------------------------------------- */

static int status_add_feed(void *arg, const struct kinf_feed_info *feed)
{
	struct store_status *status = arg;

	return ARRAY_ADD(
		status->feeds, status->n_feeds, status->feeds_room, *feed, "the list of feeds");
}

static int status_compare_feeds(const void *a, const void *b)
{
	const struct kinf_feed_info *x = a, *y = b;
	int r = strcmp(x->full_name, y->full_name);

	return r ? r : strcmp(x->namespace_, y->namespace_);
}

static int status_gather_snapshot(struct kinf_snapshot *s, struct store_status *status)
{
	struct snapshot *snapshot = s->snapshot;
	struct journal *journal = snapshot_journal(snapshot);
	struct index *index = snapshot_index(snapshot);
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
	status->index.generation = index_generation(index);
	r = cursor_each(store_home(s->kinf->store), status_add_cursor, NULL,
		&(struct cursor_walk){status, snapshot, &meta});
	if (status->n_cursors)
		qsort(status->cursors, status->n_cursors, sizeof(*status->cursors),
			status_compare_cursors);
	if (r >= 0)
		r = status_gather_database(journal_env(journal), snapshot_journal_txn(snapshot),
			status, &status->journal);
	if (r == 0)
		r = status_gather_database(
			index_env(index), snapshot_index_txn(snapshot), status, &status->index);
	if (r == 0 && !status->copy)
		r = env_each_replaced_reader(journal_env(journal), index_env(index),
			status_add_reader, &(struct reader_walk){.status = status});
	if (r == 0)
		r = kinf_feed_status(s, NULL, status_add_feed, status);
	return r < 0 ? r : 0;
}

/* ---- all ---------------------------------------------------------------- */

int status_gather(struct kinf *kinf, bool serve_configured, struct store_status *status)
{
	static const char *const names[STATUS_PROCESSES] = {[HOME_REFLECTOR] = "kinf-reflector",
		[HOME_PROCESSOR] = "kinf-processor",
		[STATUS_SERVE] = "kinf-serve"};
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;

	*status = (struct store_status){.copy = kinf_is_copy(kinf),
		.serve_configured = serve_configured,
		.n_processes = STATUS_PROCESSES - !serve_configured};
	if (kinf->directory)
		(void)snprintf(status->path, sizeof(status->path), "%s", kinf->directory);
	for (size_t i = 0; i < STATUS_PROCESSES; i++)
		status->processes[i].name = names[i];
	if (!kinf->store) { /* refused, perhaps for a damaged index; the daemons may run */
		CLEANUP(home_close) struct home *home = NULL;

		status_note_error(status, "", kinf_error(kinf));
		int code = kinf->directory
				   ? home_open(kinf->directory, &(struct home_options){0}, &home)
				   : err_set(-ENOMEM, "the name of the store");
		if (code == 0) {
			status->copy = !home_role_holder(home, HOME_REFLECTOR) &&
				       !home_role_holder(home, HOME_PROCESSOR) &&
				       home_check_all_pins(home) < 0;
			status_gather_home(home, status);
		}
		status->journal.missing |= code == ERR_NO_STORE;
		status->index.missing |= code == ERR_NO_STORE;
		for (size_t i = 0; code == ERR_NO_STORE && i < STATUS_PROCESSES; i++)
			status->processes[i].searched = true; /* without a store neither runs */
		err_ignore(code, "the status reports why the store was refused");
		return err_say(ERR_NO_STORE, "%s", status->error);
	}
	status_gather_home(store_home(kinf->store), status);
	status_note_error(status, "", kinf->damage);
	status->damaged = *kinf->damage;
	int r = kinf_snapshot_open(kinf, &snapshot);
	char mismatch[STORE_MISMATCH_SIZE] = "";
	if (r == AGAIN)
		store_mismatch(kinf->store, mismatch, sizeof(mismatch));
	if (r == AGAIN && !status->processes[HOME_PROCESSOR].alive &&
		(*mismatch || kinf->is_untrusted))
		r = err_say(ERR_NO_STORE, "%s", kinf_error(kinf));
	if (r == AGAIN)
		status_note_error(status, "", kinf_error(kinf));
	if (r == 0)
		r = status_gather_snapshot(snapshot, status);
	if (r >= 0)
		r = status_each_pending(kinf, status_add_feed, status);
	if (status->n_feeds)
		qsort(status->feeds, status->n_feeds, sizeof(*status->feeds), status_compare_feeds);
	if (r < 0)
		status_note_error(status, "", err_text(r));
	return r;
}
