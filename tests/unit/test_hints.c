/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/hints.h"

#include "common/bytes.h"
#include "tests/unit/snapshot_rig.h"

#define SLOTS 8192u /* of the smallest table */

static const struct hints_of of = {.journal = "0123456789abcde", .index_generation = 3};

static int fd; /* of the directory with the table */
static struct hints *table;

static void open_folder(void)
{
	fd = open(scratch(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
}

static void close_folder(void)
{
	hints_close(&table);
	(void)close(fd);
}

TestSuite(hints, .init = open_folder, .fini = close_folder);
TestSuite(hints_of_store, .init = set_up, .fini = tear_down);

static struct hints *make(uint64_t objects)
{
	struct hints *hints;

	OK(hints_create(fd, &of, objects, 0, 0600, &hints));
	return hints;
}

static struct index_entry at(uint64_t object, uint64_t seq, uint64_t page)
{
	return (struct index_entry){.object = object,
		.seq = seq,
		.place = page ? page * 4096 + 16 : 0,
		.place_size = 100,
		.generation = page ? 1 : 0};
}

static void put(struct hints *hints, const char *key, struct index_entry entry)
{
	hints_put(hints, 7, bytes_str(key), &entry);
}

static struct hint by_name(struct hints *hints, const char *key)
{
	return hints_name(hints, 7, bytes_str(key));
}

static bool is_nothing(struct hint hint)
{
	return !hint.place && !hint.seq;
}

Test(hints, lead_from_name_and_object_to_place_or_seq)
{
	table = make(10);
	put(table, "web/a", at(1, 11, 5));
	put(table, "web/b", at(2, 12, 0));
	cr_assert_eq(by_name(table, "web/a").place, 5 * 4096 + 16);
	cr_assert_eq(by_name(table, "web/a").generation, 1);
	cr_assert_eq(by_name(table, "web/a").seq, 0);
	cr_assert_eq(hints_object(table, 1).place, 5 * 4096 + 16);
	cr_assert_eq(by_name(table, "web/b").seq, 12);
	cr_assert_eq(hints_object(table, 2).seq, 12);
	cr_assert(is_nothing(by_name(table, "web/c")));
	cr_assert(is_nothing(hints_object(table, 3)));
	cr_assert(is_nothing(hints_name(table, 8, bytes_str("web/a"))), "of another feed");
	put(table, "web/a", at(1, 13, 0));
	cr_assert_eq(by_name(table, "web/a").seq, 13);
	cr_assert_eq(hints_object(table, 1).seq, 13);
	hints_remove(table, 7, bytes_str("web/a"), 1);
	cr_assert(is_nothing(by_name(table, "web/a")));
	cr_assert(is_nothing(hints_object(table, 1)));
}

Test(hints, what_does_not_fit_a_slot_is_left_out_and_takes_the_old_one_with_it)
{
	table = make(10);
	put(table, "web/a", at(1, 11, 5));
	put(table, "web/a", at(1, UINT64_C(1) << 30, 0));
	cr_assert(is_nothing(by_name(table, "web/a")));
	cr_assert(is_nothing(hints_object(table, 1)));
	put(table, "web/a", at(1, 20, UINT64_C(1) << 30));
	cr_assert_eq(by_name(table, "web/a").seq, 20, "a place too far away: its seq");
	struct index_entry entry = at(1, 21, 6);

	entry.generation = 2;
	put(table, "web/a", entry);
	cr_assert_eq(by_name(table, "web/a").seq, 21, "a place in another journal: its seq");
	entry.object = UINT64_C(1) << 35;
	put(table, "web/b", entry);
	cr_assert(is_nothing(hints_object(table, UINT64_C(1) << 35)));
	cr_assert(is_nothing(hints_object(table, 0)));
	hints_remove(table, 7, bytes_str("web/b"), UINT64_C(1) << 35);
}

/* A seq has 30 bits in a slot: they count from a base moving along with the log. */
Test(hints, lead_to_seqs_of_any_size)
{
	uint64_t taken = UINT64_C(3) << 40;
	CLEANUP(hints_close) struct hints *other = NULL;

	OK(hints_create(fd, &of, 10, taken, 0600, &table));
	put(table, "web/a", at(1, taken - 5, 0));
	put(table, "web/b", at(2, taken + (UINT64_C(1) << 29), 0));
	put(table, "web/c", at(3, 11, 0));
	cr_assert_eq(by_name(table, "web/a").seq, taken - 5);
	cr_assert_eq(hints_object(table, 2).seq, taken + (UINT64_C(1) << 29));
	cr_assert(is_nothing(by_name(table, "web/c")), "too long ago");
	cr_assert_not(hints_is_worn(table, 10, taken));
	cr_assert(hints_is_worn(table, 10, taken + (UINT64_C(1) << 29)));
	OK(hints_publish(table, fd));
	OK(hints_open(fd, &of, false, &other));
	cr_assert_eq(by_name(other, "web/a").seq, taken - 5);
}

Test(hints_of_store, are_made_again_when_the_seqs_leave_their_range)
{
	struct hints *hints;

	for (uint64_t seq = UINT64_C(1) << 29; seq < UINT64_C(1) << 42; seq *= 2) {
		struct index_change change = {
			.feed = s.feed, .key = BYTES_LIT("web/a"), .to = {.seq = seq}};

		OK(index_begin(s.index));
		OK(index_put(s.index, &change));
		OK(index_set_taken(s.index, seq));
		OK(index_commit(s.index));
		OK(index_open_hints(s.index, journal_uuid(s.journal), &hints));
		cr_assert_eq(hints_name(hints, s.feed, BYTES_LIT("web/a")).seq, seq);
		hints_close(&hints);
	}
}

/* Ten times the table's room: most are left out, the rest is right. */
Test(hints, an_object_is_never_taken_for_another_in_a_crowded_table)
{
	uint64_t found = 0, n = 10 * SLOTS;

	table = make(10);
	for (uint64_t id = 1; id <= n; id++) {
		char key[32];

		(void)snprintf(key, sizeof(key), "web/%llu", (unsigned long long)id * 101);
		put(table, key, at(id * 101, id, 0));
	}
	for (uint64_t id = 0; id <= n * 101; id += 1 + id % 13) {
		uint64_t seq = hints_object(table, id).seq;

		cr_assert(!seq || seq * 101 == id, "object %llu", (unsigned long long)id);
		found += seq != 0;
	}
	cr_assert_gt(found, 100);
	cr_assert_leq(found, SLOTS);
	cr_assert(hints_is_worn(table, n, 0));
}

Test(hints, nearly_all_find_room_in_a_table_made_for_them)
{
	uint64_t n = 20000, names = 0, objects = 0;
	char key[64];

	table = make(n);
	cr_assert_not(hints_is_worn(table, n, 0));
	for (uint64_t id = 1; id <= n; id++) {
		(void)snprintf(
			key, sizeof(key), "team-%05u/web-%06u", (unsigned)id % 500, (unsigned)id);
		put(table, key, at(id, id, 0));
	}
	for (uint64_t id = 1; id <= n; id++) {
		(void)snprintf(
			key, sizeof(key), "team-%05u/web-%06u", (unsigned)id % 500, (unsigned)id);
		names += by_name(table, key).seq == id;
		objects += hints_object(table, id).seq == id;
	}
	cr_assert_gt(names, n / 1000 * 995);
	cr_assert_gt(objects, n / 1000 * 995);
}

Test(hints, a_file_of_something_else_is_none)
{
	CLEANUP(hints_close) struct hints *other = NULL;
	struct hints_of wanted = of;

	cr_assert_eq(hints_open(fd, &of, false, &other), NOT_FOUND, "no file");
	table = make(10);
	put(table, "web/a", at(1, 11, 5));
	hints_cover(table, 11, 4);
	cr_assert_eq(hints_open(fd, &of, false, &other), NOT_FOUND, "not published");
	OK(hints_publish(table, fd));
	cr_assert_eq(hints_open(fd, &of, false, &other), FOUND);
	cr_assert_eq(hints_taken(other), 11);
	cr_assert_eq(hints_txn(other), 4);
	cr_assert_eq(by_name(other, "web/a").place, 5 * 4096 + 16);
	put(table, "web/a", at(1, 12, 6));
	cr_assert_eq(by_name(other, "web/a").place, 6 * 4096 + 16, "shared");
	hints_close(&other);
	wanted.index_generation++;
	cr_assert_eq(hints_open(fd, &wanted, false, &other), NOT_FOUND, "another generation");
	wanted = of;
	wanted.journal[0]++;
	cr_assert_eq(hints_open(fd, &wanted, false, &other), NOT_FOUND, "another journal");
	cr_assert_eq(setenv("KINF_BOOT_ID", "0123456789abcdef0123456789abcdef", 1), 0);
	cr_assert_eq(hints_open(fd, &of, false, &other), NOT_FOUND, "another boot");
	cr_assert_eq(unsetenv("KINF_BOOT_ID"), 0);
	cr_assert_eq(hints_open(fd, &of, true, &other), FOUND);
}

/* The file cut to any length, and each byte of its header changed. */
Test(hints, a_damaged_header_is_no_table)
{
	struct hints *other = NULL;
	struct stat st;

	table = make(10);
	OK(hints_publish(table, fd));
	hints_close(&table);
	AUTO_FD int file = openat(fd, HINTS_FILE, O_RDWR);

	cr_assert(file >= 0 && fstat(file, &st) == 0);
	for (off_t i = 0; i < 76; i++) {
		uint8_t byte, changed;

		cr_assert_eq(pread(file, &byte, 1, i), 1);
		changed = byte ^ 1;
		cr_assert_eq(pwrite(file, &changed, 1, i), 1);
		cr_assert_eq(hints_open(fd, &of, false, &other), NOT_FOUND, "byte %d", (int)i);
		cr_assert_eq(pwrite(file, &byte, 1, i), 1);
	}
	cr_assert_eq(hints_open(fd, &of, false, &other), FOUND);
	hints_close(&other);
	for (off_t size = st.st_size - 1; size > 0; size /= 3) {
		cr_assert_eq(ftruncate(file, size), 0);
		cr_assert_eq(hints_open(fd, &of, false, &other), NOT_FOUND, "%d bytes", (int)size);
	}
}

/* ---- with an index and a journal ---------------------------------------- */

static uint64_t seq_of(struct snapshot *reader, const char *key)
{
	struct record record;
	int r = snapshot_get(reader, s.feed, bytes_str(key), &record);

	cr_assert(r == FOUND || r == NOT_FOUND, "%s", err_text(r));
	return r == FOUND ? record.seq : 0;
}

static int hints_file(int flags)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/index/gen-%u/%s", s.path,
		(unsigned)index_generation(s.index), HINTS_FILE);
	return open(path, flags | O_CLOEXEC);
}

