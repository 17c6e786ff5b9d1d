/* SPDX-License-Identifier: Apache-2.0 */
#include "common/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/config/units.h"
#include "common/err.h"
#include "common/output.h"
#include "common/text/decimal.h"
#include "common/text/similar.h"

#define SPECS_MAX  64
#define FIRST_CODE 256 /* codes of long options begin here */

#define HELP_WIDTH  80
#define HELP_INDENT 33 /* of an option's text */

struct options_asked {
	bool help, version;
};

static const struct option_spec options_own_specs[] = {
	{'h', "help", OPTION_FLAG, offsetof(struct options_asked, help), NULL,
		"print this and exit"},
	{0, "version", OPTION_FLAG, offsetof(struct options_asked, version), NULL,
		"print the version and exit"},
};

/* The options of all groups, as getopt_long(3) needs them. A long option's code is FIRST_CODE plus
 * its index; a short one's is its letter. */
struct options_table {
	const struct option_spec *specs[SPECS_MAX];
	void *into[SPECS_MAX];
	size_t n;
	struct option longs[SPECS_MAX + 1];
	char shorts[2 * SPECS_MAX + 3];
};

static bool option_has_value(const struct option_spec *spec)
{
	return spec->type != OPTION_FLAG && spec->type != OPTION_COUNT;
}

static void options_add_group(struct options_table *table, const struct options_group *group)
{
	for (size_t i = 0; i < group->n && table->n < SPECS_MAX; i++, table->n++) {
		const struct option_spec *spec = &group->specs[i];
		table->specs[table->n] = spec;
		table->into[table->n] = group->into;
		table->longs[table->n] = (struct option){.name = spec->name,
			.has_arg = spec->type == OPTION_COUNT ? no_argument
				   : spec->type == OPTION_FLAG || spec->type == OPTION_TEXT_OPTIONAL
					   ? optional_argument
					   : required_argument,
			.val = FIRST_CODE + (int)table->n};
		size_t size = strlen(table->shorts);
		if (spec->letter)
			(void)snprintf(table->shorts + size, sizeof(table->shorts) - size, "%c%s",
				spec->letter, option_has_value(spec) ? ":" : "");
	}
}

static int options_find(const struct options_table *table, int code)
{
	if (code >= FIRST_CODE)
		return code - FIRST_CODE;
	for (size_t i = 0; i < table->n; i++) {
		if (table->specs[i]->letter == code)
			return (int)i;
	}
	return -1;
}

void option_texts_release(struct option_texts *texts)
{
	free(texts->items);
	*texts = (struct option_texts){0};
}

/* Refuses a VALUE not among WORDS, separated by bars. */
static int options_check_word(const char *words, const char *value)
{
	CLEANUP(buf_release) struct buf list = BUF_INIT;

	for (const char *word = words; *word;) {
		size_t size = strcspn(word, "|");

		if (strlen(value) == size && memcmp(word, value, size) == 0)
			return 0;
		buf_printf(&list, "%s%.*s",
			!list.size   ? ""
			: word[size] ? ", "
				     : " or ",
			(int)size, word);
		word += size + (word[size] == '|');
	}
	return err_say(ERR_SYNTAX, "must be %s, not '%s'", buf_cstr(&list), value);
}

static int options_store(const struct option_spec *spec, void *to, const char *value)
{
	struct option_texts *texts = to;

	switch (spec->type) {
	case OPTION_FLAG: /* --all=false, as in kubectl */
		if (value && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
			return err_say(ERR_SYNTAX, "true or false, not '%s'", value);
		*(bool *)to = !value || *value == 't';
		return 0;
	case OPTION_COUNT:
		++*(unsigned *)to;
		return 0;
	case OPTION_WORD:
		*(const char **)to = value;
		return options_check_word(spec->words, value);
	case OPTION_NAME:
		*(const char **)to = *value ? value : NULL;
		return 0;
	case OPTION_TEXT:
	case OPTION_TEXT_OPTIONAL:
		*(const char **)to = value;
		return 0;
	case OPTION_TEXTS:
		return ARRAY_ADD(texts->items, texts->n, texts->room, value, "a list of options");
	case OPTION_NUMBER:
		return decimal_parse(bytes_str(value), UINT64_MAX, to);
	case OPTION_DURATION:
		return units_duration(value, to);
	case OPTION_SIZE:
		return units_size(value, to);
	case OPTION_TYPE_MAX:
		break;
	}
	return 0;
}

static const char *options_called;

void options_call(const char *name)
{
	options_called = name;
}

const char *options_program(const struct options *options)
{
	static char name[128];

	(void)snprintf(name, sizeof(name), "%s%s", options_called ? options_called : "",
		options->program + (options_called ? strcspn(options->program, " ") : 0));
	return name;
}

int options_bad(const struct options *options, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return err_say(ERR_SYNTAX, "%s; see '%s --help'", text, options_program(options));
}

static void options_help(const struct options *options, struct buf *out);

static int options_print(const struct options *options, bool help)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;

	if (help)
		options_help(options, &out);
	else
		buf_printf(&out, "%s %s\n", options_program(options), KINF_VERSION);
	int r = output_text(&out);
	return r < 0 ? r : END;
}

