/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/config_rig.h"

#define MS     1000000ull
#define SECOND (1000 * MS)

#define NOT_A_SHARE(text) \
	"k.yaml:1: holdMassDelete: not a share: '" text "'; allowed are 1% to 99%, and off"

Test(config_policy, defaults_are_those_of_client_go)
{
	CLEANUP(config_free) struct config *c = parse("");
	const struct config_policy *p = &c->policy;

	cr_assert_eq(p->watch_ns, 300 * SECOND);
	cr_assert_eq(p->backoff_min_ns, 800 * MS);
	cr_assert_eq(p->backoff_max_ns, 15 * SECOND);
	cr_assert_eq(p->list_concurrency, 4);
	cr_assert_eq(p->check_ns, 0);
	cr_assert_eq(p->connect_ns, 10 * SECOND);
	cr_assert_eq(p->answer_ns, 60 * SECOND);
	cr_assert_eq(p->max_object_bytes, 64u << 20);
	cr_assert(!p->streaming_lists);
}

Test(config_policy, each_key_is_taken)
{
	CLEANUP(config_free)
	struct config *c = parse("listConcurrency: 7\n"
				 "watchTimeout: 1h\n"
				 "backoff: {min: 100ms, max: 5s}\n"
				 "timeouts: {connect: 2s, answer: 3s, silence: 4s}\n"
				 "streamingLists: true\n"
				 "maxObjectSize: 1MiB\n"
				 "holdMassDelete: {share: 20%, pause: 5s}\n"
				 "consistencyCheck: 1h\n");
	const struct config_policy *p = &c->policy;

	cr_assert_eq(p->list_concurrency, 7);
	cr_assert_eq(p->watch_ns, 3600 * SECOND);
	cr_assert_eq(p->backoff_min_ns, 100 * MS);
	cr_assert_eq(p->backoff_max_ns, 5 * SECOND);
	cr_assert_eq(p->connect_ns, 2 * SECOND);
	cr_assert_eq(p->answer_ns, 3 * SECOND);
	cr_assert_eq(p->silence_ns, 4 * SECOND);
	cr_assert_eq(p->max_object_bytes, 1u << 20);
	cr_assert_eq(p->hold_percent, 20);
	cr_assert_eq(p->hold_pause_ns, 5 * SECOND);
	cr_assert_eq(p->check_ns, 3600 * SECOND);
	cr_assert(p->streaming_lists);
}

struct key {
	const char *name, *help;
	bool of_feed;
};

static const struct key keys[] = {
#define KEY(key, type, field, minimum, maximum, initial, restart, help) {key, help, false},
#define FEED_KEY(key, type, field, minimum, maximum, initial, help)     {key, help, true},
#include "common/config/config.def"
#undef FEED_KEY
#undef KEY
};

/* Fuzzing begins with this file, so it must not be refused at one of the first keys. */
Test(config_policy, the_seed_of_the_fuzz_target_has_every_key_and_is_accepted)
{
	char text[8192], name[64];
	FILE *file = fopen("tests/fuzz/seeds/config/every-key", "re");

	cr_assert_not_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	(void)fclose(file);
	struct config *c = parse(text);
	config_free(&c);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *dot = strrchr(keys[i].name, '.');

		(void)snprintf(name, sizeof(name), "%s:", dot ? dot + 1 : keys[i].name);
		cr_expect(strstr(text, name), "%s", keys[i].name);
	}
}

/* kinf.yaml(5) said it of hangLimit, and 0s was refused. */
Test(config_policy, keys_whose_help_says_what_0s_means_take_it)
{
	unsigned n = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!strstr(keys[i].help, "0s: "))
			continue;
		const char *key = keys[i].name, *dot = strchr(key, '.');
		char text[200];
		if (keys[i].of_feed)
			(void)snprintf(
				text, sizeof(text), "feeds: [{resource: pods, %s: 0s}]", key);
		else if (dot)
			(void)snprintf(text, sizeof(text), "%.*s: {%s: 0s}", (int)(dot - key), key,
				dot + 1);
		else
			(void)snprintf(text, sizeof(text), "%s: 0s", key);
		struct config *c = parse(text);
		config_free(&c);
		n++;
	}
	cr_assert_eq(n, 4);
}

Test(config_policy, guard_against_mass_deletes_is_off_unless_a_share_is_named)
{
	static const struct {
		const char *text;
		uint32_t percent;
	} cases[] = {{"", 0}, {"holdMassDelete: 50%", 50}, {"holdMassDelete: off", 0},
		{"holdMassDelete: false", 0}, {"holdMassDelete: {pause: 1s}", 0},
		{"holdMassDelete: {share: 'off'}", 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config *c = parse(cases[i].text);

		cr_assert_eq(c->policy.hold_percent, cases[i].percent, "%s", cases[i].text);
		config_free(&c);
	}
}

Test(config_policy, each_key_wrong_in_turn)
{
	static const struct wrong wrong[] = {
		{"listConcurrency: all",
			"k.yaml:1: listConcurrency: not a number: 'all'; allowed are 1 to 1000"},
		{"watchTimeout: 999ms", "k.yaml:1: watchTimeout: '999ms': allowed are 1s to 24h"},
		{"backoff: {max: 500ms}", "k.yaml:1: backoff: min must not be more than max "
					  "(defaults are 800ms and 15s)"},
		{"timeouts: {connect: 99ms}",
			"k.yaml:1: timeouts.connect: '99ms': allowed are 100ms to 1h"},
		{"streamingLists: sometimes", "k.yaml:1: streamingLists: must be true or false, "
					      "not 'sometimes'; on, off, yes and no mean the same"},
		{"maxObjectSize: 63KiB",
			"k.yaml:1: maxObjectSize: '63KiB': allowed are 64KiB to 1GiB"},
		{"holdMassDelete: 50", NOT_A_SHARE("50")},
		{"holdMassDelete: 100%", NOT_A_SHARE("100%")},
		{"holdMassDelete: 0%", NOT_A_SHARE("0%")},
		{"holdMassDelete: '%'", NOT_A_SHARE("%")},
		{"consistencyCheck: 999ms", "k.yaml:1: consistencyCheck: '999ms': allowed are 1s "
					    "to 365d, and 0s for none"},
	};

	expect_refusals(wrong, ARRAY_SIZE(wrong));
}
