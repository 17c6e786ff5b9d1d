/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes one byte of a store at a time, and reads the store each time in a process of its own:
 *
 *	bytes STORE FEED COUNT SEED FILE...      FILE: in the store's directory, or an absolute path
 *
 * COUNT bytes of each FILE, chosen at random among those on the disk (0: every one of the pages
 * with any byte but zero, and the first of each other page); each is flipped in each bit, and set
 * to 0 and to ff. The child opens the store, lists the feed, gets objects, reads an index, follows,
 * asks the questions of questions.c, and verifies. It may find the damage or not, but it must end
 * by itself and give no wrong object, and no object may be missing without an error. Prints for
 * each FILE how the reads ended; exit 1 if one ended badly. No daemon may run on the store.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/daemon/faults.h"
#include "common/err.h"
#include "common/hash.h"
#include "reader/kinf.h"
#include "store/verify/verify.h"
#include "tests/torture/questions.h"

#define OBJECTS_MAX 4096
#define KEY_MAX     128
#define GETS        12
#define CHANGES     3 /* the store has at least so many after its first list */
#define PATIENCE_S  30
#define PAGE        4096

/* How a child ends. */
enum ending {
	GOOD = 0,
	REPORTED = 1, /* at least one call failed, with a sentence */
	WRONG = 3,
	MUTE = 4,    /* a call failed without a sentence */
	CAUGHT = 70, /* a memory fault reported by faults_catch() */
};

struct truth {
	size_t n;
	struct {
		uint64_t key, content;
		char text[KEY_MAX]; /* the key */
	} objects[OBJECTS_MAX];
	uint64_t event; /* from before the last changes */
	struct answer answers[ANSWERS_MAX];
	size_t n_listed;
	uint64_t listed[OBJECTS_MAX]; /* by a value of the index: hashes of both */
};

static struct truth *truth;
static const char *store, *feed;
static bool reported, learning;

static void __attribute__((noreturn)) end(enum ending how, const char *why)
{
	(void)fprintf(stderr, "bytes: %s\n", why);
	_exit(how);
}

/* Notes an error of the library. */
static bool failed(struct kinf *kinf, int r)
{
	if (r >= 0)
		return false;
	if (!*kinf_error(kinf))
		end(MUTE, "an error without a sentence");
	reported = true;
	return true;
}

/* VALUE: the object's value in the listing's index; NULL: none. */
static void check_listed(const struct kinf_object *object, const char *value)
{
	uint64_t pair = hash_bytes(BYTES(object->key, object->key_size), 5) ^
			hash_bytes(BYTES(value, strlen(value)), 6);

	if (learning) {
		truth->listed[truth->n_listed++] = pair;
		return;
	}
	for (size_t i = 0; i < truth->n_listed; i++)
		if (truth->listed[i] == pair)
			return;
	end(WRONG, "an object that does not have the value");
}

static void check_object(const struct kinf_object *object)
{
	uint64_t key = hash_bytes(BYTES(object->key, object->key_size), 1);
	uint64_t content =
		hash_bytes(BYTES(object->body, object->body_size), 2) ^
		hash_bytes(BYTES(object->uid, object->uid_size), 3) ^
		hash_bytes(BYTES(object->resource_version, object->resource_version_size), 4);

	if (learning) {
		truth->objects[truth->n].key = key;
		(void)snprintf(truth->objects[truth->n].text, KEY_MAX, "%.*s",
			(int)object->key_size, object->key);
		truth->objects[truth->n++].content = content;
		return;
	}
	for (size_t i = 0; i < truth->n; i++)
		if (truth->objects[i].key == key && truth->objects[i].content == content)
			return;
	end(WRONG, "a wrong object");
}

static size_t read_list(
	struct kinf *kinf, struct kinf_snapshot *snapshot, const char *index, const char *value)
{
	struct kinf_term term = {index, value};
	struct kinf_query query = {
		.size = sizeof(query), .feed = feed, .terms = &term, .n_terms = index ? 1 : 0};
	struct kinf_listing *list = NULL;
	struct kinf_object object;
	size_t n = 0;
	int r = kinf_list(snapshot, &query, &list);

	while (r == 0 && (r = kinf_list_next(list, &object)) == KINF_FOUND) {
		if (index)
			check_listed(&object, value);
		if (!index || !learning)
			check_object(&object);
		n++;
	}
	bool bad = failed(kinf, r) || r != KINF_END;
	reported |= bad; /* "not yet" also is no answer */
	kinf_list_close(&list);
	return bad ? SIZE_MAX : n;
}