/* ---- completion --------------------------------------------------------- */

int (*options_complete)(const struct options_word *word);

int options_each(const struct options *options,
	int (*fn)(void *arg, const struct option_spec *spec), void *arg)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < options->n_groups; i++)
		for (size_t k = 0; r == 0 && k < options->groups[i].n; k++)
			r = fn(arg, &options->groups[i].specs[k]);
	for (size_t k = 0; r == 0 && k < ARRAY_SIZE(options_own_specs); k++)
		r = fn(arg, &options_own_specs[k]);
	return r;
}

/* Finds the option with its value attached in WORD: "--name=value" or "-nvalue". */
static const struct option_spec *options_attached(
	const struct options_table *table, const char *word, size_t *ret_before)
{
	size_t size = strcspn(word, "=");

	for (size_t i = 0; i < table->n; i++) {
		const struct option_spec *spec = table->specs[i];

		if (!option_has_value(spec))
			continue;
		*ret_before = word[1] == '-' ? size + 1 : 2;
		if (word[1] == '-' ? word[size] && strlen(spec->name) == size - 2 &&
					     strncmp(spec->name, word + 2, size - 2) == 0
				   : word[1] && word[1] == spec->letter)
			return spec;
	}
	return NULL;
}

/* Parses all words but the last; calls options_complete() for that one. */
static int options_parse_unfinished(
	const struct options *options, const struct options_table *table, int argc, char **argv)
{
	struct options_word word = {.options = options, .text = argv[argc - 1], .before = ""};
	int code, last = argc - 1;

	while ((code = getopt_long(last, argv, table->shorts, table->longs, NULL)) != -1) {
		int i = options_find(table, code == '?' || code == ':' ? optopt : code);

		if (i < 0)
			continue;
		const struct option_spec *spec = table->specs[i];
		if (code == ':' ||
			(spec->type == OPTION_TEXT_OPTIONAL && !optarg && optind == last)) {
			word.type = WORD_VALUE; /* its value is the last word */
			word.spec = spec;
		} else if (code != '?' &&
			   options_store(spec, (char *)table->into[i] + spec->offset,
				   optarg || spec->type == OPTION_FLAG ? optarg : "") < 0) {
			err_forget();
		}
	}
	bool ended = optind > 1 && strcmp(argv[optind - 1], "--") == 0;
	word.operands = argv + optind;
	word.n_operands = (size_t)(last - optind);
	if (!word.spec && !ended && word.text[0] == '-') {
		word.type = WORD_OPTION;
		word.spec = options_attached(table, word.text, &word.before_size);
	}
	if (word.type == WORD_OPTION && word.spec) {
		word.type = WORD_VALUE;
		word.before = word.text;
		word.text += word.before_size;
	}
	int r = options_complete(&word);
	return r < 0 ? r : END;
}

/* Refuses the unknown option WORD; suggests a similar one. */
static int options_unknown(
	const struct options *options, const struct options_table *table, const char *word)
{
	size_t size = strcspn(word, "=");
	char name[64], meant[256] = "";
	bool ambiguous = false;

	(void)snprintf(name, sizeof(name), "%.*s", size > 2 ? (int)size - 2 : 0, word + 2);
	for (size_t i = 0; i < table->n; i++)
		ambiguous |= *name && strncmp(table->specs[i]->name, name, strlen(name)) == 0;
	for (size_t i = 0; i < table->n && *name; i++) {
		const char *other = table->specs[i]->name;
		size_t used = strlen(meant);

		if (ambiguous ? strncmp(other, name, strlen(name)) == 0 : similar(name, other))
			(void)snprintf(meant + used, sizeof(meant) - used, "%s--%s",
				used ? ", " : "", other);
	}
	if (ambiguous)
		return options_bad(options, "option '%.*s' may be %s", (int)size, word, meant);
	return options_bad(options, "unknown option '%s'%s%s%s", word,
		*meant ? ": did you mean " : "", meant, *meant ? "?" : "");
}

/* Returns getopt_long(3)'s value. As kubectl, takes "-o=json" for "-o json". */
static const char *options_value(const struct option_spec *spec, int code, char **argv)
{
	bool attached = optarg && optarg != argv[optind - 1];

	return code < FIRST_CODE && option_has_value(spec) && attached && *optarg == '='
		       ? optarg + 1
		       : optarg;
}

