/* SPDX-License-Identifier: Apache-2.0 */
#include "store/read/cursor_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/hashtable.h"
#include "common/proc.h"

#define TABLE_MAGIC 0x63757274u
#define TABLE_MOST  16384 /* files of all owners */
/* Entries and bytes of a slice: some milliseconds. The first walk has larger slices: nothing is
 * trimmed before its end. */
#define SLICE_ENTRIES 4096
#define SLICE_BYTES   (1 << 20)
#define FIRST_FACTOR  16

/* A file; one without positions if it is no cursor. */
struct cursor_row {
	uint32_t hash;
	uint32_t walk; /* the last walk with it */
	uint64_t inode, changed_ns, size;
	uint8_t uuid[16];
	uint64_t written_ns;
	int64_t began_ns; /* monotonic time of writing, as far as known */
	uint64_t least;   /* of its positions; UINT64_MAX: none */
};

struct cursor_table {
	uint32_t magic;
	uint32_t walk; /* number of the present walk */
	struct home *home;
	DIR *directory; /* NULL: the next slice begins a walk */
	struct hashtable rows;
	struct hashtable owners; /* uid -> files in this walk */
	uint64_t seed;           /* of the rows' hashes: members choose inodes */
	uint64_t reads;
	bool complete; /* one walk has ended */
};

static bool cursor_row_is(const void *item, const void *key, const void *arg)
{
	(void)arg;
	return ((const struct cursor_row *)item)->inode == *(const uint64_t *)key;
}

int cursor_table_new(struct home *home, struct cursor_table **ret_table)
{
	CLEANUP(cursor_table_free) struct cursor_table *table = calloc(1, sizeof(*table));

	if (!table)
		return err_set(-ENOMEM, "the table of cursors");
	table->magic = TABLE_MAGIC;
	table->home = home;
	table->rows = HASHTABLE_INIT(struct cursor_row, cursor_row_is, NULL);
	table->owners = HASHTABLE_INIT(struct hashtable_number, hashtable_number_is, NULL);
	int r = proc_random(&table->seed, sizeof(table->seed));
	if (r < 0)
		return r;
	*ret_table = TAKE(table);
	return 0;
}

void cursor_table_free(struct cursor_table **table)
{
	if (!*table)
		return;
	struct cursor_table *t = TAKE(*table);

	CHECK_OBJ(t, TABLE_MAGIC);
	if (t->directory)
		(void)closedir(t->directory);
	hashtable_release(&t->rows);
	hashtable_release(&t->owners);
	t->magic = 0;
	free(t);
}

/* Returns the monotonic time of writing of a file just read. The wall clock counts only for files
 * older than the table: it may be set. */
static int64_t cursor_table_began(const struct cursor_table *table, uint64_t written_ns)
{
	uint64_t now = proc_realtime_ns(),
		 age = now > written_ns ? now - written_ns : written_ns - now;

	if (table->complete)
		age = 0; /* not there in the walk before */
	return (int64_t)proc_monotonic_ns() - (int64_t)(age < INT64_MAX / 2 ? age : INT64_MAX / 2);
}

static bool cursor_row_is_young(const struct cursor_row *row, uint64_t limit_ns)
{
	int64_t age = (int64_t)proc_monotonic_ns() - row->began_ns;

	return age < 0 || (uint64_t)age <= limit_ns;
}

/* Removes the file if it is expired by both clocks. A file without row has only the wall clock. */
static bool cursor_table_sweep(
	struct cursor_table *table, const char *name, const struct stat *st, uint64_t expiry_ns)
{
	uint64_t inode = st->st_ino;
	const struct cursor_row *row =
		hashtable_find(&table->rows, hash_u64(inode, table->seed), &inode);

	return !(row && cursor_row_is_young(row, expiry_ns)) &&
	       cursor_sweep(dirfd(table->directory), name, st, expiry_ns);
}

/* Takes one file into the table; reads it unless unchanged. Returns the bytes read. */
static int64_t cursor_table_take(
	struct cursor_table *table, const char *name, const struct stat *st)
{
	/* The time of the inode: its owner can't set it. */
	uint64_t changed_ns =
		(uint64_t)st->st_ctim.tv_sec * 1000000000 + (uint64_t)st->st_ctim.tv_nsec;
	uint64_t inode = st->st_ino, hash = hash_u64(inode, table->seed),
		 size = (uint64_t)st->st_size;
	struct cursor_row *row = hashtable_find(&table->rows, hash, &inode);
	struct cursor_file cursor;
	bool counts = true;

