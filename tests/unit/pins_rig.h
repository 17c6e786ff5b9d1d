/* SPDX-License-Identifier: Apache-2.0 */
/* A database with recognizable states, readers of it in child processes, and a writer reusing pages
 * as fast as it can. */
#ifndef UNIT_PINS_RIG_H
#define UNIT_PINS_RIG_H

#include <dirent.h>
#include <poll.h>
#include <signal.h>

#include "store/env/env.h"
#include "store/pins/pin_file.h"
#include "tests/unit/page_rig.h"
#include "tests/unit/unit.h"

#define KEYS  32
#define VALUE 3000 /* in overflow pages, if pages have 4 KiB */
/* The most growth of a file with reused pages during growth(). */
#define GROWTH_MOST (1024 * (uint64_t)database_page())

static const char *const databases[] = {"one"};
static struct pin_places places;
static struct env *env; /* of this process */

/* ---- a database whose states can be told apart -------------------------- */

static inline struct env *open_env(enum env_mode mode)
{
	struct env_options options = {.mode = mode,
		.databases = databases,
		.n_databases = 1,
		.map_bytes = 512u << 20,
		.file_mode = 0640,
		.writemap = true,
		.places = &places};
	struct env *opened = NULL;
	int r = env_open(scratch_path("e"), &options, &opened);

	if (r < 0)
		(void)fprintf(stderr, "%s\n", err_text(r));
	return opened;
}

/* Each transaction writes every second key. A value repeats one number. `sum` is the sum of all
 * keys' numbers. */
static uint64_t numbers[KEYS], version;

static inline bool write_one(void)
{
	struct txn *txn = NULL;
	uint64_t sum = 0;
	char key[8];

	if (txn_begin_write(env, &txn) < 0)
		return false;
	version++;
	for (int i = 0; i < KEYS; i++) {
		if ((version + (uint64_t)i) % 2 == 0) {
			uint64_t *place = NULL;
			numbers[i] = version * KEYS + (uint64_t)i;
			(void)snprintf(key, sizeof(key), "k%02d", i);
			(void)txn_allocate(txn, 3 * VALUE);
			if (txn_reserve(txn, 0, bytes_str(key), VALUE, 0, (void **)&place) < 0)
				break;
			for (size_t j = 0; j < VALUE / sizeof(*place); j++)
				memcpy((char *)place + j * sizeof(*place), &numbers[i],
					sizeof(*place));
		}
		sum += numbers[i];
	}
	(void)txn_put(txn, 0, BYTES_LIT("sum"), (struct bytes){&sum, sizeof(sum)}, 0);
	return txn_commit(&txn) == 0;
}

static inline void write_many(int n)
{
	for (int i = 0; i < n; i++)
		cr_assert(write_one());
}

/* Loads the last writer's numbers for the next one. */
static inline void load(void)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct bytes value;
	char key[8];

	cr_assert_eq(txn_begin_read(env, &txn), 0);
	for (int i = 0; i < KEYS; i++) {
		(void)snprintf(key, sizeof(key), "k%02d", i);
		if (txn_get(txn, 0, bytes_str(key), &value) == FOUND)
			memcpy(&numbers[i], value.data, sizeof(numbers[i]));
		if (numbers[i] / KEYS > version)
			version = numbers[i] / KEYS;
	}
}

static uint64_t seen; /* by is_whole(): the sum, different in each state */

/* Returns whether the transaction sees one state only. */
static inline bool is_whole(struct txn *txn)
{
	uint64_t sum = 0, stored = 0, number, word;
	struct bytes value;
	char key[8];

	for (int i = 0; i < KEYS; i++) {
		(void)snprintf(key, sizeof(key), "k%02d", i);
		int r = txn_get(txn, 0, bytes_str(key), &value);
		if (r == NOT_FOUND)
			continue;
		if (r < 0 || value.size != VALUE)
			return false;
		memcpy(&number, value.data, sizeof(number));
		for (size_t j = 0; j < VALUE / sizeof(word); j++) {
			memcpy(&word, (const char *)value.data + j * sizeof(word), sizeof(word));
			if (word != number)
				return false;
		}
		sum += number;
	}
	if (txn_get(txn, 0, BYTES_LIT("sum"), &value) != FOUND || value.size != sizeof(stored))
		return false;
	memcpy(&stored, value.data, sizeof(stored));
	seen = stored;
	return sum == stored;
}

/* ---- other processes ---------------------------------------------------- */

struct child {
	pid_t pid;
	int to, from;
};

static inline void close_all_but(int a, int b)
{
	for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
		if (fd != a && fd != b)
			(void)close(fd);
}

static inline void open_and_close_each_file(void)
{
	static const char *const names[] = {"e/lock.mdb", "e/data.mdb", "e/pins"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)close(open(scratch_path(names[i]), O_RDWR | O_CLOEXEC));
	DIR *directory = opendir(places.path[0]);
	for (struct dirent *entry; directory && (entry = readdir(directory));)
		(void)close(openat(dirfd(directory), entry->d_name, O_RDWR | O_CLOEXEC));
	(void)closedir(directory);
}

/* A child's snapshots, and the sum read in the one it holds. */
struct serving {
	int from, to; /* commands and answers */
	struct txn *txn, *more;
	uint64_t held;
};

static inline bool serve_open(struct serving *s)
{
	env = open_env(ENV_READ);
	bool opened = env && txn_begin_read(env, &s->txn) == 0 && is_whole(s->txn);
	s->held = seen;
	return opened;
}

