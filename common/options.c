/* SPDX-License-Identifier: Apache-2.0 */
#include "common/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/config/units.h"
#include "common/decimal.h"
#include "common/err.h"

#define SPECS_MAX  64
#define FIRST_CODE 256 /* long options without a letter, and all we look up, start here */

struct asked {
	bool help, version;
};

static const struct option_spec own_specs[] = {
	{'h', "help", OPTION_FLAG, offsetof(struct asked, help), NULL, "print this and exit"},
	{0, "version", OPTION_FLAG, offsetof(struct asked, version), NULL,
		"print the version and exit"},
};

/* All groups' options in one row, as getopt_long(3) wants them. Its `val` is FIRST_CODE + the place
 * here; the letters are looked up. */
struct row {
	const struct option_spec *specs[SPECS_MAX];
	void *into[SPECS_MAX];
	size_t n;
	struct option longs[SPECS_MAX + 1];
	char shorts[2 * SPECS_MAX + 3];
};

static bool has_value(const struct option_spec *spec)
{
	return spec->type != OPTION_FLAG && spec->type != OPTION_COUNT;
}

static void add_group(struct row *row, const struct options_group *group)
{
	for (size_t i = 0; i < group->n && row->n < SPECS_MAX; i++, row->n++) {
		const struct option_spec *spec = &group->specs[i];
		row->specs[row->n] = spec;
		row->into[row->n] = group->into;
		row->longs[row->n] = (struct option){.name = spec->name,
			.has_arg = has_value(spec) ? required_argument : no_argument,
			.val = FIRST_CODE + (int)row->n};
		size_t size = strlen(row->shorts);
		if (spec->letter)
			(void)snprintf(row->shorts + size, sizeof(row->shorts) - size, "%c%s",
				spec->letter, has_value(spec) ? ":" : "");
	}
}

static int find_spec(const struct row *row, int code)
{
	if (code >= FIRST_CODE)
		return code - FIRST_CODE;
	for (size_t i = 0; i < row->n; i++) {
		if (row->specs[i]->letter == code)
			return (int)i;
	}
	return -1;
}

void option_texts_release(struct option_texts *texts)
{
	free(texts->items);
	*texts = (struct option_texts){0};
}

static int add_text(struct option_texts *texts, const char *text)
{
	const char **items = reallocarray(texts->items, texts->n + 1, sizeof(*items));

	if (!items)
		return err_set(-ENOMEM, "options");
	texts->items = items;
	texts->items[texts->n++] = text;
	return 0;
}

static int store(const struct option_spec *spec, void *to, const char *value)
{
	switch (spec->type) {
	case OPTION_FLAG:
		*(bool *)to = true;
		return 0;
	case OPTION_COUNT:
		++*(unsigned *)to;
		return 0;
	case OPTION_TEXT:
		*(const char **)to = value;
		return 0;
	case OPTION_TEXTS:
		return add_text(to, value);
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

int options_bad(const struct options *options, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return err_say(ERR_SYNTAX, "%s; see '%s --help'", text, options->program);
}

/* getopt_long said '?' or ':'; ARGUMENT is the one it looked at. */
static int refuse(const struct options *options, const struct row *row, int outcome,
	const char *argument)
{
	int i = optopt ? find_spec(row, optopt) : -1;

	if (i >= 0 && outcome == ':')
		return options_bad(options, "option --%s needs a value: %s", row->specs[i]->name,
			row->specs[i]->value);
	if (i >= 0)
		return options_bad(options, "option --%s takes no value", row->specs[i]->name);
	if (optopt)
		return options_bad(options, "unknown option '-%c'", optopt);
	return options_bad(options, "unknown or ambiguous option '%s'", argument);
}

static int take_one(const struct options *options, const struct row *row, int code)
{
	int i = find_spec(row, code);

	int r = store(row->specs[i], (char *)row->into[i] + row->specs[i]->offset, optarg);
	if (r == ERR_SYNTAX) {
		(void)err_add(r, "option --%s", row->specs[i]->name);
		return options_bad(options, "%s", err_text(r));
	}
	return r;
}

static int print(const struct options *options, bool help)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;

	if (help)
		options_help(options, &out);
	else
		buf_printf(&out, "%s %s\n", options->program, KINF_VERSION);
	int r = buf_error(&out);
	if (r < 0)
		return r;
	if (fwrite(out.data, 1, out.size, stdout) != out.size || fflush(stdout) != 0)
		return err_set(-EIO, "writing to the standard output");
	return END;
}

int options_parse(const struct options *options, int argc, char **argv, int *ret_first)
{
	struct asked asked = {0};
	struct options_group own = {NULL, own_specs, ARRAY_SIZE(own_specs), &asked};
	struct row row = {0};
	int code;

	(void)snprintf(row.shorts, sizeof(row.shorts), "%s:", options->stop_at_operand ? "+" : "");
	for (size_t i = 0; i < options->n_groups; i++)
		add_group(&row, &options->groups[i]);
	add_group(&row, &own);
	optind = 0; /* glibc: begin anew */
	opterr = 0;
	for (;;) {
		int before = optind ? optind : 1;
		code = getopt_long(argc, argv, row.shorts, row.longs, NULL);
		if (code == -1)
			break;
		if (code == '?' || code == ':')
			return refuse(options, &row, code, argv[optind > before ? optind - 1 : before]);
		int r = take_one(options, &row, code);
		if (r < 0)
			return r;
		if (asked.help || asked.version)
			return print(options, asked.help);
	}
	*ret_first = optind;
	return 0;
}

/* ---- help ---------------------------------------------------------------------------------------- */

static void help_group(const struct options_group *group, struct buf *out)
{
	for (size_t i = 0; i < group->n; i++) {
		const struct option_spec *spec = &group->specs[i];
		char left[64];
		char letter[5] = "    ";
		if (spec->letter)
			(void)snprintf(letter, sizeof(letter), "-%c, ", spec->letter);
		(void)snprintf(left, sizeof(left), "%s--%s%s%s", letter, spec->name,
			has_value(spec) ? " " : "", has_value(spec) ? spec->value : "");
		buf_printf(out, "  %-30s %s\n", left, spec->text);
	}
}

void options_help(const struct options *options, struct buf *out)
{
	struct options_group own = {NULL, own_specs, ARRAY_SIZE(own_specs), NULL};

	buf_printf(out, "Usage: %s%s%s [options]\n", options->program, *options->usage ? " " : "",
		options->usage);
	if (options->about)
		buf_printf(out, "\n%s\n", options->about);
	for (size_t i = 0; i < options->n_groups; i++) {
		buf_printf(out, "\n%s:\n", options->groups[i].title);
		help_group(&options->groups[i], out);
	}
	help_group(&own, out);
}
