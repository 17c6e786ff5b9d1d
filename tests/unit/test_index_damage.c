/* SPDX-License-Identifier: Apache-2.0 */
/* Changed bytes in the index's file: a read yields the written value, or an error. */
#include <sys/mman.h>

#include "common/bytes.h"
#include "store/index/index_internal.h"
#include "tests/unit/index_rig.h"

TestSuite(index_damage, .init = setup, .fini = teardown);

#define NAMES 150
#define PAIRS 60  /* values of two objects */
#define EVERY 300 /* objects; every second one has this value */

struct file {
	uint8_t *bytes;
	size_t size;
};

/* Maps the file of the fixture's index. */
static struct file file_open(void)
{
	struct stat st;
	AUTO_FD int fd = open(scratch_path("index/gen-1/data.mdb"), O_RDWR | O_CLOEXEC);

	cr_assert(fd >= 0 && fstat(fd, &st) == 0);
	struct file file = {.size = (size_t)st.st_size};
	file.bytes = mmap(NULL, file.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(file.bytes, MAP_FAILED);
	return file;
}

/* Returns where TEXT is in the file after AT; NULL: nowhere. */
static uint8_t *file_next(const struct file *file, const uint8_t *at, struct bytes text)
{
	at = at ? at + 1 : file->bytes;
	return memmem(at, (size_t)(file->bytes + file->size - at), text.data, text.size);
}

/* Long names fill several pages. */
static struct bytes name_of(char text[128], int i)
{
	return BYTES(text, (size_t)snprintf(text, 128, "web-%d/%03d-%080d", i % 3, i, 0));
}

static void fill(void)
{
	char text[128];

	cr_assert_eq(index_begin(rig.index), 0);
	for (int i = 0; i < NAMES; i++)
		put(name_of(text, i).data, (uint64_t)i + 1, NULL, 0, NULL, 0);
	cr_assert_eq(index_set_taken(rig.index, NAMES), 0);
	cr_assert_eq(index_commit(rig.index), 0);
}

/* Looks up all names, and lists those of a namespace. Returns how many lookups and lists failed. */
static unsigned look(void)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	struct index_entry entry;
	struct bytes key;
	unsigned failed = 0;
	char text[128];
	int n = 0, r;

	cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
	for (int i = 0; i < NAMES; i++) {
		r = index_get(rig.index, txn, FEED, name_of(text, i), &entry);
		cr_assert(r == ERR_CORRUPT || (r == FOUND && entry.seq == (uint64_t)i + 1),
			"%s: %d", text, r);
		failed += r < 0;
	}
	cr_assert_eq(index_names(rig.index, txn, FEED, BYTES_LIT("web-1/"), BYTES_NONE, &walk), 0);
	while ((r = index_walk_next(walk, &key, &entry)) == FOUND)
		n++;
	cr_assert(r == ERR_CORRUPT || n == NAMES / 3, "%d names", n);
	return failed + (r < 0);
}

Test(index_damage, a_changed_key_hides_no_name)
{
	unsigned failed = 0, changed = 0;

	fill();
	cr_assert_eq(look(), 0);
	struct file file = file_open();
	for (uint8_t *at = NULL; (at = file_next(&file, at, BYTES_LIT("web-")));)
		for (int digit = 4; digit <= 7; digit += 3) {
			uint8_t before = at[digit];

			at[digit] = before == '0' ? '9' : '0';
			failed += look();
			at[digit] = before;
			changed++;
		}
	cr_assert_geq(changed, 4 * NAMES);
	cr_assert_gt(failed, NAMES);
	cr_assert_eq(look(), 0);
	(void)munmap(file.bytes, file.size);
}

/* `taken` names the index's state. */
Test(index_damage, a_changed_byte_of_the_state_is_an_error)
{
	struct index_meta meta;
	unsigned failed = 0;
	struct txn *txn;

	fill();
	struct file file = file_open();
	cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
	for (uint8_t *at = NULL; (at = file_next(&file, at, BYTES(rig.uuid, 16)));)
		for (size_t i = 0; i < STATE_BYTES + ROW_CRC; i++) {
			at[i] ^= 4;
			int r = index_meta(rig.index, txn, &meta);
			cr_assert(
				r == ERR_CORRUPT || (r == 0 && meta.taken == NAMES), "byte %zu", i);
			failed += r < 0;
			at[i] ^= 4;
		}
	cr_assert_eq(failed, STATE_BYTES + ROW_CRC, "the one row that is read");
	txn_abort(&txn);
	(void)munmap(file.bytes, file.size);
}

/* Counts the whole values with PREFIX by their objects. Returns: 0; errors. */
static int count_values(struct txn *txn, uint32_t d, struct bytes prefix, uint64_t *ret_n)
{
	CLEANUP(index_rows_release)
	struct index_rows rows = {.txn = txn, .definition = d, .prefix = prefix};
	struct index_term_row row;
	int r;

	while ((r = index_next_value(&rows, &row)) == FOUND)
		*ret_n += row.whole ? row.count : 0;
	return r == END ? 0 : r;
}