static void get_object(struct kinf *kinf, struct kinf_snapshot *snapshot, const char *key)
{
	struct kinf_object object;
	char namespace[KEY_MAX];
	const char *slash = strchr(key, '/');

	(void)snprintf(namespace, sizeof(namespace), "%.*s", (int)(slash - key), key);
	int r = kinf_get(snapshot, feed, namespace, slash + 1, &object);
	if (!failed(kinf, r) && r == KINF_FOUND)
		check_object(&object);
	if (r == KINF_NOT_FOUND)
		end(WRONG, "an object is not found, without an error");
}

struct values {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	size_t listed;
	bool is_cut;
};

static int read_value(void *arg, const char *value, size_t size, uint64_t count)
{
	struct values *v = arg;
	char text[512];

	(void)snprintf(text, sizeof(text), "%.*s", (int)size, value);
	size_t n = read_list(v->kinf, v->snapshot, "node", text);
	v->is_cut |= n == SIZE_MAX;
	v->listed += n;
	if (!learning && n != SIZE_MAX && n != count)
		end(WRONG, "an index's count and its objects differ");
	return 0;
}

static void on_add(void *arg, const struct kinf_object *object, int initial)
{
	(void)initial;
	++*(size_t *)arg;
	check_object(object);
}

static void on_sync(void *arg)
{
	if (!reported && *(size_t *)arg != truth->n)
		end(WRONG, "a follower's state lacks objects");
	*(size_t *)arg = SIZE_MAX;
}

static void follow(struct kinf *kinf)
{
	struct kinf_informer_options options = {.size = sizeof(options)};
	struct kinf_informer *informer = NULL;
	struct kinf_handler *handler;
	size_t n = 0;
	struct kinf_handler_options how = {
		.size = sizeof(how), .arg = &n, .on_add = on_add, .on_sync = on_sync};
	int r = kinf_informer_new(kinf, feed, &options, &informer);

	if (r >= 0)
		r = kinf_informer_add_handler(informer, &how, &handler);
	for (int turn = 0; r >= 0 && n != SIZE_MAX && turn < 10000; turn++)
		r = kinf_informer_dispatch(informer, 64);
	(void)failed(kinf, r);
	reported |= n != SIZE_MAX;
	kinf_informer_free(&informer);
}

/* Compares the answers with those of the sound store. */
static void ask(struct kinf *kinf, struct kinf_snapshot *snapshot)
{
	struct asked asked = {.kinf = kinf, .snapshot = snapshot, .feed = feed, .n_keys = truth->n};
	struct answer answers[ANSWERS_MAX];
	const char *keys[OBJECTS_MAX];

	if (learning)
		truth->event = kinf_snapshot_event(snapshot) - CHANGES;
	asked.event = truth->event;
	asked.keys = keys;
	for (size_t i = 0; i < truth->n; i++)
		keys[i] = truth->objects[i].text;
	size_t n = questions_ask(&asked, answers);
	for (size_t i = 0; i < n; i++) {
		const struct answer *answer = &answers[i], *right = &truth->answers[i];

		if (answer->is_mute)
			end(MUTE, answer->question);
		if (answer->result == 0 && !learning &&
			(answer->hash != right->hash || answer->n != right->n))
			end(WRONG, answer->question);
		if (learning && (answer->result || !answer->n))
			(void)fprintf(stderr, "bytes: '%s' has no answer (%d)\n", answer->question,
				answer->result);
		reported |= answer->result != 0;
	}
	if (learning)
		memcpy(truth->answers, answers, sizeof(answers));
}

static void read_all(void)
{
	struct kinf *kinf = NULL;
	struct kinf_snapshot *snapshot = NULL;
	struct verify_report report;

	(void)alarm(PATIENCE_S);
	int r = kinf_open(store, &kinf);
	if (r == 0)
		r = kinf_set_check(kinf, 1);
	if (r == 0)
		r = kinf_snapshot_open(kinf, &snapshot);
	reported |= r != 0;
	if (!failed(kinf, r) && r == 0) {
		size_t n = read_list(kinf, snapshot, NULL, NULL);

		if (!learning && n != SIZE_MAX && n != truth->n)
			end(WRONG, "objects are missing without an error");
		struct values values = {.kinf = kinf, .snapshot = snapshot};

		values.is_cut |= failed(
			kinf, kinf_index_values(snapshot, feed, "node", NULL, read_value, &values));
		if (!learning && !values.is_cut && values.listed != truth->n_listed)
			end(WRONG, "an index lacks objects without an error");
		if (!learning) {
			for (size_t i = 0; i < GETS; i++)
				get_object(
					kinf, snapshot, truth->objects[i * truth->n / GETS].text);
			follow(kinf);
		}
		if (truth->n)
			ask(kinf, snapshot);
	}
	kinf_snapshot_close(&snapshot);
	kinf_close(&kinf);
	if (learning)
		_exit(reported ? REPORTED : GOOD);
	faults_catch(
		"bytes", store); /* required by verify.h; other readers of the library need not */
	r = verify_store(store, &(struct verify_options){.deep = true}, &report);
	if (r < 0 && !*err_text(r))
		end(MUTE, "verify fails without a sentence");
	_exit(reported || r < 0 || report.faults ? REPORTED : GOOD);
}

