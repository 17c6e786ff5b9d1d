/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/config/units.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/text/timestamp.h"
#include "common/value/selector_internal.h"

/* Sets the time D before the present one. */
static int limit_set_before_now(const char *d, struct selector_limit *limit)
{
	uint64_t now = proc_realtime_ns(), ago;
	int r = units_duration(d, &ago);

	if (r < 0)
		return r;
	limit->is_relative = true;
	limit->time_ns = (int64_t)now - (int64_t)(ago < INT64_MAX ? ago : INT64_MAX);
	return 0;
}

/* Reads an RFC 3339 text, a date, now or now-D. Returns false if TEXT is none of them. */
static bool limit_read_time(const char *text, struct selector_limit *limit)
{
	static const char midnight[] = "T00:00:00Z";
	char whole[32];

	limit->type = LIMIT_TIME;
	if (strcmp(text, "now") == 0)
		return limit_set_before_now("0", limit) == 0;
	if (strncmp(text, "now-", 4) == 0)
		return limit_set_before_now(text + 4, limit) == 0;
	if (timestamp_parse(bytes_str(text), &limit->time_ns))
		return true;
	if (strlen(text) != sizeof("2026-11-22") - 1)
		return false;
	(void)snprintf(whole, sizeof(whole), "%s%s", text, midnight);
	return timestamp_parse(bytes_str(whole), &limit->time_ns);
}

int selector_limit_read(struct bytes key, struct bytes text, struct selector_limit *ret_limit)
{
	AUTO_FREE char *copy = strndup(text.size ? text.data : "", text.size);

	*ret_limit = (struct selector_limit){.type = LIMIT_NUMBER};
	if (!copy)
		return err_set(-ENOMEM, "a field selector");
	if (bytes_equal(key, BYTES_LIT(SELECTOR_AGE))) {
		ret_limit->type = LIMIT_AGE;
		int r = limit_set_before_now(copy, ret_limit);
		return r < 0 ? err_add(r, SELECTOR_AGE) : 0;
	}
	if (quantity_read(text, &ret_limit->quantity) || limit_read_time(copy, ret_limit))
		return 0;
	return err_say(ERR_SYNTAX,
		"'%.*s' is compared with '%s': write a number (3, 500m, 1.5Gi), a time "
		"(2026-11-22, 2026-11-22T08:30:00Z) or a time ago (now-10m)",
		BYTES_ARG(key), copy);
}

bool selector_limit_allows(
	const struct selector_limit *limit, enum selector_op op, struct bytes text)
{
	struct quantity quantity;
	int64_t time_ns;
	int order;

	if (limit->type == LIMIT_NUMBER) {
		if (!quantity_read(text, &quantity))
			return false;
		order = quantity_compare(&quantity, &limit->quantity);
	} else {
		if (!timestamp_parse(text, &time_ns))
			return false;
		order = (time_ns > limit->time_ns) - (time_ns < limit->time_ns);
	}
	if (limit->type == LIMIT_AGE) /* the later, the younger */
		order = -order;
	return op == SELECTOR_GREATER         ? order > 0
	       : op == SELECTOR_LESS          ? order < 0
	       : op == SELECTOR_GREATER_EQUAL ? order >= 0
					      : order <= 0;
}
