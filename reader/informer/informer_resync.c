/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effective resync period: the handler's own (KINF_OWN_RESYNC), else the informer's own, else
 * `resync` of the feed in kinf.yaml. The last one is in the feed's definition in the journal, so it
 * is read whenever the feeds are checked, and counts from then on.
 */
#include "common/proc.h"
#include "reader/informer/informer.h"

#define MS UINT64_C(1000000)
/* A reload gives every program of the machine the same period in the same second. Without jitter
 * they would all read the cache at the same time, each time. */
#define FEED_JITTER_PERCENT 10

static uint64_t ms_to_ns(uint64_t ms)
{
	return ms > RESYNC_MAX_NS / MS ? RESYNC_MAX_NS : ms * MS;
}

void informer_resync_init(
	struct kinf_informer *informer, const struct kinf_informer_options *options)
{
	informer->own_resync = options->resync_ms || (options->flags & KINF_OWN_DEFAULT_RESYNC);
	informer->resync.jitter_percent = options->resync_jitter_percent;
	informer->own_jitter = options->resync_jitter_percent != 0;
	(void)resync_set_default(
		&informer->resync, ms_to_ns(options->resync_ms)); /* no handlers yet */
}

void informer_resync_add(struct kinf_informer *informer, struct kinf_handler *h)
{
	bool own = (h->options.flags & KINF_OWN_RESYNC) != 0;
	uint64_t now = proc_monotonic_ns();

	if (!resync_add(&informer->resync, &h->resync,
		    own ? ms_to_ns(h->options.resync_ms) : RESYNC_DEFAULT, now))
		return;
	for (struct kinf_handler *other = informer->first; other; other = other->next)
		resync_adjust(&informer->resync, &other->resync, now);
}

void informer_resync_update(struct kinf_informer *informer, const struct feed_set *set)
{
	struct resync *resync = &informer->resync;
	uint64_t now = proc_monotonic_ns(), least = 0;

	/* The feeds are of one configuration entry. Their periods differ only while a reload
	 * changes them one by one. */
	for (size_t i = 0; i < set->n; i++) {
		uint64_t ns = set->feeds[i].definition.resync_ns;

		if (ns && (!least || ns < least))
			least = ns;
	}
	if (informer->own_resync || !resync_set_default(resync, least))
		return;
	if (!informer->own_jitter)
		resync->jitter_percent = resync->default_ns ? FEED_JITTER_PERCENT : 0;
	for (struct kinf_handler *h = informer->first; h; h = h->next)
		if (!h->removed)
			resync_ask_again(resync, &h->resync);
	for (struct kinf_handler *h = informer->first; h; h = h->next)
		resync_adjust(resync, &h->resync, now);
	resync_check_sooner(resync, now);
}

void informer_resync_check(struct kinf_informer *informer, uint64_t now)
{
	if (!resync_is_time(&informer->resync, now))
		return;
	for (struct kinf_handler *h = informer->first; h; h = h->next)
		h->resync_owed |= resync_due(&h->resync, now);
}
