/* SPDX-License-Identifier: Apache-2.0 */
/* Policies: how the API server is asked, and what of its answers is believed at once. */
#include "common/config/config_build.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/decimal.h"
#include "common/err.h"

#define MS     ((uint64_t)1000000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

#define LISTS_MAX  1000
#define OBJECT_MIN ((uint64_t)64 << 10)
#define OBJECT_MAX ((uint64_t)1 << 30)

struct config_policy config_policy_default(void)
{
	return (struct config_policy){
		.list_concurrency = 4,
		.watch_ns = 5 * MINUTE,
		.backoff_min_ns = 800 * MS,
		.backoff_max_ns = 15 * SECOND,
		.connect_ns = 10 * SECOND,
		.answer_ns = MINUTE,
		.silence_ns = 2 * MINUTE,
		.recheck_ns = 15 * SECOND,
		.max_object_bytes = (uint64_t)64 << 20,
		.hold_pause_ns = 30 * SECOND,
	};
}

struct range {
	uint64_t min, max;
	const char *text; /* as people write it */
};

static int read_duration_in(const struct place *place, const struct yaml_node *node,
	const struct range *range, uint64_t *to)
{
	uint64_t ns;

	int r = config_read_duration(place, node, &ns);
	if (r < 0)
		return r;
	if (ns < range->min || ns > range->max)
		return place_bad(place, "'%s': allowed are %s", node->text, range->text);
	*to = ns;
	return 0;
}

/* ---- single values -------------------------------------------------------------------------------- */

int config_read_list_concurrency(const struct place *place, const struct yaml_node *node, void *to)
{
	struct config_policy *policy = to;

	return config_read_number(place, node, 1, LISTS_MAX, &policy->list_concurrency);
}

int config_read_watch_timeout(const struct place *place, const struct yaml_node *node, void *to)
{
	static const struct range range = {SECOND, 24 * HOUR, "1s to 24h"};
	struct config_policy *policy = to;

	return read_duration_in(place, node, &range, &policy->watch_ns);
}

int config_read_recheck(const struct place *place, const struct yaml_node *node, void *to)
{
	static const struct range range = {10 * MS, 24 * HOUR, "10ms to 24h"};
	struct config_policy *policy = to;

	return read_duration_in(place, node, &range, &policy->recheck_ns);
}

int config_read_streaming(const struct place *place, const struct yaml_node *node, void *to)
{
	static const char *const names[] = {"false", "true", NULL};
	struct config_policy *policy = to;

	return config_read_either(place, node, names, &policy->streaming_lists);
}

int config_read_object_size(const struct place *place, const struct yaml_node *node, void *to)
{
	struct config_policy *policy = to;
	uint64_t bytes;

	int r = config_read_size(place, node, &bytes);
	if (r < 0)
		return r;
	if (bytes < OBJECT_MIN || bytes > OBJECT_MAX)
		return place_bad(place, "'%s': allowed are 64KiB to 1GiB", node->text);
	policy->max_object_bytes = bytes;
	return 0;
}

int config_read_check(const struct place *place, const struct yaml_node *node, void *to)
{
	struct config_policy *policy = to;
	uint64_t ns;

	int r = config_read_duration(place, node, &ns);
	if (r < 0)
		return r;
	if (ns && (ns < SECOND || ns > 365 * 24 * HOUR))
		return place_bad(place, "'%s': allowed are 1s to 365d, and 0s for none", node->text);
	policy->check_ns = ns;
	return 0;
}

/* ---- maps ----------------------------------------------------------------------------------------- */

static int read_pause(const struct place *place, const struct yaml_node *node, void *to)
{
	static const struct range range = {MS, HOUR, "1ms to 1h"};

	return read_duration_in(place, node, &range, to);
}

static int read_timeout(const struct place *place, const struct yaml_node *node, void *to)
{
	static const struct range range = {100 * MS, HOUR, "100ms to 1h"};

	return read_duration_in(place, node, &range, to);
}

/* A watch that ends within a second counts as refused (feed.c). */
static int read_silence(const struct place *place, const struct yaml_node *node, void *to)
{
	static const struct range range = {SECOND, 24 * HOUR, "1s to 24h"};

	return read_duration_in(place, node, &range, to);
}

#define AT(field) offsetof(struct config_policy, field)

int config_read_backoff(const struct place *place, const struct yaml_node *node, void *to)
{
	static const struct config_key keys[] = {
		{"min", read_pause, AT(backoff_min_ns)},
		{"max", read_pause, AT(backoff_max_ns)},
		{0},
	};
	const struct config_policy *policy = to;

	int r = config_read_map(place, node, keys, to);
	if (r == 0 && policy->backoff_min_ns > policy->backoff_max_ns)
		return place_bad(place, "min must not be more than max (defaults are 800ms and 15s)");
	return r;
}

int config_read_timeouts(const struct place *place, const struct yaml_node *node, void *to)
{
	static const struct config_key keys[] = {
		{"connect", read_timeout, AT(connect_ns)},
		{"answer", read_timeout, AT(answer_ns)},
		{"silence", read_silence, AT(silence_ns)},
		{0},
	};

	return config_read_map(place, node, keys, to);
}

/* "50%": 50; "off": 0. More than all objects can't go, so there is no 100%. */
static int read_share(const struct place *place, const struct yaml_node *node, void *to)
{
	const char *text;
	uint64_t n;

	int r = config_scalar(place, node, &text);
	if (r < 0)
		return r;
	size_t size = strlen(text);
	if (strcmp(text, "off") == 0)
		n = 0;
	else if (text[size - 1] != '%' || decimal_parse(BYTES(text, size - 1), 99, &n) < 0 || n == 0)
		return place_bad(place, "not a share: '%s'; allowed are 1%% to 99%%, and off", text);
	*(uint32_t *)to = (uint32_t)n;
	return 0;
}

int config_read_hold(const struct place *place, const struct yaml_node *node, void *to)
{
	static const struct config_key keys[] = {
		{"share", read_share, AT(hold_percent)},
		{"pause", read_pause, AT(hold_pause_ns)},
		{0},
	};
	struct config_policy *policy = to;

	if (node->type == YAML_MAP)
		return config_read_map(place, node, keys, to);
	return read_share(place, node, &policy->hold_percent);
}
