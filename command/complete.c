/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf __complete WORD...: for the shells' completions (command/completion/). Prints the candidates
 * for the last word, one a line as "candidate<TAB>description"; a line ":files" or ":directories"
 * asks the shell for names of its own.
 *
 * Options come from the tables of the commands, and a word's name in --help tells its kind: FEED,
 * NAME, INDEX, CURSOR, NS, SELECTOR, FILE, SOURCE, DIR. Errors are silent: they would appear in the
 * line being typed.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "common/buf.h"
#include "common/bytes.h"
#include "common/cleanup.h"
#include "reader/handle.h"
#include "store/read/cursor_file.h"

/* A shell shows no more. */
#define CANDIDATES_MAX 2000

/* Directives of kubectl's completion, as bits (spf13/cobra). */
#define NO_SPACE         2
#define NO_FILES         4
#define ONLY_DIRECTORIES 16

static struct {
	bool is_asked;
	unsigned directive;
	unsigned n, n_open; /* candidates; the ones before another part */
} for_kubectl;

struct completion {
	const struct options_word *word;
	const char *text;   /* the beginning of the candidates */
	const char *joined; /* before them, in the same word: "app=x," of a list */
	size_t joined_size;
	size_t n;
	bool opened; /* or opening failed */
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
};

/* ---- candidates --------------------------------------------------------- */

void complete_print(const char *candidate, const char *description)
{
	size_t size = strlen(candidate);

	for_kubectl.n++;
	for_kubectl.n_open += size && strchr("=/", candidate[size - 1]) != NULL;
	(void)printf("%s\t", candidate);
	for (const char *c = description; *c; c++) /* the paths of a compound index are lines */
		(void)fputs(*c == '\n' ? ", " : (char[]){*c, '\0'}, stdout);
	(void)putchar('\n');
}

void complete_for_kubectl(void)
{
	for_kubectl.is_asked = true;
	for_kubectl.directive = NO_FILES;
}

void complete_end(void)
{
	if (!for_kubectl.is_asked)
		return;
	if (for_kubectl.n && for_kubectl.n == for_kubectl.n_open)
		for_kubectl.directive |= NO_SPACE;
	(void)printf(":%u\n", for_kubectl.directive);
}

/* Makes the shell complete names of files, or of directories. */
static void complete_files(bool directories)
{
	if (for_kubectl.is_asked)
		for_kubectl.directive = directories ? ONLY_DIRECTORIES : 0;
	else
		(void)puts(directories ? ":directories" : ":files");
}

/* Prints TEXT and AFTER if the word may be completed to it. Returns 1 after enough candidates. */
static int complete_put(struct completion *completion, struct bytes text, const char *after,
	const char *description)
{
	struct bytes typed = bytes_str(completion->text);

	if (text.size < typed.size || memcmp(text.data, typed.data, typed.size) != 0)
		return 0;
	for (size_t i = 0; i < text.size; i++)
		if (iscntrl((unsigned char)((const char *)text.data)[i]))
			return 0; /* it would end a line of the answer */
	CLEANUP(buf_release) struct buf candidate = BUF_INIT;
	buf_printf(&candidate, "%.*s%.*s%.*s%s", (int)completion->word->before_size,
		completion->word->before, (int)completion->joined_size, completion->joined,
		BYTES_ARG(text), after);
	complete_print(buf_cstr(&candidate), description);
	return ++completion->n == CANDIDATES_MAX;
}

/* Puts each of WORDS, separated by "|". */
static int complete_words(struct completion *completion, const char *words)
{
	int r = 0;

	for (size_t size; r == 0 && *words; words += size + (words[size] == '|')) {
		size = strcspn(words, "|");
		r = complete_put(completion, BYTES(words, size), "", "");
	}
	return r;
}

/* Makes the candidates begin after the last SEPARATOR of the word. */
static void complete_join(struct completion *completion, char separator)
{
	const char *last = strrchr(completion->text, separator);

	if (!last)
		return;
	completion->joined = completion->text;
	completion->joined_size = (size_t)(last + 1 - completion->text);
	completion->text = last + 1;
}

/* ---- options ------------------------------------------------------------ */

static int complete_option(void *arg, const struct option_spec *spec)
{
	struct completion *completion = arg;
	char name[64];
	int size = snprintf(name, sizeof(name), "--%s", spec->name);

	return complete_put(completion, BYTES(name, (size_t)size), "", spec->text);
}

/* Returns the value of the option NAME in the words before, or NULL. */
static const char *complete_option_value(const struct options *options, const char *name)
{
	for (size_t i = 0; i < options->n_groups; i++)
		for (size_t k = 0; k < options->groups[i].n; k++) {
			const struct options_group *group = &options->groups[i];
			const struct option_spec *spec = &group->specs[k];

			if ((spec->type == OPTION_TEXT || spec->type == OPTION_NAME) &&
				strcmp(spec->name, name) == 0)
				return *(const char *const *)((const char *)group->into +
							      spec->offset);
		}
	return NULL;
}

