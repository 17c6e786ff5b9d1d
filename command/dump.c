/* SPDX-License-Identifier: Apache-2.0 */
/* kinf dump [SECTION...] [--feed F] [--key K] [--from N] [--to M] [-o text|json] [--body] */
#include "command/dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/output.h"
#include "reader/handle.h"

struct dump_args {
	const char *feed, *key, *output;
	uint64_t from, to;
	bool body;
};

static const struct option_spec dump_options[] = {
	{0, "feed", OPTION_TEXT, offsetof(struct dump_args, feed), "FEED",
		"only this feed: its name, resource or id"},
	{0, "key", OPTION_TEXT, offsetof(struct dump_args, key), "K",
		"only this object: namespace/name, or name if it is in no namespace"},
	{0, "from", OPTION_NUMBER, offsetof(struct dump_args, from), "N", "from this event on"},
	{0, "to", OPTION_NUMBER, offsetof(struct dump_args, to), "M", "up to this event"},
	{'o', "output", OPTION_WORD, offsetof(struct dump_args, output), "FORMAT",
		"text or json (one object a line)", "text|json"},
	{0, "body", OPTION_FLAG, offsetof(struct dump_args, body), NULL, "print bodies also"},
};

static const char *const dump_sections[] = {
	"meta", "feeds", "journal", "objects", "terms", "postings", "events", "cursors", "ring"};
enum { META, FEEDS, JOURNAL, OBJECTS, TERMS, POSTINGS, EVENTS, CURSORS, RING };

/* Returns the index of the section, or the number of sections. */
static size_t dump_find_section(const char *name)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(dump_sections) && strcmp(dump_sections[i], name) != 0)
		i++;
	return i;
}

static int dump_section(struct dump *dump, size_t section)
{
	switch (section) {
	case META:
		return dump_meta(dump);
	case FEEDS:
		return dump_feeds(dump);
	case JOURNAL:
	case EVENTS:
		return dump_log(dump, section == EVENTS);
	case OBJECTS:
		return dump_objects(dump);
	case TERMS:
	case POSTINGS:
		return dump_terms(dump, section == POSTINGS);
	case CURSORS:
		return dump_cursors(dump);
	default:
		return dump_rings(dump);
	}
}

/* ---- selection ---------------------------------------------------------- */

static int dump_select_feeds(struct dump *dump, const char *name)
{
	CLEANUP(feed_walk_release) struct feed_walk walk = {dump->journal, dump->journal_txn};
	int r = 0;

	while (r == 0 && (r = dump_next_feed(dump, &walk)) == FOUND) {
		char id[16];

		(void)snprintf(id, sizeof(id), "%u", walk.definition.id);
		if (strcmp(walk.definition.name, name) == 0 ||
			feed_definition_is_called(&walk.definition, name) || strcmp(id, name) == 0)
			r = ARRAY_ADD(dump->feeds, dump->n_feeds, dump->feeds_room,
				walk.definition.id, "the list of feeds");
	}
	return r == END ? 0 : r;
}

int dump_pass_damage(int r)
{
	if (r != ERR_CORRUPT)
		return r;
	command_saw_damage = true;
	(void)command_fail(r);
	err_forget();
	return 0;
}

/* ---- the store ---------------------------------------------------------- */

void dump_salvage(struct dump *dump)
{
	char text[SALVAGE_TEXT_SIZE];

	if (dump->has_salvaged)
		return;
	dump->has_salvaged = true;
	int r = salvage_open(dump->home, &dump->salvage);
	if (r < 0)
		(void)command_fail(r);
	if (r != FOUND)
		return;
	salvage_describe(dump->salvage, text);
	(void)fprintf(stderr,
		"note: journal: %s; their rows say salvaged=true, and some may have been removed "
		"from the journal before\n",
		text);
}

/* Opens the journal by itself, if there is one. */
static int dump_open_journal(struct dump *dump)
{
	int r = journal_open_read(dump->home, NULL, &dump->journal);

	if (r == 0)
		r = txn_begin_read(journal_env(dump->journal), &dump->journal_txn);
	if (r < 0)
		journal_close(&dump->journal);
	return r == NOT_FOUND ? 0 : r;
}