/* A slot with its check (FORMAT.md, Hints). */
static uint64_t checked(uint64_t slot)
{
	uint8_t fold = 0x5a;

	slot &= ~UINT64_C(0xff);
	for (int shift = 8; shift < 64; shift += 8)
		fold ^= (uint8_t)(slot >> shift);
	return slot | fold;
}

/* Slots are mixed up: every one leads to the record of another object, or to none. */
Test(hints_of_store, that_lead_astray_change_no_answer)
{
	enum { OBJECTS = 50 };
	uint64_t seq[OBJECTS], slots[2 * SLOTS], random = 1;
	char key[OBJECTS][16];

	for (int i = 0; i < OBJECTS; i++) {
		(void)snprintf(key[i], sizeof(key[i]), "web/%d", i);
		seq[i] = small_store_put(&s, key[i], "n1", i % 2 ? 5000 : 10);
	}
	small_store_take(&s);
	open_snapshot();
	AUTO_FD int file = hints_file(O_RDWR);
	cr_assert_geq(file, 0, "the writer has made them");
	cr_assert_eq(pread(file, slots, sizeof(slots), 4096), (ssize_t)sizeof(slots));
	uint64_t full[4 * OBJECTS];
	size_t n = 0;

	for (size_t i = 0; i < 2 * SLOTS; i++)
		if (slots[i])
			full[n++] = slots[i] & ((UINT64_C(1) << 39) - 256);
	cr_assert_eq(n, 2 * OBJECTS, "one for each name, one for each object");
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < 2 * SLOTS; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			if (slots[i])
				slots[i] = checked(
					(slots[i] >> 39 << 39) |
					(round % 4 ? full[(random >> 33) % n] : random >> 25));
		}
		cr_assert_eq(pwrite(file, slots, sizeof(slots), 4096), (ssize_t)sizeof(slots));
		for (int i = 0; i < OBJECTS; i++)
			cr_assert_eq(seq_of(snapshot, key[i]), seq[i]);
		cr_assert_eq(seq_of(snapshot, "web/none"), 0);
	}
}