	if (!row || row->walk != table->walk) { /* else it is one more link to the same file */
		int r = cursor_count_owner(&table->owners, st->st_uid, &counts);

		if (r < 0 || !counts)
			return r;
	}
	if (row && row->changed_ns == changed_ns && row->size == size) {
		row->walk = table->walk;
		return 0;
	}
	if (!row) {
		if (table->rows.n >= TABLE_MOST)
			return 0;
		int r = hashtable_add(&table->rows, hash, "the table of cursors", &row);

		if (r < 0)
			return r;
	}
	uint64_t modified_ns =
		(uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
	*row = (struct cursor_row){.hash = row->hash,
		.walk = table->walk,
		.inode = inode,
		.changed_ns = changed_ns,
		.size = size,
		.least = UINT64_MAX,
		.began_ns = cursor_table_began(table, modified_ns)};
	table->reads++;
	int r = cursor_load(table->home, name, &cursor);
	if (r == -ENOMEM) {
		row->size = UINT64_MAX; /* to be read again */
		return r;
	}
	if (r != FOUND) {
		err_ignore(r, "a file that is no cursor must not hide the others");
		return (int64_t)size;
	}
	memcpy(row->uuid, cursor.uuid, sizeof(row->uuid));
	row->written_ns = cursor.written_ns;
	row->began_ns = cursor_table_began(table, cursor.written_ns);
	for (size_t i = 0; i < cursor.n; i++)
		if (cursor.positions[i].seq < row->least)
			row->least = cursor.positions[i].seq;
	cursor_release(&cursor);
	return (int64_t)size;
}

/* Forgets the files missing in the ending walk. */
static void cursor_table_end_walk(struct cursor_table *table)
{
	struct cursor_row *row;

	for (size_t place = 0; (row = hashtable_next(&table->rows, &place));)
		if (row->walk != table->walk) {
			hashtable_remove(&table->rows, row);
			place--;
		}
	(void)closedir(TAKE(table->directory));
	table->complete = true;
}

int cursor_table_walk(struct cursor_table *table, uint64_t expiry_ns, unsigned *removed)
{
	CHECK_OBJ(table, TABLE_MAGIC);
	int64_t factor = table->complete ? 1 : FIRST_FACTOR;
	int64_t entries = SLICE_ENTRIES * factor, bytes = SLICE_BYTES * factor;

	if (!table->directory) {
		int r = cursor_open_directory(table->home, &table->directory);

		if (r < 0)
			return r;
		table->walk++;
		hashtable_clear(&table->owners);
	}
	while (entries-- > 0 && bytes > 0) {
		struct dirent *entry = readdir(table->directory);
		struct stat st;

		if (!entry) {
			cursor_table_end_walk(table);
			break;
		}
		int fd = dirfd(table->directory);
		if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		int64_t read =
			entry->d_name[0] == '.' ? 0 : cursor_table_take(table, entry->d_name, &st);
		if (read < 0)
			return (int)read;
		bytes -= read;
		*removed += cursor_table_sweep(table, entry->d_name, &st, expiry_ns);
	}
	return table->complete ? FOUND : AGAIN;
}

uint64_t cursor_table_least(
	const struct cursor_table *table, const uint8_t uuid[16], uint64_t expiry_ns)
{
	const struct cursor_row *row;
	uint64_t least = UINT64_MAX;

	CHECK_OBJ(table, TABLE_MAGIC);
	for (size_t place = 0; (row = hashtable_next(&table->rows, &place));)
		if (row->least < least && memcmp(row->uuid, uuid, 16) == 0 &&
			(cursor_row_is_young(row, expiry_ns) ||
				!cursor_is_expired(row->written_ns, expiry_ns)))
			least = row->least;
	return least;
}

uint64_t cursor_table_reads(const struct cursor_table *table)
{
	CHECK_OBJ(table, TABLE_MAGIC);
	return table->reads;
}