Test(index_damage, a_changed_key_hides_no_value)
{
	unsigned failed = 0;
	char value[32];

	begin();
	uint32_t d = define("node");
	for (int i = 0; i < NAMES; i++) {
		(void)snprintf(value, sizeof(value), "of-%03d", i);
		struct index_term one = term(d, value);
		put(value + 3, (uint64_t)i + 1, NULL, 0, &one, 1);
	}
	cr_assert_eq(index_set_taken(rig.index, NAMES), 0);
	commit();
	struct file file = file_open();
	for (uint8_t *at = NULL; (at = file_next(&file, at, BYTES_LIT("of-")));)
		for (int byte = -1; byte <= 3; byte++) { /* -1: of the definition's id */
			CLEANUP(txn_abort) struct txn *txn = NULL;
			uint8_t before = at[byte];
			uint64_t n = 0;

			at[byte] ^= 2;
			cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
			int r = count_values(txn, d, BYTES_NONE, &n);
			cr_assert(r == ERR_CORRUPT || (r == 0 && n == NAMES),
				"byte %d: %d, %d values", byte, r, (int)n);
			failed += r < 0;
			at[byte] = before;
		}
	cr_assert_gt(failed, 2 * NAMES);
	(void)munmap(file.bytes, file.size);
}

/* LMDB ends a search in the last page at once if the last key there is less than the wanted one. */
Test(index_damage, a_last_key_that_became_less_hides_no_value)
{
	static const char *const values[] = {"last-a", "last-b", "last-c"};
	unsigned failed = 0;

	begin();
	uint32_t node = define("node"), d = define("zone");
	for (uint64_t i = 0; i < ARRAY_SIZE(values); i++) {
		struct index_term both[] = {term(node, "n"), term(d, values[i])};
		put(values[i], i + 1, NULL, 0, both, 2);
	}
	cr_assert_eq(index_set_taken(rig.index, ARRAY_SIZE(values)), 0);
	commit();
	struct file file = file_open();
	for (uint8_t *at = NULL; (at = file_next(&file, at, BYTES_LIT("last-c")));) {
		CLEANUP(txn_abort) struct txn *txn = NULL;
		uint8_t before = at[-1];
		uint64_t n = 0;

		at[-1] = 0; /* of the definition's id */
		cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
		int r = count_values(txn, d, BYTES_NONE, &n);
		cr_assert(r == ERR_CORRUPT || (r == 0 && n == ARRAY_SIZE(values)), "%d, %d values",
			r, (int)n);
		failed += r < 0;
		at[-1] = before;
	}
	cr_assert_gt(failed, 0);
	(void)munmap(file.bytes, file.size);
}

/* With such flags LMDB takes a leaf for a branch, and the sizes of its rows' values for numbers
 * of pages. */
Test(index_damage, changed_flags_of_a_page_hide_nothing)
{
	unsigned failed = 0, changed = 0;
	char value[64];

	begin();
	uint32_t d = define("node");
	for (int i = 0; i < NAMES; i++) {
		(void)snprintf(value, sizeof(value), "%03d-%040d", i, 0);
		struct index_term one = term(d, value);
		put(value, (uint64_t)i + 1, NULL, 0, &one, 1);
	}
	cr_assert_eq(index_set_taken(rig.index, NAMES), 0);
	commit();
	struct file file = file_open();
	size_t page = env_page_size(index_env(rig.index)), last = file.size / page;
	for (uint64_t n = 3; n < last;
		n++) { /* the table of databases is read when the file is opened */
		uint8_t *flags = file.bytes + n * page + 10, before = *flags;

		if (le64_get(file.bytes + n * page) != n || !(before & 3))
			continue;
		for (unsigned how = 0; how < 10; how++, changed++) {
			*flags = how < 8 ? before ^ (uint8_t)(1u << how) : how == 8 ? 0 : 0xff;
			for (int i = 0; i < NAMES; i += 10) {
				CLEANUP(txn_abort) struct txn *txn = NULL;
				struct index_entry entry;
				uint64_t count = 0;

				(void)snprintf(value, sizeof(value), "%03d-%040d", i, 0);
				cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
				int r = index_get(rig.index, txn, FEED, bytes_str(value), &entry);
				cr_assert(r == ERR_CORRUPT ||
						  (r == FOUND && entry.seq == (uint64_t)i + 1),
					"page %d, %s: %d", (int)n, value, r);
				failed += r < 0;
				r = index_has(rig.index, txn, d, bytes_str(value), (uint64_t)i + 1);
				cr_assert(r == ERR_CORRUPT || r == FOUND, "page %d, %s: %d", (int)n,
					value, r);
				failed += r < 0;
				r = count_values(txn, d, BYTES(value, 2), &count);
				cr_assert(r == ERR_CORRUPT || (r == 0 && count == 10),
					"page %d, %s: %d, %d values", (int)n, value, r, (int)count);
				failed += r < 0;
			}
		}
		*flags = before;
	}
	cr_assert(changed >= 100 && failed > 100, "%u %u", changed, failed);
	(void)munmap(file.bytes, file.size);
}