/* Commands about snapshots. Returns the answer. */
static inline bool serve_snapshot(struct serving *s, char command)
{
	bool good;

	switch (command) {
	case 'o': /* opens and holds a snapshot */
		return serve_open(s);
	/* the same without standard descriptors: its output must not get their numbers */
	case 's':
		for (int fd = 0; fd <= STDERR_FILENO; fd++)
			(void)close(fd);
		good = serve_open(s);
		for (int fd = 0; fd <= STDERR_FILENO; fd++)
			good &= fcntl(fd, F_GETFD) < 0 ||
				(fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
		return good;
	/* checks the held snapshot: without a pin a later state may lie in the same pages */
	case 'c':
		return is_whole(s->txn) && seen == s->held;
	case 'z': { /* knows the sizes of this state only */
		struct env_info info = {0};
		return env_info(env, &info) == ERR_SNAPSHOT_EXPIRED &&
		       txn_info(s->txn, &info) == 0 && info.used_bytes;
	}
	case 'r': /* renews */
		good = txn_renew(s->txn) == 0 && is_whole(s->txn);
		s->held = seen;
		return good;
	/* reads until its pages are reused, and detects each wrong read */
	case 'g':
		for (bool whole = true; whole && !txn_is_given_up(s->txn);)
			whole = is_whole(s->txn);
		return txn_is_given_up(s->txn);
	case 'x': /* may not renew */
		return txn_renew(s->txn) == ERR_SNAPSHOT_EXPIRED;
	case 'e':
		txn_reset(s->txn);
		return true;
	case 'l': { /* takes all the snapshots there are */
		int r, n = 0;
		while ((r = txn_begin_read(env, &s->more)) == 0)
			n++;
		return r == ERR_READERS_FULL && n > 1000;
	}
	case 'k': /* keeps its pin? */
		return txn_keeps_pin(s->txn);
	default:
		return false;
	}
}

/* Commands about the process, and all others. Returns the answer. */
static inline bool serve_command(struct serving *s, char command)
{
	static const char yes = 'y';

	switch (command) {
	case 'u': /* becomes another user */
		return setgid(65534) == 0 && setuid(65534) == 0;
	case 'f': { /* forks a child and ends before it */
		pid_t pid = fork();
		if (pid == 0) {
			(void)alarm(20);
			for (;;)
				(void)pause();
		}
		return pid > 0;
	}
	case 'b': /* opens and closes each file, as a backup does */
		open_and_close_each_file();
		return true;
	/* closes inherited descriptors, as a program becoming a daemon does, and opens another
	 * file */
	case 'd':
		close_all_but(s->from, s->to);
		return open("/dev/null", O_RDONLY) > STDERR_FILENO;
	case 'w': /* becomes the writer, and writes until it is killed */
		env = open_env(ENV_WRITE);
		load();
		(void)!write(s->to, &yes, 1);
		while (write_one())
			;
		_exit(3);
	case 'q':
		_exit(0);
	default:
		return serve_snapshot(s, command);
	}
}

/* Runs in a child: commands come as letters, answers are letters. */
static inline void __attribute__((noreturn)) serve(int from, int to)
{
	struct serving s = {.from = from, .to = to};
	char command;

	while (read(from, &command, 1) == 1) {
		char answer = serve_command(&s, command) ? 'y' : 'n';

		if (write(to, &answer, 1) != 1)
			break;
	}
	_exit(0);
}

static inline struct child start(void)
{
	int to[2], from[2];
	struct child child;

	cr_assert_eq(pipe2(to, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(from, O_CLOEXEC), 0);
	child.pid = fork();
	cr_assert_geq(child.pid, 0);
	if (child.pid == 0) {
		(void)close(to[1]);
		(void)close(from[0]);
		serve(to[0], from[1]);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	child.to = to[1];
	child.from = from[0];
	return child;
}

static inline char ask(const struct child *child, char command)
{
	char answer = '-';

	cr_assert_eq(write(child->to, &command, 1), 1);
	(void)!read(child->from, &answer, 1); /* '-': it has died */
	return answer;
}

static inline void end(struct child *child, int signal)
{
	cr_assert_eq(kill(child->pid, signal), 0);
	cr_assert_eq(waitpid(child->pid, NULL, 0), child->pid);
	(void)close(child->to);
	(void)close(child->from);
}

static inline void pause_ms(int ms)
{
	(void)poll(NULL, 0, ms); /* a signal only makes it shorter */
}

static inline uint64_t file_bytes(void)
{
	struct env_info info;

	cr_assert_eq(env_info(env, &info), 0);
	return info.file_bytes;
}

/* Returns the file's growth in bytes while the writer overwrites all keys 200 times. */
static inline uint64_t growth(void)
{
	uint64_t before;

	(void)env_clean_pins(env); /* moves the floor */
	write_many(200);
	before = file_bytes();
	write_many(400);
	return file_bytes() - before;
}

static inline void setup(void)
{
	(void)snprintf(places.path[0], sizeof(places.path[0]), "%s", scratch_path("pins"));
	cr_assert_eq(mkdir(places.path[0], 0700), 0);
	cr_assert_eq(mkdir(scratch_path("e"), 0700), 0);
}

static inline void setup_writer(void)
{
	env = open_env(ENV_WRITE);
	cr_assert_not_null(env);
	write_many(4);
}

static inline void teardown(void)
{
	env_close(&env);
}

#endif