bool options_flag(const struct options *options, int argc, char **argv, const char *name)
{
	struct options_table table = {0};
	bool given = false;
	int code;
	/* A copy: getopt_long(3) moves the operands. */
	AUTO_FREE char **words = calloc((size_t)argc + 1, sizeof(*words));

	if (!words)
		return false;
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	(void)snprintf(table.shorts, sizeof(table.shorts), ":");
	for (size_t i = 0; i < options->n_groups; i++)
		options_add_group(&table, &options->groups[i]);
	optind = 0; /* glibc: restarts */
	opterr = 0;
	while ((code = getopt_long(argc, words, table.shorts, table.longs, NULL)) != -1) {
		int i = code == '?' || code == ':' ? -1 : options_find(&table, code);

		if (i >= 0 && strcmp(table.specs[i]->name, name) == 0)
			given = !optarg || strcmp(optarg, "false") != 0;
	}
	return given;
}

int options_parse(const struct options *options, int argc, char **argv, int *ret_first)
{
	struct options_asked asked = {0};
	struct options_group own = {NULL, options_own_specs, ARRAY_SIZE(options_own_specs), &asked};
	struct options_table table = {0};
	int code;

	(void)snprintf(
		table.shorts, sizeof(table.shorts), "%s:", options->stop_at_operand ? "+" : "");
	for (size_t i = 0; i < options->n_groups; i++)
		options_add_group(&table, &options->groups[i]);
	options_add_group(&table, &own);
	optind = 0; /* glibc: restarts */
	opterr = 0;
	if (options_complete && argc > 1)
		return options_parse_unfinished(options, &table, argc, argv);
	for (;;) {
		int before = optind ? optind : 1;
		code = getopt_long(argc, argv, table.shorts, table.longs, NULL);
		if (code == -1)
			break;
		bool refused = code == '?' || code == ':';
		int i = refused && !optopt ? -1 : options_find(&table, refused ? optopt : code);
		if (code == ':' && i >= 0)
			return options_bad(options, "option --%s needs a value: %s",
				table.specs[i]->name, table.specs[i]->value);
		if (refused && i >= 0)
			return options_bad(
				options, "option --%s takes no value", table.specs[i]->name);
		if (refused && optopt)
			return options_bad(options, "unknown option '-%c'", optopt);
		if (refused)
			return options_unknown(
				options, &table, argv[optind > before ? optind - 1 : before]);
		const char *value = options_value(table.specs[i], code, argv);
		if (table.specs[i]->type == OPTION_TEXT_OPTIONAL) {
			if (!value && optind < argc && argv[optind][0] != '-')
				value = argv[optind++];
			if (value && !*value) /* an unset variable is not the default */
				return options_bad(options, "option --%s: its value is empty",
					table.specs[i]->name);
			value = value ? value : "";
		}
		int r = options_store(
			table.specs[i], (char *)table.into[i] + table.specs[i]->offset, value);
		if (r == ERR_SYNTAX) {
			(void)err_add(r, "option --%s", table.specs[i]->name);
			return options_bad(options, "%s", err_text(r));
		}
		if (r < 0)
			return r;
		if (asked.help || asked.version)
			return options_print(options, asked.help);
	}
	*ret_first = optind;
	return 0;
}

/* ---- help --------------------------------------------------------------- */

/* Ends a line of AT columns with TEXT; wraps it, and indents the further lines by INDENT. */
static void options_wrap(struct buf *out, size_t at, size_t indent, const char *text)
{
	for (size_t size, i = 0; *text; text += size + (text[size] == ' '), i++) {
		size = strcspn(text, " ");
		if (i && at + 1 + size > HELP_WIDTH) {
			buf_byte(out, '\n');
			buf_blanks(out, indent);
			at = indent;
		} else if (i) {
			buf_byte(out, ' ');
			at++;
		}
		buf_put(out, text, size);
		at += size;
	}
	buf_byte(out, '\n');
}

static void options_help_group(const struct options_group *group, struct buf *out)
{
	for (size_t i = 0; i < group->n; i++) {
		const struct option_spec *spec = &group->specs[i];
		char left[64];
		char letter[5] = "    ";
		if (spec->letter)
			(void)snprintf(letter, sizeof(letter), "-%c, ", spec->letter);
		bool optional = spec->type == OPTION_TEXT_OPTIONAL;
		(void)snprintf(left, sizeof(left), "%s--%s%s%s%s", letter, spec->name,
			optional                 ? " ["
			: option_has_value(spec) ? " "
						 : "",
			option_has_value(spec) ? spec->value : "", optional ? "]" : "");
		size_t before = out->size;
		buf_printf(out, "  %-30s ", left);
		options_wrap(out, out->size - before, HELP_INDENT, spec->text);
	}
}

static void options_help(const struct options *options, struct buf *out)
{
	struct options_group own = {NULL, options_own_specs, ARRAY_SIZE(options_own_specs), NULL};

	buf_printf(out, "Usage: %s%s%s [options]\n", options_program(options),
		*options->usage ? " " : "", options->usage);
	if (options->about) {
		buf_byte(out, '\n');
		options_wrap(out, 0, 0, options->about);
	}
	for (size_t i = 0; i < options->n_groups; i++) {
		buf_printf(out, "\n%s:\n", options->groups[i].title);
		options_help_group(&options->groups[i], out);
	}
	options_help_group(&own, out);
}