/* ---- words of the store ------------------------------------------------------ */

static bool complete_open(struct completion *completion)
{
	const struct options *options = completion->word->options;
	struct config_flags flags = {.store = complete_option_value(options, "store"),
		.runtime_dir = complete_option_value(options, "runtime-dir"),
		.file = complete_option_value(options, "config")};
	AUTO_FREE char *directory = NULL;

	if (completion->opened)
		return completion->snapshot;
	completion->opened = true;
	if (command_store(&flags, &directory) < 0 || kinf_open(directory, &completion->kinf) < 0)
		return false;
	return kinf_snapshot_open(completion->kinf, &completion->snapshot) == 0;
}

static int complete_put_feed(void *arg, const struct kinf_feed_info *info)
{
	struct completion *completion = arg;
	char text[64];

	(void)snprintf(text, sizeof(text), "%s, %llu objects", info->state,
		(unsigned long long)info->objects);
	return complete_put(completion, bytes_str(info->full_name), "", text);
}

static int complete_put_value(void *arg, const char *value, size_t size, uint64_t count)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%llu objects", (unsigned long long)count);
	return complete_put(arg, BYTES(value, size), "", text);
}

static int complete_put_index(void *arg, const char *name, const char *paths, uint64_t values,
	uint64_t entries, int ready)
{
	(void)values, (void)entries, (void)ready;
	return complete_put(arg, bytes_str(name), "", *paths ? paths : "built in");
}

static int complete_put_index_value(void *arg, const char *name, const char *paths, uint64_t values,
	uint64_t entries, int ready)
{
	(void)values, (void)entries, (void)ready;
	return complete_put(arg, bytes_str(name), "=", *paths ? paths : "built in");
}

static int complete_put_cursor(void *arg, const char *name, const struct cursor_file *cursor)
{
	(void)cursor;
	return complete_put(arg, bytes_str(name), "", "");
}

/* Completes the name of an object of FEED, in the namespace of -n or of NS/NAME. */
static int complete_names(struct completion *completion, const char *feed)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	AUTO_FREE char *in = NULL;
	struct kinf_query query = {.size = sizeof(query), .feed = feed};
	struct kinf_object object;
	size_t found = 0;
	int r;

	query.namespace_ = complete_option_value(completion->word->options, "namespace");
	if (!query.namespace_ && strchr(completion->text, '/')) {
		complete_join(completion, '/');
		in = strndup(completion->joined, completion->joined_size - 1);
		query.namespace_ = in;
	}
	query.prefix = *completion->text ? completion->text : NULL;
	r = kinf_list(completion->snapshot, &query, &list);
	while (r == 0 && found < CANDIDATES_MAX && kinf_list_next(list, &object) == KINF_FOUND) {
		const char *slash = memchr(object.key, '/', object.key_size);
		size_t skip = slash ? (size_t)(slash + 1 - object.key) : 0;

		r = complete_put(completion,
			BYTES((const char *)object.key + skip, object.key_size - skip), "", "");
		found++;
	}
	return r;
}

/* Completes NAME=VALUE of an index. */
static int complete_term(struct completion *completion, const char *feed)
{
	const char *equals = strchr(completion->text, '=');

	if (!equals)
		return kinf_index_list(
			completion->snapshot, feed, complete_put_index_value, completion);
	AUTO_FREE char *index = strndup(completion->text, (size_t)(equals - completion->text));
	complete_join(completion, '=');
	return index ? kinf_index_values(completion->snapshot, feed, index, completion->text,
			       complete_put_value, completion)
		     : 0;
}

/* Completes a namespace with objects of FEED. */
static int complete_namespace(struct completion *completion, const char *feed)
{
	return kinf_index_values(completion->snapshot, feed, "namespace", completion->text,
		complete_put_value, completion);
}

/* The feed is unknown: completes a namespace of any. The shells print a candidate once. */
static int complete_namespace_of(void *arg, const struct kinf_feed_info *info)
{
	return info->namespaced ? complete_namespace(arg, info->full_name) : 0;
}

/* Completes FEED/NAME. */
static int complete_slashed(struct completion *completion)
{
	const char *slash = strchr(completion->text, '/');

	if (!slash)
		return 0;
	AUTO_FREE char *feed = strndup(completion->text, (size_t)(slash - completion->text));
	completion->joined = completion->text;
	completion->joined_size = (size_t)(slash + 1 - completion->text);
	completion->text = slash + 1;
	return feed ? complete_names(completion, feed) : 0;
}

