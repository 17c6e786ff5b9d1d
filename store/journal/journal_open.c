/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the current journal, begins new ones, and removes old ones. */
#include "store/journal/journal_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/text/shell_word.h"

#define JOURNAL_FORMAT 6
#define MAP_BYTES      ((uint64_t)64 << 30)
#define OPEN_TRIES     3

static const char *const databases[DB_MAX] = {
	[DB_LOG] = "log",
	[DB_HEAD] = "head",
	[DB_FEED] = "feed",
	[DB_META] = "meta",
};

const struct generation_kind journal_kind = {
	.what = "journal",
	.remedy = "'kinf run' makes another one and lists everything again when it is started; "
		  "'kinf verify' says what can still be read",
	.writemap = true,
	.format = JOURNAL_FORMAT,
	.databases = databases,
	.n_databases = DB_MAX,
};

static struct journal *journal_new(bool is_writer)
{
	struct journal *journal = calloc(1, sizeof(*journal));

	if (!journal)
		return NULL;
	journal->magic = JOURNAL_MAGIC;
	journal->is_writer = is_writer;
	return journal;
}

void journal_close(struct journal **journal)
{
	struct journal *j = *journal;

	if (!j)
		return;
	CHECK_OBJ(j, JOURNAL_MAGIC);
	if (j->is_writer)
		journal_abort(j);
	generation_close(&j->gen);
	feed_rows_release(j);
	buf_release(&j->scratch);
	j->magic = 0;
	free(j);
	*journal = NULL;
}

struct generation_options journal_generation_options(
	const struct home *home, const struct journal_options *options, struct pin_places *places)
{
	home_pin_places(home, places);
	return (struct generation_options){
		.map_bytes = options->map_bytes ? options->map_bytes : MAP_BYTES,
		.durable = options->durable,
		.file_mode = home_file_mode(home),
		.places = places,
	};
}

int journal_load(struct journal *journal, struct txn *txn)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;

	int r = meta_read(txn, &journal->meta);
	if (r == 0 && memcmp(journal->meta.uuid, journal_uuid(journal), 16) != 0)
		r = err_set(ERR_CORRUPT, "the journal's uuid is not the one in STATE");
	if (r == 0)
		r = feed_rows_load(journal, txn);
	if (r == 0)
		r = cursor_open(txn, DB_LOG, &cursor);
	if (r == 0)
		r = cursor_last(cursor, &key, &value);
	/* Else sequence numbers would be given twice. */
	if (r == FOUND &&
		(key.size != SEQ_KEY_SIZE || be64_get(key.data) >= journal->meta.next_seq))
		r = err_set(ERR_CORRUPT, "the log reaches beyond its end");
	if (r < 0)
		return r;
	journal->meta_changed = false;
	journal->stale = false;
	return 0;
}

static int journal_open_existing(struct home *home, const struct journal_options *options,
	uint32_t number, struct journal **ret_journal)
{
	struct pin_places places;
	struct generation_options gen_options = journal_generation_options(home, options, &places);
	CLEANUP(journal_close) struct journal *journal = journal_new(true);
	CLEANUP(txn_abort) struct txn *txn = NULL;

	if (!journal)
		return err_set(-ENOMEM, "opening the journal");
	int r = generation_open_write(
		home_journal_fd(home), &journal_kind, &gen_options, number, &journal->gen);
	if (r == 0)
		r = txn_begin_read(journal_env(journal), &txn);
	if (r == 0)
		r = journal_load(journal, txn);
	if (r < 0)
		return r;
	*ret_journal = TAKE(journal);
	return 0;
}

int journal_new_uuid(uint8_t ret_uuid[16])
{
	int r = proc_random(ret_uuid, 16);

	ret_uuid[6] = (uint8_t)((ret_uuid[6] & 0x0f) | 0x40); /* RFC 4122, random */
	ret_uuid[8] = (uint8_t)((ret_uuid[8] & 0x3f) | 0x80);
	return r;
}

/* Complete before CURRENT names it. */
static int journal_create(
	struct home *home, const struct journal_options *options, struct journal **ret_journal)
{
	struct pin_places places;
	struct generation_options gen_options = journal_generation_options(home, options, &places);
	CLEANUP(journal_close) struct journal *journal = journal_new(true);

	if (!journal)
		return err_set(-ENOMEM, "opening the journal");
	int r = journal_new_uuid(journal->meta.uuid);
	if (r == 0)
		r = generation_create(home_journal_fd(home), &journal_kind, &gen_options,
			journal->meta.uuid, &journal->gen);
	if (r < 0)
		return r;
	journal->meta.next_seq = 1;
	journal->meta.next_feed = 1;
	journal->meta_changed = true;
	r = txn_begin_write(journal_env(journal), &journal->txn);
	if (r == 0)
		r = journal_finish(journal);
	if (r == 0 && options->durable)
		r = env_sync(journal_env(journal));
	if (r == 0)
		r = generation_publish(home_journal_fd(home), generation_number(journal->gen));
	if (r < 0)
		return r;
	*ret_journal = TAKE(journal);
	return 0;
}

int journal_open_write(struct home *home, const struct journal_options *options, char reason[256],
	struct journal **ret_journal)
{
	uint32_t number;

