/* SPDX-License-Identifier: Apache-2.0 */
#include "common/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/text/text.h"
#include "common/text/utf8.h"

#define STATS_MAGIC  0x53746174u
#define PAGE_MAGIC   0x5047534bu /* "KSGP" */
#define PAGE_VERSION 0x00030000u /* major << 16 | minor */
#define COUNTERS_MAX 128
#define TEXT_WORDS   (STATS_TEXT / 8)
#define READ_TRIES   1000

/* ---- layout: store/FORMAT.md, Status pages ------------------------------ */

struct page_text {
	_Atomic uint64_t sequence;
	_Atomic uint64_t words[TEXT_WORDS];
};

enum row_word {
	ROW_FEED, /* feed id, bit 32 set when the row is used */
	ROW_PHASE,
	ROW_HEARD,
	ROW_LISTS,
	ROW_WATCHES,
	ROW_EVENTS,
	ROW_BYTES,
	ROW_RETRIES,
	ROW_LIST_DONE,
	ROW_LIST_TOTAL,
	ROW_ERROR,
	ROW_WORDS = ROW_ERROR + TEXT_WORDS
};

#define ROW_USED ((uint64_t)1 << 32)

struct page_row {
	_Atomic uint64_t sequence;
	_Atomic uint64_t words[ROW_WORDS];
};

struct page {
	_Atomic uint32_t magic;
	/* written last (release), 0 during creation; read first (acquire) in stats_open */
	_Atomic uint32_t version;
	_Atomic uint32_t size; /* of the page */
	_Atomic uint32_t n_counters;
	_Atomic uint32_t n_rows; /* all used rows are below this */
	_Atomic int32_t pid;
	_Atomic uint64_t start_ticks; /* proc_start_ticks of pid */
	_Atomic uint64_t start_ns;
	_Atomic uint64_t heartbeat_ns;
	_Atomic uint64_t journal[2]; /* the uuid's bytes; 0: not known */
	_Atomic uint64_t counters[COUNTERS_MAX];
	struct page_text state;
	struct page_text error;
	char check[STATS_TEXT]; /* plain bytes, written once by a dying process */
	struct page_row rows[STATS_FEEDS_MAX];
};

_Static_assert(
	sizeof(_Atomic uint64_t) == 8 && ATOMIC_LLONG_LOCK_FREE == 2, "atomics are plain words");
_Static_assert(STATS_TEXT % 8 == 0, "text is copied by words");
_Static_assert(STAT_MAX <= COUNTERS_MAX, "room for every counter");
_Static_assert(sizeof(struct page_text) == 248, "layout");
_Static_assert(sizeof(struct page_row) == 328, "layout");
_Static_assert(offsetof(struct page, start_ticks) == 24, "layout");
_Static_assert(offsetof(struct page, journal) == 48, "layout");
_Static_assert(offsetof(struct page, counters) == 64, "layout");
_Static_assert(offsetof(struct page, state) == 1088, "layout");
_Static_assert(offsetof(struct page, check) == 1584, "layout");
_Static_assert(offsetof(struct page, rows) == 1824, "layout");
_Static_assert(sizeof(struct page) == 1345312, "layout");

struct stats {
	uint32_t magic;
	struct page *page;
};

static const char *const stats_names[STAT_MAX] = {
#define STAT(symbol, name, text) [STAT_##symbol] = name,
#include "common/stats.def"
#undef STAT
};