/* Opens one snapshot of both databases; without an index, the journal alone. */
static int dump_open(struct dump *dump)
{
	dump->home = store_home(dump->kinf->store);
	int r = kinf_snapshot_open(dump->kinf, &dump->snapshot);

	if (r != 0)
		return r == AGAIN ? dump_open_journal(dump) : r;
	struct snapshot *snapshot = dump->snapshot->snapshot;
	dump->journal = snapshot_journal(snapshot);
	dump->journal_txn = snapshot_journal_txn(snapshot);
	dump->index = snapshot_index(snapshot);
	dump->index_txn = snapshot_index_txn(snapshot);
	return 0;
}

/* Opens the parts of a store that is unusable as a whole because of WHY: a part of its index may be
 * missing. Opens none if none can be, and has printed that. */
static int dump_open_part(
	struct dump *dump, const struct config_flags *flags, const struct err_kept *why)
{
	AUTO_FREE char *directory = NULL;
	int r = command_store(flags, &directory);

	if (r == 0)
		r = home_open(directory, &(struct home_options){.unchecked = true}, &dump->home);
	if (r < 0)
		return r;
	r = dump_open_journal(dump);
	if (r == 0 && dump->journal)
		return 0;
	if (r < 0 && !strstr(why->text, err_text(r))) /* else already printed */
		(void)command_fail(r);
	err_forget();
	dump_salvage(dump);
	r = index_open_read(dump->home, &dump->index);
	if (r == 0)
		r = txn_begin_read(index_env(dump->index), &dump->index_txn);
	if (r < 0)
		index_close(&dump->index);
	err_ignore(r < 0 ? r : 0, "the command has said why");
	return 0;
}

static void dump_release(struct dump *dump)
{
	if (!dump->snapshot) {
		txn_abort(&dump->journal_txn);
		journal_close(&dump->journal);
		txn_abort(&dump->index_txn);
		index_close(&dump->index);
	}
	salvage_close(&dump->salvage);
	if (!dump->kinf)
		home_close(&dump->home);
	kinf_snapshot_close(&dump->snapshot);
	kinf_close(&dump->kinf);
	free(dump->feeds);
	buf_release(&dump->out);
}

/* ---- the command -------------------------------------------------------- */

static int dump_run(struct dump *dump, const struct config_flags *flags, const char *feed,
	char **names, size_t n)
{
	struct err_kept why;
	bool is_whole = command_open(flags, &dump->kinf) == 0; /* else it has printed why */

	err_keep(&why);
	int r = is_whole ? dump_open(dump) : dump_open_part(dump, flags, &why);
	if (!is_whole && (r < 0 || (!dump->journal && !dump->salvage && !dump->index)))
		return PROC_FAILED;
	/* A removed feed can be selected while the journal has anything of it. */
	if (r == 0 && feed)
		r = dump_select_feeds(dump, feed);
	if (r == 0 && feed && !dump->n_feeds)
		r = err_say(ERR_NO_FEED, "no feed '%s'; 'kinf dump feeds' lists them", feed);
	for (size_t i = 0; r == 0 && i < (n ? n : ARRAY_SIZE(dump_sections)); i++)
		r = dump_pass_damage(dump_section(dump, n ? dump_find_section(names[i]) : i));
	if (r == 0)
		r = output_flush();
	int status = r < 0 ? command_fail(r) : is_whole ? PROC_OK : PROC_FAILED;
	/* On a copy, an error here means wrong rows. */
	r = dump->snapshot ? kinf_snapshot_reset(dump->snapshot) : 0;
	return r < 0 && status == PROC_OK ? command_fail(r) : status;
}

int command_dump(int argc, char **argv)
{
	struct dump_args args = {.to = UINT64_MAX};
	struct command_line line = {
		.options = {"kinf dump",
			"[meta|feeds|journal|objects|terms|postings|events|cursors|ring...]",
			"Prints the records of the store's files, row by row, with the names of "
			"store/FORMAT.md; without a section, all sections. Needs no daemon."},
		.groups = {{"Options", dump_options, ARRAY_SIZE(dump_options), &args}},
		.takes = {0, SIZE_MAX, NULL},
	};
	int r = command_parse(&line, argc, argv);

	for (size_t i = 0; r == 0 && i < line.n; i++)
		if (dump_find_section(line.operands[i]) == ARRAY_SIZE(dump_sections))
			r = options_bad(&line.options,
				"there is no section '%s'; --help lists them", line.operands[i]);
	if (r != 0)
		return command_usage(&line, r);
	CLEANUP(dump_release)
	struct dump dump = {.key = args.key,
		.from = args.from,
		.to = args.to,
		.body = args.body,
		.json = command_is_json(args.output)};
	return dump_run(&dump, &line.flags, args.feed, line.operands, line.n);
}