	reason[0] = '\0';
	int r = generation_current(home_journal_fd(home), &number);
	if (r == FOUND)
		r = journal_open_existing(home, options, number, ret_journal);
	/* These errors need a new journal, and all lists again. ERR_LOCKED does not: the journal is
	 * whole. */
	if (r < 0 && r != -ENOENT && r != ERR_CORRUPT && r != ERR_FORMAT && r != ERR_UNTRUSTED)
		return r;
	if (r != 0) {
		(void)snprintf(reason, 256, "%s", r < 0 ? err_text(r) : "there was no journal yet");
		err_forget(); /* the caller reports the reason */
		/* Old ones go first: on a full disk each attempt would leave one more. */
		err_ignore(journal_remove_old(home), "the next opening tries again");
		r = journal_create(home, options, ret_journal);
	}
	if (r < 0)
		return r;
	err_ignore(journal_remove_old(home), "the next opening tries again");
	return 0;
}

int journal_note_damage(struct home *home)
{
	struct err_kept kept;

	err_keep(&kept);
	int r = generation_note_damage(home_journal_fd(home), kept.text);
	err_ignore(r, "who meets it next notes it");
	err_restore(&kept);
	return kept.code;
}

int journal_begin_anew(
	struct journal **journal, struct home *home, const struct journal_options *options)
{
	struct journal *fresh = NULL;
	struct env_info info;

	CHECK_OBJ(*journal, JOURNAL_MAGIC);
	REQUIRE((*journal)->is_writer);
	journal_abort(*journal);
	int r = env_info(journal_env(*journal), &info);
	if (r == 0)
		r = generation_require_room(
			home_journal_fd(home), journal_kind.what, info.used_bytes);
	if (r == 0)
		r = journal_create(home, options, &fresh);
	if (r < 0)
		return r;
	journal_close(journal);
	*journal = fresh;
	return 0;
}

int journal_remove_old(struct home *home)
{
	int journals = home_journal_fd(home), indexes = home_index_fd(home);
	uint32_t keep[2] = {0}, index;
	uint8_t uuid[16];

	/* The index's journal stays as well: its readers still need it. */
	if (generation_current(indexes, &index) != FOUND ||
		generation_read_uuid(indexes, index, uuid) < 0 ||
		generation_find(journals, uuid, &keep[1]) != FOUND)
		keep[1] = 0;
	int r = generation_current(journals, &keep[0]);
	return r < 0 ? r : generation_remove_except(journals, keep, 2, home_replaced_files(home));
}

static int journal_open_generation(
	struct home *home, uint32_t number, bool copy, struct journal **ret_journal)
{
	struct pin_places places;
	CLEANUP(journal_close) struct journal *journal = journal_new(false);
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct journal_meta meta;

	if (!journal)
		return err_set(-ENOMEM, "opening the journal");
	home_pin_places(home, &places);
	int r = generation_open_read(home_journal_fd(home), &journal_kind, number,
		copy ? NULL : &places, home_is_unchecked(home), &journal->gen);
	if (r < 0)
		return r;
	r = txn_begin_read(journal_env(journal), &txn);
	if (r == 0)
		r = meta_read(txn, &meta);
	if (r == 0 && memcmp(meta.uuid, journal_uuid(journal), 16) != 0)
		r = err_set(ERR_CORRUPT, "the journal's uuid is not the one in STATE");
	r = generation_advise(journal->gen, txn ? txn_result(txn, r) : r);
	if (r < 0)
		return r;
	*ret_journal = TAKE(journal);
	return 0;
}

int journal_open_read(struct home *home, const uint8_t *uuid, struct journal **ret_journal)
{
	bool running = home_role_holder(home, HOME_REFLECTOR) != 0;
	int r = home_check_pins(home, HOME_JOURNAL);
	bool copy = r < 0;
	uint32_t number;

	if (r < 0 && running)
		return r;
	err_ignore(r, "no reflector runs: it is read without pins");
	/* It may be replaced and removed between the reading of CURRENT and the opening. */
	for (int i = 0; i < OPEN_TRIES; i++) {
		int fd = home_journal_fd(home);
		r = fd < 0 ? NOT_FOUND
		    : uuid ? generation_find(fd, uuid, &number)
			   : generation_current(fd, &number);
		if (r == NOT_FOUND && !uuid && home_lacks_journal(home))
			return err_say(ERR_NO_STORE,
				"the directory journal/ of store '%s' is missing, or the file "
				"CURRENT in it: copy the whole store again, or start 'kinf run', "
				"which lists everything again",
				home_path(home));
		if (r == NOT_FOUND && !uuid)
			return err_say(ERR_NO_STORE,
				"nothing was written to store '%s' yet: start one with 'kinf run "
				"--store %s'",
				home_path(home),
				shell_word(home_path(home), (char[SHELL_WORD_SIZE]){0}));
		if (r)
			return r;
		r = journal_open_generation(home, number, copy, ret_journal);
		/* A damaged CURRENT says nothing of this generation's pins. */
		if (r == ERR_LOCKED && !copy && !running) {
			err_ignore(r, "no reflector runs: it is read without pins");
			copy = true;
			r = journal_open_generation(home, number, copy, ret_journal);
		}
		if (r != -ENOENT && r != ERR_SNAPSHOT_EXPIRED)
			break;
	}
	return r < 0 ? err_add(r, "store '%s'", home_path(home)) : 0;
}

bool journal_is_untrusted(const struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	return generation_is_untrusted(journal->gen);
}

struct env *journal_env(struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	return generation_env(journal->gen);
}

const uint8_t *journal_uuid(const struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	return generation_uuid(journal->gen);
}

uint32_t journal_generation(const struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	return generation_number(journal->gen);
}

int journal_check(const struct journal *journal, const struct home *home)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	return generation_check(journal->gen, home_journal_fd(home), true);
}

int journal_check_damage(const struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	return generation_check_damage(journal->gen);
}