/* Returns how the child ended; a signal's number, negated. */
static int read_in_child(bool quiet)
{
	int status, null;
	pid_t pid = fork();

	if (pid == 0) {
		null = quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
		if (null >= 0)
			(void)dup2(null, STDERR_FILENO);
		read_all();
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static bool is_used(int fd, off_t at)
{
	uint8_t page[PAGE] = {0};

	if (lseek(fd, at, SEEK_DATA) != at || pread(fd, page, PAGE, at - at % PAGE) <= 0)
		return false;
	for (size_t byte = 0; byte < PAGE; byte++)
		if (page[byte])
			return true;
	return false;
}

/* Chooses a byte of a used page: the files have holes, and blocks allocated ahead. */
static off_t choose(int fd, off_t size, unsigned short seed[3])
{
	for (int i = 0; i < 1000000; i++) {
		off_t at = (off_t)(erand48(seed) * (double)size);

		if (is_used(fd, at))
			return at;
	}
	return -1;
}

struct tally {
	const char *file;
	unsigned long endings[256], signals, tried, bad;
};

/* Changes the byte at AT in each way, and reads the store each time. */
static void try_byte(struct tally *tally, int fd, off_t at)
{
	uint8_t before;

	if (at < 0 || lseek(fd, at, SEEK_DATA) != at || pread(fd, &before, 1, at) != 1)
		return;
	for (unsigned how = 0; how < 10; how++) {
		uint8_t changed = how < 8 ? (uint8_t)(before ^ (1u << how)) : how == 8 ? 0 : 0xff;

		if (changed == before)
			continue;
		if (pwrite(fd, &changed, 1, at) != 1)
			abort();
		int ending = read_in_child(true);
		tally->tried++;
		if (ending < 0)
			tally->signals++;
		else
			tally->endings[ending & 0xff]++;
		if (ending < 0 || (ending != GOOD && ending != REPORTED && ending != CAUGHT)) {
			tally->bad++;
			(void)printf("FAULT %s: byte %lld %02x -> %02x: ends with %d\n",
				tally->file, (long long)at, before, changed, ending);
			(void)fflush(stdout);
		}
		if (pwrite(fd, &before, 1, at) != 1)
			abort();
	}
}

static void try_file(
	struct tally *tally, int fd, off_t size, unsigned long count, unsigned short seed[3])
{
	if (count && count < (unsigned long)size) {
		while (count--)
			try_byte(tally, fd, choose(fd, size, seed));
		return;
	}
	for (off_t at = 0; at < size; at++) {
		if (!count && at % PAGE && !is_used(fd, at))
			at += PAGE - at % PAGE - 1;
		else
			try_byte(tally, fd, at);
	}
}

static bool torture(const char *name, unsigned long count, unsigned short seed[3])
{
	struct tally tally = {.file = name};
	char path[4096];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s%s%s", *name == '/' ? "" : store,
		*name == '/' ? "" : "/", name);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)fprintf(stderr, "bytes: %s: %s\n", path, strerror(errno));
		return false;
	}
	try_file(&tally, fd, st.st_size, count, seed);
	(void)close(fd);
	(void)printf("%-32s %8lu tried: %lu unnoticed, %lu reported, %lu memory faults reported, "
		     "%lu wrong, %lu without a sentence, %lu by a signal\n",
		name, tally.tried, tally.endings[GOOD], tally.endings[REPORTED],
		tally.endings[CAUGHT], tally.endings[WRONG], tally.endings[MUTE], tally.signals);
	(void)fflush(stdout);
	return !tally.bad;
}

int main(int argc, char **argv)
{
	unsigned short seed[3] = {0};
	bool good = argc > 5;

	if (!good) {
		(void)fprintf(stderr, "usage: bytes STORE FEED COUNT SEED FILE...\n");
		return 2;
	}
	store = argv[1];
	feed = argv[2];
	seed[0] = (unsigned short)strtoul(argv[4], NULL, 10);
	truth = mmap(
		NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (truth == MAP_FAILED)
		return 1;
	learning = true;
	int sound = read_in_child(false);
	learning = false;
	if (!truth->n || sound != GOOD || (sound = read_in_child(false)) != GOOD) {
		(void)fprintf(stderr,
			"bytes: the store has no objects, or is damaged before the first change "
			"(%d)\n",
			sound);
		return 1;
	}
	for (int i = 5; i < argc; i++)
		good &= torture(argv[i], strtoul(argv[3], NULL, 10), seed);
	return good ? 0 : 1;
}
