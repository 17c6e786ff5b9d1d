/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>

#include <stddef.h>

#include "common/bytes.h"
#include "common/config/config.h"
#include "common/options.h"
#include "tests/unit/unit.h"

struct args {
	const char *namespace;
	struct option_texts index;
	uint64_t limit, timeout, size;
	bool all;
};

#define AT(field) offsetof(struct args, field)

static const struct option_spec specs[] = {
	{'n', "namespace", OPTION_NAME, AT(namespace), "NS", "only this namespace"},
	{'A', "all", OPTION_FLAG, AT(all), NULL, "all namespaces"},
	{0, "index", OPTION_TEXTS, AT(index), "NAME=VALUE", "by index"},
	{0, "limit", OPTION_NUMBER, AT(limit), "N", "at most so many"},
	{0, "timeout", OPTION_DURATION, AT(timeout), "TIME", "at most so long"},
	{0, "size", OPTION_SIZE, AT(size), "SIZE", "at most so large"},
};

static struct args args;
static struct config_flags flags;
static int n_arguments, first;
static char *arguments[32];

static int parse_with(bool stop_at_operand, char *line)
{
	struct options_group groups[] = {
		{"Options", specs, ARRAY_SIZE(specs), &args}, config_common_options(&flags)};
	struct options options = {.program = "kinf get",
		.usage = "FEED [NAME...]",
		.about = "Prints objects.",
		.groups = groups,
		.n_groups = 2,
		.stop_at_operand = stop_at_operand};

	option_texts_release(&args.index);
	args = (struct args){.limit = 500};
	flags = (struct config_flags){0};
	n_arguments = 0;
	arguments[n_arguments++] = (char *)"kinf";
	for (char *save, *word = strtok_r(line, " ", &save); word;
		word = strtok_r(NULL, " ", &save))
		arguments[n_arguments++] = word;
	arguments[n_arguments] = NULL;
	return options_parse(&options, n_arguments, arguments, &first);
}

/* A copy of the literal: words are cut in place. */
#define PARSE(line) \
	({ \
		static char words_[] = line; \
		parse_with(false, words_); \
	})

static void release(void)
{
	option_texts_release(&args.index);
}

TestSuite(options, .fini = release);

Test(options, operands_may_come_anywhere)
{
	cr_assert_eq(
		PARSE("pods -n web x --limit=5 --index a=b y --index c=d -A -vv --store /s"), 0);
	cr_assert_str_eq(args.namespace, "web");
	cr_assert_eq(args.limit, 5);
	cr_assert(args.all);
	cr_assert_eq(args.index.n, 2);
	cr_assert_str_eq(args.index.items[0], "a=b");
	cr_assert_str_eq(args.index.items[1], "c=d");
	cr_assert_eq(flags.verbose, 2);
	cr_assert_str_eq(flags.store, "/s");
	cr_assert_eq(n_arguments - first, 3);
	cr_assert_str_eq(arguments[first], "pods");
	cr_assert_str_eq(arguments[first + 1], "x");
	cr_assert_str_eq(arguments[first + 2], "y");
}

Test(options, what_is_not_given_keeps_its_default)
{
	cr_assert_eq(PARSE("pods"), 0);
	cr_assert_eq(args.limit, 500);
	cr_assert_null(args.namespace);
	cr_assert_not(args.all);
}

Test(options, last_text_counts)
{
	cr_assert_eq(PARSE("-n a -nb --namespace=c"), 0);
	cr_assert_str_eq(args.namespace, "c");
}

Test(options, values_may_follow_an_equals_sign_as_in_kubectl)
{
	cr_assert_eq(PARSE("-n=a"), 0);
	cr_assert_str_eq(args.namespace, "a");
	cr_assert_eq(PARSE("-n =a"), 0);
	cr_assert_str_eq(args.namespace, "=a");
	cr_assert_eq(PARSE("--all=true"), 0);
	cr_assert(args.all);
	cr_assert_eq(PARSE("--all --all=false"), 0);
	cr_assert_not(args.all);
}

Test(options, units_are_understood)
{
	cr_assert_eq(PARSE("--timeout 1m30s --size 2KiB"), 0);
	cr_assert_eq(args.timeout, 90 * 1000000000ull);
	cr_assert_eq(args.size, 2048);
}

Test(options, two_dashes_end_them)
{
	cr_assert_eq(PARSE("-A -- -n x"), 0);
	cr_assert_eq(n_arguments - first, 2);
	cr_assert_str_eq(arguments[first], "-n");
}

static bool is_given(const char *name, char *line)
{
	struct options_group groups[] = {
		{"Options", specs, ARRAY_SIZE(specs), &args}, config_common_options(&flags)};
	struct options options = {
		.program = "kinf get", .usage = "", .groups = groups, .n_groups = 2};
	char *words[16] = {(char *)"kinf"}, *before[16];
	int n = 1;

	args = (struct args){0};
	for (char *save, *word = strtok_r(line, " ", &save); word;
		word = strtok_r(NULL, " ", &save))
		words[n++] = word;
	memcpy(before, words, sizeof(before));
	bool given = options_flag(&options, n, words, name);
	cr_assert_arr_eq(words, before, sizeof(before), "operands were moved");
	cr_assert_not(args.all, "an option was stored");
	return given;
}

#define IS_GIVEN(line) \
	({ \
		static char words_[] = line; \
		is_given("all", words_); \
	})

Test(options, an_empty_name_is_none)
{
	cr_assert_eq(PARSE("pods --namespace="), 0);
	cr_assert_null(args.namespace);
	cr_assert_eq(PARSE("pods -n web --namespace="), 0);
	cr_assert_null(args.namespace);
}