/* ---- kinds of words ----------------------------------------------------- */

/* Completes a word named KIND in --help. */
static void complete_kind(struct completion *completion, struct bytes kind)
{
	const struct options_word *word = completion->word;
	const char *feed = word->n_operands ? word->operands[0] : NULL;

	if (bytes_equal(kind, BYTES_LIT("FILE")) || bytes_equal(kind, BYTES_LIT("SOURCE"))) {
		complete_files(false);
		return;
	}
	if (bytes_equal(kind, BYTES_LIT("DIR")) || bytes_equal(kind, BYTES_LIT("STORE1")) ||
		bytes_equal(kind, BYTES_LIT("STORE2"))) {
		complete_files(true);
		return;
	}
	if (!complete_open(completion))
		return;
	if (bytes_equal(kind, BYTES_LIT("FEED"))) {
		complete_join(completion, ',');
		(void)kinf_feed_status(completion->snapshot, NULL, complete_put_feed, completion);
	} else if (bytes_equal(kind, BYTES_LIT("FEED/NAME"))) {
		(void)complete_slashed(completion);
	} else if (bytes_equal(kind, BYTES_LIT("CURSOR"))) {
		(void)cursor_each(
			store_home(completion->kinf->store), complete_put_cursor, NULL, completion);
	} else if (!feed) {
		if (bytes_equal(kind, BYTES_LIT("NS")))
			(void)kinf_feed_status(
				completion->snapshot, NULL, complete_namespace_of, completion);
	} else if (bytes_equal(kind, BYTES_LIT("NAME"))) {
		(void)complete_names(completion, feed);
	} else if (bytes_equal(kind, BYTES_LIT("INDEX"))) {
		(void)kinf_index_list(completion->snapshot, feed, complete_put_index, completion);
	} else if (bytes_equal(kind, BYTES_LIT("NAME=VALUE"))) {
		(void)complete_term(completion, feed);
	} else if (bytes_equal(kind, BYTES_LIT("NS"))) {
		(void)complete_namespace(completion, feed);
	} else if (bytes_equal(kind, BYTES_LIT("SELECTOR")) &&
		   completion->word->spec->letter == 'l') {
		complete_join(completion, ',');
		(void)kinf_index_values(completion->snapshot, feed, "label", completion->text,
			complete_put_value, completion);
	}
}

/* Completes an operand by one of the usages of a command, such as "FEED[,FEED...] [NAME...]". */
static void complete_operand_of(struct completion *completion, const char *usage)
{
	const struct options_word *word = completion->word;
	struct bytes part = BYTES_NONE;

	for (size_t i = 0; i <= word->n_operands; i++) {
		usage += strspn(usage, " ");
		struct bytes next = BYTES(usage, strcspn(usage, " "));
		usage += next.size;
		bool again = part.size >= 3 && memmem(part.data, part.size, "...", 3) != NULL;

		if (next.size == 0 && !again)
			return;
		part = next.size ? next : part;
		/* A literal word must equal the typed one. */
		if (i < word->n_operands && islower(*(const unsigned char *)part.data) &&
			!bytes_equal(part, bytes_str(word->operands[i])))
			return;
	}
	/* "[NAME...]", "FEED[,FEED...]", "FEED/NAME...": the name alone. */
	const char *text = part.data, *end = text + part.size;
	text += *text == '[';
	size_t size = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/");
	if (size && text + size <= end) {
		complete_kind(completion, BYTES(text, size));
		return;
	}
	AUTO_FREE char *words = strndup(text, strcspn(text, " ]."));
	if (words)
		(void)complete_words(completion, words);
}

static void complete_operand(struct completion *completion)
{
	AUTO_FREE char *usages = strdup(completion->word->options->usage);
	const struct completion fresh = *completion;

	for (char *usage = usages, *next; usage; usage = next) {
		next = strstr(usage, " | ");
		if (next) {
			*next = '\0';
			next += 3;
		}
		completion->text = fresh.text;
		completion->joined_size = 0;
		complete_operand_of(completion, usage);
	}
}

/* For options_parse(). */
static int complete_word(const struct options_word *word)
{
	struct completion completion = {.word = word, .text = word->text};

	if (word->type == WORD_OPTION)
		(void)options_each(word->options, complete_option, &completion);
	else if (word->type == WORD_OPERAND)
		complete_operand(&completion);
	else if (word->spec->words)
		(void)complete_words(&completion, word->spec->words);
	else
		complete_kind(&completion, bytes_str(word->spec->value));
	kinf_snapshot_close(&completion.snapshot);
	kinf_close(&completion.kinf);
	return 0;
}

void complete_begin(void)
{
	options_complete = complete_word;
}