/* A slot of an object is trusted without comparing a key, and its seq may be an older version's. */
Test(hints, a_changed_byte_of_a_slot_makes_it_none)
{
	uint64_t slots[2 * SLOTS];

	table = make(10);
	put(table, "web/a", at(1, 11, 0));
	put(table, "web/b", at(2, 10, 5));
	OK(hints_publish(table, fd));
	AUTO_FD int file = openat(fd, HINTS_FILE, O_RDWR);
	cr_assert_eq(pread(file, slots, sizeof(slots), 4096), (ssize_t)sizeof(slots));
	for (size_t i = 0; i < sizeof(slots); i++)
		for (unsigned bit = 0; slots[i / 8] && bit < 10; bit++) {
			uint8_t byte = ((const uint8_t *)slots)[i];
			uint8_t changed = bit < 8    ? byte ^ (uint8_t)(1u << bit)
					  : bit == 8 ? 0
						     : 0xff;

			cr_assert_eq(pwrite(file, &changed, 1, (off_t)(4096 + i)), 1);
			for (uint64_t object = 0; object < 4; object++) {
				struct hint hint = hints_object(table, object);

				cr_assert(is_nothing(hint) || (object == 1 && hint.seq == 11) ||
						  (object == 2 && hint.place == 5 * 4096 + 16),
					"object %d, byte %zu", (int)object, i);
			}
			cr_assert(is_nothing(by_name(table, "web/a")) ||
				  by_name(table, "web/a").seq == 11);
			cr_assert_eq(pwrite(file, &byte, 1, (off_t)(4096 + i)), 1);
		}
	cr_assert_eq(hints_object(table, 1).seq, 11);
}

