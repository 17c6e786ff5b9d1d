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
	{'o', "output", OPTION_TEXT, offsetof(struct dump_args, output), "FORMAT",
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

/* One snapshot of both databases; without an index, the journal alone. */
struct dump_source {
	struct kinf *kinf;
	struct home *home; /* when no snapshot can be opened */
	struct kinf_snapshot *snapshot;
	struct journal *journal;
	struct txn *txn;
	struct index *index; /* by itself, beside an unusable journal */
	struct txn *index_txn;
};

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

static int dump_journal_open(struct dump_source *source, struct dump *dump)
{
	int r = journal_open_read(dump->home, NULL, &source->journal);

	if (r == NOT_FOUND)
		return 0; /* no journal either */
	if (r == 0)
		r = txn_begin_read(journal_env(source->journal), &source->txn);
	if (r < 0)
		return r;
	dump->journal = source->journal;
	dump->journal_txn = source->txn;
	return 0;
}

static int dump_source_open(struct dump_source *source, struct dump *dump)
{
	dump->home = store_home(source->kinf->store);
	int r = kinf_snapshot_open(source->kinf, &source->snapshot);

	if (r == 0) {
		struct snapshot *snapshot = source->snapshot->snapshot;

		dump->journal = snapshot_journal(snapshot);
		dump->journal_txn = snapshot_journal_txn(snapshot);
		dump->index = snapshot_index(snapshot);
		dump->index_txn = snapshot_index_txn(snapshot);
	}
	return r == AGAIN ? dump_journal_open(source, dump) : r;
}

/* Opens the index of a store with an unusable journal. */
static int dump_index_open(struct dump_source *source, struct dump *dump)
{
	int r = index_open_read(dump->home, &source->index);

	if (r != FOUND)
		return r;
	r = txn_begin_read(index_env(source->index), &source->index_txn);
	if (r < 0)
		return r;
	dump->index = source->index;
	dump->index_txn = source->index_txn;
	return 0;
}

/* Opens the parts of a store that is unusable as a whole because of WHY: a part of its index may be
 * missing. Opens none if none can be, and has printed that. */
static int dump_source_open_part(struct dump_source *source, struct dump *dump,
	const struct config_flags *flags, const struct err_kept *why)
{
	AUTO_FREE char *directory = NULL;
	int r = command_store(flags, &directory);

	if (r == 0)
		r = home_open(directory, &(struct home_options){.unchecked = true}, &source->home);
	dump->home = source->home;
	if (r < 0)
		return r;
	r = dump_journal_open(source, dump);
	if (r == 0 && dump->journal)
		return 0;
	if (r < 0 && !strstr(why->text, err_text(r))) /* else already printed */
		(void)command_fail(r);
	err_forget();
	dump_salvage(dump);
	r = dump_index_open(source, dump);
	err_ignore(r < 0 ? r : 0, "the command has said why");
	return 0;
}

/* ---- the command -------------------------------------------------------- */

static int dump_run(struct dump *dump, const struct config_flags *flags, const char *feed,
	char **names, size_t n)
{
	struct dump_source source = {0};
	struct err_kept why;

	bool is_whole = command_open(flags, &source.kinf) == 0; /* else it has printed why */
	err_keep(&why);
	int r = is_whole ? dump_source_open(&source, dump)
			 : dump_source_open_part(&source, dump, flags, &why);
	if (!is_whole && (r < 0 || (!dump->journal && !dump->salvage && !dump->index))) {
		home_close(&source.home);
		return PROC_FAILED;
	}
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
	r = source.snapshot ? kinf_snapshot_reset(source.snapshot) : 0;
	if (r < 0 && status == PROC_OK)
		status = command_fail(r);
	kinf_snapshot_close(&source.snapshot);
	txn_abort(&source.txn);
	journal_close(&source.journal);
	salvage_close(&dump->salvage);
	txn_abort(&source.index_txn);
	index_close(&source.index);
	kinf_close(&source.kinf);
	home_close(&source.home);
	return status;
}

int command_dump(int argc, char **argv)
{
	struct dump_args args = {.to = UINT64_MAX};
	struct config_flags flags = {0};
	int first;
	const struct options_group groups[] = {
		{"Options", dump_options, ARRAY_SIZE(dump_options), &args},
		config_common_options(&flags),
	};
	const struct options options = {"kinf dump",
		"[meta|feeds|journal|objects|terms|postings|events|cursors|ring...]",
		"Prints the records of the store's files, row by row, with the names of "
		"store/FORMAT.md; without a section, all sections. Needs no daemon.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);
	bool json = r == 0 && args.output && strcmp(args.output, "json") == 0;

	for (int i = first; r == 0 && i < argc; i++)
		if (dump_find_section(argv[i]) == ARRAY_SIZE(dump_sections))
			r = options_bad(
				&options, "there is no section '%s'; --help lists them", argv[i]);
	if (r == 0 && args.output && !json && strcmp(args.output, "text") != 0)
		r = options_bad(&options, "output '%s': allowed are text, json", args.output);
	if (r != 0)
		return command_usage(&options, r);
	struct dump dump = {
		.key = args.key, .from = args.from, .to = args.to, .body = args.body, .json = json};
	int status = dump_run(&dump, &flags, args.feed, argv + first, (size_t)(argc - first));
	free(dump.feeds);
	buf_release(&dump.out);
	return status;
}
