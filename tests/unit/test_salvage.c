/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a journal with broken trees: pages of any content. Whole pages in the wrong place
 * are in scenario/test_salvage.py. */
#include "common/bytes.h"
#include "store/journal/journal_record.h"
#include "store/journal/salvage.h"
#include "tests/unit/journal_rig.h"
#include "tests/unit/page_rig.h"

#define DATA    "store/journal/gen-1/data.mdb"
#define OBJECTS 300

#define BODY_MAX (2 * 32768)

/* The body of an object: every third one needs pages of its own. */
static struct bytes body_of(unsigned i, uint8_t room[BODY_MAX])
{
	size_t page = database_page(),
	       size = i % 3 ? page / 40 + i % 50 : page * 5 / 4 + i * 13 % page / 2;

	memset(room, (int)(i & 0x7f), size);
	return BYTES(room, size);
}

/* Makes a journal of OBJECTS objects, a transaction each, in the store. */
static void make(void)
{
	uint8_t room[BODY_MAX];
	uint64_t seq = 0;

	set_up();
	for (unsigned i = 0; i < OBJECTS; i++) {
		char key[32];

		(void)snprintf(key, sizeof(key), "web/%u", i);
		struct record record = {.feed = feed,
			.type = RECORD_ADDED,
			.key = bytes_str(key),
			.uid = BYTES_LIT("u"),
			.rv = BYTES_LIT("7"),
			.body = body_of(i, room)};
		cr_assert_eq(journal_begin(j), 0);
		cr_assert_eq(journal_append(j, &record, &seq), 0);
		cr_assert_eq(journal_commit(j), 0);
	}
	tear_down();
}

static struct salvage *open_salvage(void)
{
	struct salvage *salvage = NULL;

	open_home();
	int r = salvage_open(home, &salvage);
	home_close(&home);

	cr_assert(r == FOUND || r == NOT_FOUND, "%s", err_text(r));
	return salvage;
}

/* The whole file, changed by the caller. */
struct file {
	uint8_t *bytes;
	size_t size;
};

static struct file read_file(void)
{
	struct stat st;

	AUTO_FD int fd = open(scratch_path(DATA), O_RDONLY | O_CLOEXEC);

	cr_assert(fd >= 0 && fstat(fd, &st) == 0);
	struct file file = {malloc((size_t)st.st_size), (size_t)st.st_size};
	cr_assert_eq(read(fd, file.bytes, file.size), (ssize_t)file.size);
	return file;
}

static void write_file(const struct file *file)
{
	AUTO_FD int fd = open(scratch_path(DATA), O_WRONLY | O_TRUNC | O_CLOEXEC);

	cr_assert_eq(write(fd, file->bytes, file->size), (ssize_t)file->size);
}

struct seen {
	uint64_t before;
	size_t n;
};

static int check_record(void *arg, const struct record *record)
{
	struct seen *seen = arg;
	uint8_t room[BODY_MAX];

	cr_assert_gt(record->seq, seen->before);
	seen->before = record->seq;
	seen->n++;
	if (!record->key.size)
		return 0;
	unsigned i = (unsigned)strtoul((const char *)record->key.data + 4, NULL, 10);
	cr_assert(bytes_equal(record->body, body_of(i, room)), "%.*s", BYTES_ARG(record->key));
	cr_assert_eq(record_check(record), 0);
	return 0;
}

/* Makes a journal of one object. Each page of its body but the first holds a record. The body is
 * stored in the pages from FIRST on, if the records have the right numbers. */
static void make_nested(uint64_t first)
{
	const size_t size = database_page();

	AUTO_FREE uint8_t *body = calloc(8, size);
	set_up();
	struct record record = {.feed = feed,
		.type = RECORD_ADDED,
		.key = BYTES_LIT("web/0"),
		.uid = BYTES_LIT("u"),
		.rv = BYTES_LIT("7")};
	struct record nested = {.seq = 1000,
		.feed = record.feed,
		.type = RECORD_ADDED,
		.key = BYTES_LIT("web/1"),
		.body = BYTES_LIT("x")};
	size_t before = 16 + RECORD_HEADER + record.key.size + record.uid.size +
			record.rv.size; /* the body, in its first page */
	uint64_t seq;

	cr_assert_not_null(body);
	for (unsigned i = 1; i < 8; i++) {
		uint8_t *page = body + i * size - before;

		le64_put(page, first + i);
		le16_put(page + 10, 4);
		le32_put(page + 12, 1);
		record_write(&nested, page + 16);
	}
	record.body = BYTES(body, 8 * size);
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_append(j, &record, &seq), 0);
	cr_assert_eq(journal_commit(j), 0);
	tear_down();
}

Test(salvage, a_record_inside_of_a_body_is_none)
{
	const size_t size = database_page();
	uint64_t first = 0;

	make_nested(0);
	struct file file = read_file();
	for (uint64_t page = 2; page < file.size / size; page++)
		if (le64_get(file.bytes + page * size) == page &&
			le16_get(file.bytes + page * size + 10) == 4)
			first = page;
	cr_assert_gt(first, 0);
	free(file.bytes);
	scratch_remove(scratch_path("store"));
	make_nested(first);
	file = read_file();
	cr_assert_eq(le64_get(file.bytes + (first + 3) * size), first + 3, "it looks like a page");
	struct salvage *salvage = open_salvage();
	cr_expect_eq(salvage_records(salvage), 2, "the feed and the object");
	salvage_close(&salvage);
	/* Without the page where the body begins nothing is known of the others: then it is
	 * taken for one. */
	memset(file.bytes + first * size, 0, size);
	write_file(&file);
	salvage = open_salvage();
	cr_expect_eq(salvage_records(salvage), 2);
	salvage_close(&salvage);
	free(file.bytes);
}

/* For any content of the file, reads stay inside it, and only written records are found. */
Test(salvage, damaged_pages_are_passed_over)
{
	const size_t size = database_page();

	make();
	struct file sound = read_file(), file = {malloc(sound.size), sound.size};

	srand(7);
	for (int round = 0; round < 60; round++) {
		struct seen seen = {0};

		memcpy(file.bytes, sound.bytes, sound.size);
		for (size_t at = 0; at < sound.size; at += size)
			for (int i = 0; i < 1 + round % 6; i++)
				file.bytes[at + (size_t)rand() % (i % 2 ? size : 40)] =
					(uint8_t)rand();
		file.size = round % 5 ? sound.size : (size_t)rand() % sound.size;
		write_file(&file);
		struct salvage *salvage = open_salvage();
		if (salvage)
			cr_assert_eq(
				salvage_each_record(salvage, 0, UINT64_MAX, check_record, &seen),
				0);
		salvage_close(&salvage);
	}
	file.size = 0;
	write_file(&file);
	cr_expect_null(open_salvage());
	free(file.bytes);
	free(sound.bytes);
}