/* Hints run ahead of the index's commits; an open list's records stay invisible. */
Test(hints_of_store, ahead_of_a_snapshot_give_it_its_own_state)
{
	struct snapshot *old, *new;

	uint64_t a = small_store_put(&s, "web/a", "n1", 5000);
	uint64_t b = small_store_put(&s, "web/b", "n1", 5000);

	small_store_take(&s);
	OK(store_open(s.path, &checking, &store));
	OK(snapshot_open(store, &old));
	OK(snapshot_open(store, &new));
	(void)small_store_list_begin(&s);
	uint64_t a2 = small_store_put(&s, "web/a", "n2", 5000);

	(void)small_store_delete(&s, "web/b");
	small_store_take(&s);
	OK(snapshot_renew(old)); /* its `taken` is above a2, its view of the feed is not */
	(void)small_store_list_end(&s);
	small_store_take(&s);
	cr_assert_eq(seq_of(old, "web/a"), a);
	cr_assert_eq(seq_of(old, "web/b"), b);
	OK(snapshot_renew(new));
	cr_assert_eq(seq_of(new, "web/a"), a2);
	cr_assert_eq(seq_of(new, "web/b"), 0);
	snapshot_close(&new);
	snapshot_close(&old);
}

/* The writer dies with TAKEN and TXN in the table, more or less than committed. Was it taken over
 * as it is? */
static bool is_taken_over(int taken, int txn)
{
	struct index_options options = {.map_bytes = 64u << 20};
	struct hints_of mine = {.index_generation = index_generation(s.index)};
	struct hints *hints;
	char path[4096];

	memcpy(mine.journal, journal_uuid(s.journal), sizeof(mine.journal));
	(void)snprintf(path, sizeof(path), "%s/index/gen-%u", s.path, mine.index_generation);
	AUTO_FD int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cr_assert_eq(hints_open(directory, &mine, true, &hints), FOUND);
	index_close(&s.index);
	hints_cover(hints, hints_taken(hints) + (uint64_t)taken, hints_txn(hints) + (uint64_t)txn);
	hints_remove(hints, s.feed, BYTES_LIT("web/a"), 1);
	hints_close(&hints);
	OK(index_open_write(s.home, &options, &s.index));
	cr_assert_eq(hints_open(directory, &mine, false, &hints), FOUND);
	bool taken_over = is_nothing(hints_name(hints, s.feed, BYTES_LIT("web/a")));

	hints_close(&hints);
	return taken_over;
}

Test(hints_of_store, that_missed_a_transaction_are_made_anew)
{
	static const struct {
		int taken, txn;
		bool good;
	} cases[] = {
		{0, 0, true}, /* died after the commit */
		{3, 1, true}, /* died before it */
		{0, -1, false},
		{0, 2, false},
		{-1, 0, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)small_store_put(&s, "web/a", "n1", 5000);
		small_store_take(&s);
		cr_assert_eq(
			is_taken_over(cases[i].taken, cases[i].txn), cases[i].good, "case %zu", i);
	}
}

/* A grown table is another file: a reader goes over to it, and loses nothing meanwhile. */
Test(hints_of_store, grow_with_the_index)
{
	enum { OBJECTS = 7000 };
	struct stat before, after;
	char key[32];

	uint64_t first = small_store_put(&s, "web/first", "n1", 5000);

	small_store_take(&s);
	open_snapshot();
	int file = hints_file(O_RDONLY);

	cr_assert(file >= 0 && fstat(file, &before) == 0);
	(void)close(file);
	OK(index_begin(s.index));
	for (int i = 0; i < OBJECTS; i++) {
		(void)snprintf(key, sizeof(key), "web/%d", i);
		struct index_change change = {
			.feed = s.feed, .key = bytes_str(key), .to = {.seq = first}};

		OK(index_put(s.index, &change));
	}
	uint64_t last = small_store_put(&s, "web/last", "n1", 5000);

	OK(index_commit(s.index));
	file = hints_file(O_RDONLY);
	cr_assert(file >= 0 && fstat(file, &after) == 0);
	(void)close(file);
	cr_assert_gt(after.st_size, before.st_size);
	cr_assert_eq(seq_of(snapshot, "web/first"), first);
	small_store_take(&s);
	cr_assert_eq(seq_of(snapshot, "web/last"), 0);
	OK(snapshot_renew(snapshot));
	cr_assert_eq(seq_of(snapshot, "web/first"), first);
	cr_assert_eq(seq_of(snapshot, "web/last"), last);
}