Test(options, a_flag_is_found_however_it_is_written)
{
	cr_assert(IS_GIVEN("-A"));
	cr_assert(IS_GIVEN("pods --all x"));
	cr_assert(IS_GIVEN("--all=true"));
	cr_assert(IS_GIVEN("--al pods"));
	cr_assert(IS_GIVEN("-vA"));
	cr_assert(IS_GIVEN("-Anweb"));
	cr_assert(IS_GIVEN("--frist -z -A --limit"), "errors are left to options_parse()");
	cr_assert(IS_GIVEN("--all=false -A"));
	cr_assert_not(IS_GIVEN("pods"));
	cr_assert_not(IS_GIVEN("--all=false"));
	cr_assert_not(IS_GIVEN("-A --all=false"));
	cr_assert_not(IS_GIVEN("-n -A"), "the value of another option");
	cr_assert_not(IS_GIVEN("-nA"));
	cr_assert_not(IS_GIVEN("-- -A"));
}

Test(options, a_subcommands_own_are_left_alone)
{
	char line[] = "-v get pods -n web --unknown";

	cr_assert_eq(parse_with(true, line), 0);
	cr_assert_eq(flags.verbose, 1);
	cr_assert_eq(n_arguments - first, 5);
	cr_assert_str_eq(arguments[first], "get");
	cr_assert_null(args.namespace);
}

#define REFUSED(line, sentence) \
	do { \
		cr_assert_eq(PARSE(line), ERR_SYNTAX, "%s", line); \
		cr_expect_str_eq(err_text(ERR_SYNTAX), sentence "; see 'kinf get --help'", "%s", \
			err_text(ERR_SYNTAX)); \
	} while (0)

Test(options, mistakes_are_said_in_one_line)
{
	REFUSED("pods --frist x", "unknown option '--frist'");
	REFUSED("pods x --frist=3 y", "unknown option '--frist=3'");
	REFUSED("--frist", "unknown option '--frist'");
	REFUSED("--limti 3", "unknown option '--limti': did you mean --limit?");
	REFUSED("--=3", "unknown option '--=3'");
	REFUSED("--s=3", "option '--s' may be --size, --store");
	REFUSED("pods -x", "unknown option '-x'");
	REFUSED("pods -Ax", "unknown option '-x'");
	REFUSED("pods -n", "option --namespace needs a value: NS");
	REFUSED("pods --namespace", "option --namespace needs a value: NS");
	REFUSED("--all=yes", "option --all: true or false, not 'yes'");
	REFUSED("--limit many", "option --limit: not a number: 'many'");
	REFUSED("--limit -1", "option --limit: not a number: '-1'");
	REFUSED("--limit 99999999999999999999",
		"option --limit: more than 18446744073709551615: '99999999999999999999'");
	REFUSED("--timeout 5",
		"option --timeout: not a duration: '5'; write one as 10m, 1h30m, 500ms or 0s");
	REFUSED("--log-format xml", "option --log-format: must be text or json, not 'xml'");
	REFUSED("--log-format js", "option --log-format: must be text or json, not 'js'");
	REFUSED("--log-format=", "option --log-format: must be text or json, not ''");
	REFUSED("--size 5x", "option --size: not a size: '5x'; write one as 1GiB, 64MiB, 500kB or "
			     "a number of bytes");
}

Test(options, help_comes_from_the_tables, .init = cr_redirect_stdout)
{
	cr_assert_eq(PARSE("pods --help --frist"), END);
	cr_assert_stdout_eq_str(
		"Usage: kinf get FEED [NAME...] [options]\n"
		"\n"
		"Prints objects.\n"
		"\n"
		"Options:\n"
		"  -n, --namespace NS             only this namespace\n"
		"  -A, --all                      all namespaces\n"
		"      --index NAME=VALUE         by index\n"
		"      --limit N                  at most so many\n"
		"      --timeout TIME             at most so long\n"
		"      --size SIZE                at most so large\n"
		"\n"
		"Common options:\n"
		"      --store DIR                the store (default that of --config or\n"
		"                                 --cluster, $KINF_STORE, the file's)\n"
		"      --runtime-dir DIR          rings and status pages (default as for the\n"
		"                                 store, with $KINF_RUNTIME_DIR)\n"
		"      --config FILE              default $KINF_CONFIG, ./kinf.yaml,\n"
		"                                 /etc/kinf/kinf.yaml\n"
		"      --cluster NAME             the configuration /etc/kinf/NAME.yaml and its\n"
		"                                 store; 'kinf clusters' lists them\n"
		"  -v, --verbose                  log more; twice: even more\n"
		"      --log-format FORMAT        text or json\n"
		"  -h, --help                     print this and exit\n"
		"      --version                  print the version and exit\n");
}

Test(options, version_names_the_program, .init = cr_redirect_stdout)
{
	cr_assert_eq(PARSE("--version"), END);
	cr_assert_stdout_eq_str("kinf get " KINF_VERSION "\n");
}

Test(options, options_of_those_that_run_repeat)
{
	struct options_group groups[] = {config_running_options(&flags)};
	struct options options = {
		.program = "kinf run", .usage = "", .groups = groups, .n_groups = 1};
	char *argv[] = {(char *)"kinf", (char *)"--watch", (char *)"pods", (char *)"--watch=nodes",
		(char *)"--durability", (char *)"disk", NULL};

	cr_assert_eq(options_parse(&options, 6, argv, &first), 0);
	cr_assert_eq(flags.watch.n, 2);
	cr_assert_str_eq(flags.watch.items[1], "nodes");
	cr_assert_str_eq(flags.durability, "disk");
	config_flags_release(&flags);
	cr_assert_eq(flags.watch.n, 0);
}