static uint64_t stats_load(const _Atomic uint64_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

static void stats_store(_Atomic uint64_t *p, uint64_t value)
{
	atomic_store_explicit(p, value, memory_order_relaxed);
}

static struct page *stats_page(const struct stats *stats)
{
	CHECK_OBJ(stats, STATS_MAGIC);
	return stats->page;
}

/* ---- words under a sequence number -------------------------------------- */

/* Copies N words into the page; there is one writer. Each word is stored with release, without
 * fences: a reader of one of them (acquire in stats_read_words) also sees the odd number. */
static void stats_write_words(
	_Atomic uint64_t *sequence, _Atomic uint64_t *to, const uint64_t *from, size_t n)
{
	/* | 1: right also after a writer died at an odd number. */
	uint64_t odd = stats_load(sequence) | 1;

	stats_store(sequence, odd);
	for (size_t i = 0; i < n; i++)
		atomic_store_explicit(&to[i], from[i], memory_order_release);
	atomic_store_explicit(sequence, odd + 1, memory_order_release);
}

/* Returns: FOUND, TO is a consistent copy; AGAIN, the writer died in a copy or outruns the
 * reader. */
static int stats_read_words(
	const _Atomic uint64_t *sequence, const _Atomic uint64_t *from, uint64_t *to, size_t n)
{
	for (int try = 0; try < READ_TRIES; try++) {
		/* Pairs with the last store of stats_write_words. */
		uint64_t before = atomic_load_explicit(sequence, memory_order_acquire);
		if (before & 1) {
			(void)sched_yield(); /* always succeeds */
			continue;
		}
		for (size_t i = 0; i < n; i++)
			to[i] = atomic_load_explicit(&from[i], memory_order_acquire);
		if (stats_load(sequence) == before)
			return FOUND;
	}
	return AGAIN;
}

/* Copies TEXT into words, the rest zero; one that does not fit loses its middle. The copy is valid
 * UTF-8 without control characters: much of it comes from servers and goes to terminals and
 * JSON. */
static void stats_text_to_words(const char *text, uint64_t words[TEXT_WORDS])
{
	memset(words, 0, STATS_TEXT);
	(void)text_shorten(bytes_str(text), (char *)words, STATS_TEXT);
	utf8_make_printable((char *)words);
}

static void stats_text_from_words(const uint64_t words[TEXT_WORDS], char text[STATS_TEXT])
{
	memcpy(text, words, STATS_TEXT);
	text[STATS_TEXT - 1] = '\0';
}

static void stats_set_text(struct page_text *to, const char *text)
{
	uint64_t words[TEXT_WORDS];

	stats_text_to_words(text ? text : "", words);
	stats_write_words(&to->sequence, to->words, words, TEXT_WORDS);
}

static void stats_get_text(const struct page_text *from, char text[STATS_TEXT])
{
	uint64_t words[TEXT_WORDS] = {0};

	if (stats_read_words(&from->sequence, from->words, words, TEXT_WORDS) != FOUND)
		memset(words, 0, sizeof(words));
	stats_text_from_words(words, text);
}

/* ---- making and opening ------------------------------------------------- */

static uint32_t stats_rows(const struct page *page)
{
	uint32_t n = atomic_load_explicit(&page->n_rows, memory_order_relaxed);

	return n < STATS_FEEDS_MAX ? n : STATS_FEEDS_MAX;
}

/* Initializes the page. An earlier process's page, perhaps mapped by readers, gets the usual
 * stores: no reader sees half of the old and half of the new. */
static int stats_page_begin(struct page *page)
{
	static const uint64_t zeros[ROW_WORDS];
	uint64_t ticks;

	int r = proc_start_ticks(getpid(), &ticks);
	if (r < 0)
		return r;
	atomic_store(&page->version, 0);
	for (uint32_t i = 0; i < COUNTERS_MAX; i++)
		stats_store(&page->counters[i], 0);
	for (uint32_t i = 0; i < stats_rows(page); i++)
		stats_write_words(&page->rows[i].sequence, page->rows[i].words, zeros, ROW_WORDS);
	stats_set_text(&page->state, "starting");
	stats_set_text(&page->error, "");
	memset(page->check, 0, sizeof(page->check));
	atomic_store(&page->magic, PAGE_MAGIC);
	atomic_store(&page->size, (uint32_t)sizeof(*page));
	atomic_store(&page->n_counters, STAT_MAX);
	atomic_store(&page->n_rows, 0);
	atomic_store(&page->pid, (int32_t)getpid());
	stats_store(&page->start_ticks, ticks);
	stats_store(&page->start_ns, proc_realtime_ns());
	stats_store(&page->heartbeat_ns, proc_monotonic_ns());
	stats_store(&page->journal[0], 0);
	stats_store(&page->journal[1], 0);
	/* Pairs with acquire in stats_open. */
	atomic_store_explicit(&page->version, PAGE_VERSION, memory_order_release);
	return 0;
}

void stats_close(struct stats **stats)
{
	struct stats *s = *stats;

	if (!s)
		return;
	if (s->page)
		(void)munmap(s->page, sizeof(*s->page)); /* our own mapping */
	s->magic = 0;
	free(s);
	*stats = NULL;
}

static int stats_map(int fd, int protection, struct stats **ret_stats)
{
	CLEANUP(stats_close) struct stats *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(-ENOMEM, "status page");
	s->magic = STATS_MAGIC;
	void *page = mmap(NULL, sizeof(*s->page), protection, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return err_set(-errno, "mapping");
	s->page = page;
	*ret_stats = TAKE(s);
	return 0;
}

int stats_create(int directory_fd, const char *name, struct stats **ret_stats)
{
	AUTO_FD int fd =
		openat(directory_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	CLEANUP(stats_close) struct stats *s = NULL;

	if (fd < 0)
		return err_set(-errno, "opening status page '%s'", name);
	/* Independent of the umask: the directory's mode limits readers. Fails only for another
	 * user's file. */
	(void)fchmod(fd, 0640);
	int r = -posix_fallocate(fd, 0, sizeof(struct page)); /* grows it, never truncates */
	if (r < 0)
		return err_set(r, "allocating status page '%s'", name);
	r = stats_map(fd, PROT_READ | PROT_WRITE, &s);
	if (r == 0)
		r = stats_page_begin(s->page);
	if (r < 0)
		return err_add(r, "status page '%s'", name);
	*ret_stats = TAKE(s);
	return 0;
}

/* Opens the existing page with FLAGS of open(2). */
static int stats_open_file(int directory_fd, const char *name, int flags, struct stats **ret_stats)
{
	AUTO_FD int fd = openat(directory_fd, name, flags | O_CLOEXEC | O_NOFOLLOW);
	CLEANUP(stats_close) struct stats *s = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(-errno, "opening status page '%s'", name);
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(*s->page))
		return err_set(ERR_FORMAT, "status page '%s'", name);
	int r = stats_map(fd, flags == O_RDWR ? PROT_READ | PROT_WRITE : PROT_READ, &s);
	if (r < 0)
		return err_add(r, "status page '%s'", name);
	uint32_t version = atomic_load_explicit(&s->page->version, memory_order_acquire);
	if (version >> 16 != PAGE_VERSION >> 16 || atomic_load(&s->page->magic) != PAGE_MAGIC ||
		atomic_load(&s->page->size) < sizeof(*s->page))
		return err_set(
			ERR_FORMAT, "status page '%s' is being made, or by another version", name);
	*ret_stats = TAKE(s);
	return 0;
}

int stats_open(int directory_fd, const char *name, struct stats **ret_stats)
{
	return stats_open_file(directory_fd, name, O_RDONLY, ret_stats);
}

int stats_continue(int directory_fd, const char *name, struct stats **ret_stats)
{
	return stats_open_file(directory_fd, name, O_RDWR, ret_stats);
}

/* ---- counters and the process ------------------------------------------- */

void stats_add(struct stats *stats, enum counter counter, uint64_t n)
{
	if (stats)
		(void)atomic_fetch_add_explicit(
			&stats_page(stats)->counters[counter], n, memory_order_relaxed);
}

uint64_t stats_get(const struct stats *stats, enum counter counter)
{
	return stats ? stats_load(&stats_page(stats)->counters[counter]) : 0;
}

const char *stats_name(enum counter counter)
{
	return stats_names[counter];
}

void stats_heartbeat(struct stats *stats)
{
	if (stats)
		stats_store(&stats_page(stats)->heartbeat_ns, proc_monotonic_ns());
}

void stats_set_state(struct stats *stats, const char *state)
{
	if (stats)
		stats_set_text(&stats_page(stats)->state, state);
}

void stats_set_error(struct stats *stats, const char *error)
{
	if (stats)
		stats_set_text(&stats_page(stats)->error, error);
}

void stats_set_journal(struct stats *stats, const uint8_t uuid[16])
{
	uint64_t words[2];

	if (!stats)
		return;
	memcpy(words, uuid, sizeof(words));
	stats_store(&stats_page(stats)->journal[0], words[0]);
	stats_store(&stats_page(stats)->journal[1], words[1]);
}

bool stats_journal(const struct stats *stats, uint8_t ret_uuid[16])
{
	if (!stats)
		return false;
	uint64_t words[2] = {stats_load(&stats_page(stats)->journal[0]),
		stats_load(&stats_page(stats)->journal[1])};
	memcpy(ret_uuid, words, sizeof(words));
	return words[0] || words[1];
}

int stats_process(const struct stats *stats, struct stats_process *ret_process)
{
	if (!stats)
		return err_set(-ENOENT, "status page");
	const struct page *page = stats_page(stats);
	struct stats_process p = {
		.pid = atomic_load_explicit(&page->pid, memory_order_relaxed),
		.start_ns = stats_load(&page->start_ns),
		.heartbeat_ns = stats_load(&page->heartbeat_ns),
	};
	/* Monotonic: a wall clock set back would keep a hung process responding. A future heartbeat
	 * is of an earlier boot. */
	p.responding = proc_monotonic_ns() - p.heartbeat_ns < STATS_HEARTBEAT_LIMIT_NS;
	if (p.pid > 0) {
		uint64_t ticks;
		int r = proc_start_ticks(p.pid, &ticks);
		if (err_is_shortage(r))
			return r;
		err_ignore(r, "the answer is that the process has ended");
		/* Another process may have the pid by now. */
		p.alive = r == 0 && ticks == stats_load(&page->start_ticks);
	}
	stats_get_text(&page->state, p.state);
	stats_get_text(&page->error, p.error);
	memcpy(p.check, page->check, sizeof(p.check));
	p.check[sizeof(p.check) - 1] = '\0';
	*ret_process = p;
	return 0;
}

char *stats_check_text(struct stats *stats, size_t *ret_size)
{
	if (!stats)
		return NULL;
	*ret_size = STATS_TEXT;
	return stats_page(stats)->check;
}

/* ---- feeds -------------------------------------------------------------- */

/* Returns the row of FEED, or with CREATE a free one; -1: none. The search begins at the row of the
 * feed's number, nearly always a hit: thousands of feeds are looked up one by one. */
static int stats_row_find(const struct page *page, uint32_t feed, bool create)
{
	uint32_t n = stats_rows(page), home = feed % STATS_FEEDS_MAX;
	int free_row = home >= n ? (int)home : -1;

	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = home < n ? (home + k) % n : k;
		uint64_t id = stats_load(&page->rows[i].words[ROW_FEED]);

		if (id == (feed | ROW_USED))
			return (int)i;
		if (!(id & ROW_USED) && free_row < 0)
			free_row = (int)i;
	}
	if (!create)
		return -1;
	if (free_row < 0 && n < STATS_FEEDS_MAX)
		free_row = (int)n;
	return free_row;
}

int stats_feed_set(struct stats *stats, const struct stats_feed *feed)
{
	if (!stats)
		return -1;
	struct page *page = stats_page(stats);
	int i = stats_row_find(page, feed->feed, true);
	if (i < 0)
		return -1;
	uint64_t words[ROW_WORDS] = {
		[ROW_FEED] = feed->feed | ROW_USED,
		[ROW_PHASE] = feed->phase,
		[ROW_HEARD] = feed->heard_ns,
		[ROW_LISTS] = feed->lists,
		[ROW_WATCHES] = feed->watches,
		[ROW_EVENTS] = feed->events,
		[ROW_BYTES] = feed->bytes,
		[ROW_RETRIES] = feed->retries,
		[ROW_LIST_DONE] = feed->list_done,
		[ROW_LIST_TOTAL] = feed->list_total,
	};
	stats_text_to_words(feed->error, words + ROW_ERROR);
	stats_write_words(&page->rows[i].sequence, page->rows[i].words, words, ROW_WORDS);
	if ((uint32_t)i >= stats_rows(page))
		atomic_store_explicit(&page->n_rows, (uint32_t)i + 1, memory_order_relaxed);
	return i;
}

int stats_feed_remove(struct stats *stats, uint32_t feed)
{
	static const uint64_t zeros[ROW_WORDS];

	if (!stats)
		return NOT_FOUND;
	struct page *page = stats_page(stats);
	int i = stats_row_find(page, feed, false);
	if (i < 0)
		return NOT_FOUND;
	stats_write_words(&page->rows[i].sequence, page->rows[i].words, zeros, ROW_WORDS);
	return FOUND;
}

static int stats_row_get(const struct page_row *row, struct stats_feed *ret_feed)
{
	uint64_t words[ROW_WORDS];

	if (stats_read_words(&row->sequence, row->words, words, ROW_WORDS) != FOUND ||
		!(words[ROW_FEED] & ROW_USED))
		return NOT_FOUND;
	*ret_feed = (struct stats_feed){
		.feed = (uint32_t)words[ROW_FEED],
		.phase = (uint32_t)words[ROW_PHASE],
		.heard_ns = words[ROW_HEARD],
		.lists = words[ROW_LISTS],
		.watches = words[ROW_WATCHES],
		.events = words[ROW_EVENTS],
		.bytes = words[ROW_BYTES],
		.retries = words[ROW_RETRIES],
		.list_done = words[ROW_LIST_DONE],
		.list_total = words[ROW_LIST_TOTAL],
	};
	stats_text_from_words(words + ROW_ERROR, ret_feed->error);
	return FOUND;
}

int stats_feed_get(const struct stats *stats, uint32_t feed, struct stats_feed *ret_feed)
{
	if (!stats)
		return NOT_FOUND;
	const struct page *page = stats_page(stats);
	struct stats_feed row;
	int i = stats_row_find(page, feed, false);
	/* The writer may have given the row to another feed since stats_row_find(). */
	if (i < 0 || stats_row_get(&page->rows[i], &row) != FOUND || row.feed != feed)
		return NOT_FOUND;
	*ret_feed = row;
	return FOUND;
}

int stats_feed_at(const struct stats *stats, uint32_t i, struct stats_feed *ret_feed)
{
	if (!stats || i >= stats_rows(stats_page(stats)))
		return END;
	return stats_row_get(&stats_page(stats)->rows[i], ret_feed);
}