/* Looks up whether objects have a value. Returns how many lookups fail. */
static unsigned look_up(uint32_t d, size_t at)
{
	unsigned failed = 0;
	char value[32];

	for (unsigned i = 0; i < PAIRS + EVERY / 10; i++) {
		CLEANUP(txn_abort) struct txn *txn = NULL;
		unsigned object = i < PAIRS ? i + i % 2 * PAIRS : (i - PAIRS) * 10 + i % 2;
		bool has = i < PAIRS || object % 2 == 0;

		(void)snprintf(value, sizeof(value), i < PAIRS ? "of-%03u" : "every", i);
		cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
		int r = index_has(rig.index, txn, d, bytes_str(value), object + 1);
		cr_assert(r == ERR_CORRUPT || r == (has ? FOUND : NOT_FOUND),
			"byte %zu: '%s' and object %u: %d", at, value, object + 1, r);
		failed += r < 0;
	}
	return failed;
}

/* `every` has two blocks, and the others have one of the same size each: an offset may come to
 * lead to another one. */
Test(index_damage, a_changed_byte_of_a_page_hides_no_posting)
{
	unsigned failed = 0, pages = 0;
	char value[32], name[32];

	begin();
	uint32_t d = define("node");
	for (unsigned i = 0; i < EVERY; i++) {
		(void)snprintf(value, sizeof(value), "of-%03u", i % PAIRS);
		(void)snprintf(name, sizeof(name), "%05u", i);
		struct index_term both[] = {term(d, value), term(d, "every")};
		bool in_pair = i < 2 * PAIRS;
		put(name, (uint64_t)i + 1, NULL, 0, both + !in_pair, (size_t)in_pair + !(i % 2));
	}
	cr_assert_eq(index_set_taken(rig.index, EVERY), 0);
	commit();
	cr_assert_eq(look_up(d, 0), 0);
	struct file file = file_open();
	size_t size = env_page_size(index_env(rig.index));
	for (uint64_t n = 3; n < file.size / size; n++) {
		uint8_t *page = file.bytes + n * size;
		size_t lower = le16_get(page + 12);

		if (le64_get(page) != n || le16_get(page + 10) != 2 || lower < 18 ||
			le16_get(page + le16_get(page + 16) + 6) != POSTING_KEY)
			continue;
		pages++;
		for (size_t at = 12; at < lower; at++) {
			uint8_t before = page[at];

			for (unsigned how = 0; how < 10; how++) {
				page[at] = how < 8    ? before ^ (uint8_t)(1u << how)
					   : how == 8 ? 0
						      : 0xff;
				failed += look_up(d, at);
			}
			page[at] = before;
		}
		for (size_t row = 16; row < lower; row += 2)
			for (size_t byte = 0; byte < POSTING_KEY; byte++) {
				uint8_t *at = page + le16_get(page + row) + 8 + byte;

				*at ^= 0x10;
				failed += look_up(d, (size_t)(at - page));
				*at ^= 0x10;
			}
	}
	cr_assert(pages >= 1 && failed > 1000, "%u %u", pages, failed);
	(void)munmap(file.bytes, file.size);
}

Test(index_damage, a_changed_key_hides_no_feed)
{
	uint8_t key[5] = "f";
	struct index_feed feed;
	unsigned failed = 0;

	fill();
	begin();
	(void)define("node");
	cr_assert_eq(index_set_taken(rig.index, NAMES), 0);
	commit();
	be32_put(key + 1, FEED);
	struct file file = file_open();
	for (uint8_t *at = NULL; (at = file_next(&file, at, BYTES(key, sizeof(key))));)
		for (int byte = -2; byte < 5; byte++) { /* -2: the key's size */
			CLEANUP(txn_abort) struct txn *txn = NULL;
			uint8_t before = at[byte];
			uint64_t n = 0;

			at[byte] ^= byte == -2 ? 5 : 1;
			cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
			int r = index_feed(rig.index, txn, FEED, &feed);
			cr_assert(r == ERR_CORRUPT || (r == FOUND && feed.objects == NAMES),
				"byte %d: %d", byte, r);
			failed += r < 0;
			CLEANUP(index_rows_release) struct index_rows rows = {txn};
			while ((r = index_next_feed(&rows, &feed)) == FOUND)
				n += feed.objects;
			cr_assert(r == ERR_CORRUPT || (r == END && n == NAMES),
				"byte %d: %d, %d objects", byte, r, (int)n);
			failed += r < 0;
			at[byte] = before;
		}
	cr_assert_geq(failed, 10);
	(void)munmap(file.bytes, file.size);
}
