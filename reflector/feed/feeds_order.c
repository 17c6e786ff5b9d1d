/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the order of discovery in the journal: readers take the first resource of several that
 * have a name in common, as kubectl does, also while the API server is away and in a copy of the
 * store.
 */
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/feed/feeds_internal.h"
#include "reflector/record/recorder.h"

#define ORDER_MAX (256u << 10) /* a cluster with 1,000 groups has 30 kB */

struct order_gather {
	const struct resource *last;
	struct buf *out;
};

/* Appends a line unless the resource before had the same group and version. */
static int order_gather_one(void *arg, const struct resource *resource)
{
	struct order_gather *gather = arg;
	const struct resource *last = gather->last;

	gather->last = resource;
	if (last && strcmp(last->group, resource->group) == 0 &&
		strcmp(last->version, resource->version) == 0)
		return 0;
	buf_printf(gather->out, "%s%s%s\n", resource->group, *resource->group ? "/" : "",
		resource->version);
	return gather->out->size > ORDER_MAX;
}

int order_load(struct feeds *feeds, struct txn *txn)
{
	struct bytes stored;
	int r = journal_order(feeds->journal, txn, &stored);

	if (r < 0)
		return r;
	buf_bytes_put(&feeds->order, stored);
	return buf_error(&feeds->order);
}

void order_discovered(struct feeds *feeds)
{
	struct order_gather gather = {.out = &feeds->order};

	buf_reset(&feeds->order);
	/* The first lines are enough: the API server's own groups come first. */
	(void)discovery_each(feeds->shared.discovery, order_gather_one, &gather);
	if (buf_error(&feeds->order) < 0)
		buf_reset(&feeds->order);
	feeds->order_changed = feeds->order.size != 0;
}

int order_due(struct feeds *feeds)
{
	struct recorder *recorder = feeds->shared.recorder;

	if (!feeds->order_changed)
		return 0;
	int r = recorder_begin(recorder);
	if (r < 0)
		return r;
	feeds->order_changed = false;
	r = journal_set_order(feeds->journal, buf_bytes(&feeds->order));
	if (r < 0)
		return recorder_fail(recorder, r);
	if (r == 0)
		recorder_changed(recorder);
	return 0;
}
