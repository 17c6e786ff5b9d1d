/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/informer/resync.h"

/* Keeps a configured number within limits: no sum of times overflows. */
static uint64_t resync_bounded(uint64_t ns)
{
	if (ns && ns < RESYNC_MIN_NS)
		return RESYNC_MIN_NS;
	return ns > RESYNC_MAX_NS ? RESYNC_MAX_NS : ns;
}

static uint64_t resync_wish(const struct resync *resync, const struct resync_handler *handler)
{
	return resync_bounded(
		handler->asked_ns == RESYNC_DEFAULT ? resync->default_ns : handler->asked_ns);
}

static uint64_t resync_period(const struct resync *resync, uint64_t wanted_ns)
{
	if (!wanted_ns || !resync->check_ns)
		return 0;
	return wanted_ns < resync->check_ns ? resync->check_ns : wanted_ns;
}

/* Delays the check by up to a share of its period, to spread the reads of programs started
 * together. */
static void resync_set_next(struct resync *resync, uint64_t now)
{
	resync->next_ns = 0;
	if (!resync->check_ns)
		return;
	resync->random = resync->random * 1103515245u + 12345u;
	uint64_t jitter = resync->check_ns / 100 * resync->jitter_percent / 256 *
			  (resync->random >> 16 & 255);
	resync->next_ns = now + resync->check_ns + jitter;
}

bool resync_add(
	struct resync *resync, struct resync_handler *handler, uint64_t asked_ns, uint64_t now)
{
	bool changed = false;

	handler->asked_ns = asked_ns;
	uint64_t wanted_ns = resync_wish(resync, handler);
	if (wanted_ns && !resync->check_ns) {
		resync->check_ns = wanted_ns; /* no handler had a period: none to adjust */
		if (resync->started)
			resync_set_next(resync, now);
	} else if (wanted_ns && wanted_ns < resync->check_ns) {
		changed = !resync->started;
		if (changed)
			resync->check_ns = wanted_ns;
		else
			wanted_ns = resync->check_ns;
	}
	handler->wanted_ns = wanted_ns;
	handler->period_ns = resync_period(resync, wanted_ns);
	handler->next_ns = now + handler->period_ns;
	return changed;
}

bool resync_set_default(struct resync *resync, uint64_t default_ns)
{
	if (resync_bounded(default_ns) == resync->default_ns)
		return false;
	resync->default_ns = resync->check_ns = resync_bounded(default_ns);
	return true;
}

void resync_ask_again(struct resync *resync, struct resync_handler *handler)
{
	handler->wanted_ns = resync_wish(resync, handler);
	if (handler->wanted_ns && (!resync->check_ns || handler->wanted_ns < resync->check_ns))
		resync->check_ns = handler->wanted_ns;
}

void resync_adjust(const struct resync *resync, struct resync_handler *handler, uint64_t now)
{
	uint64_t period_ns = resync_period(resync, handler->wanted_ns);

	if (period_ns == handler->period_ns)
		return;
	handler->period_ns = period_ns;
	handler->next_ns = now + period_ns;
}

/* Keeps an earlier check. */
void resync_check_sooner(struct resync *resync, uint64_t now)
{
	bool sooner =
		!resync->next_ns || !resync->check_ns || resync->next_ns > now + resync->check_ns;

	if (resync->started && sooner)
		resync_set_next(resync, now);
}

void resync_start(struct resync *resync, uint64_t now)
{
	resync->started = true;
	resync->random = (uint32_t)now;
	resync_set_next(resync, now);
}

bool resync_is_time(struct resync *resync, uint64_t now)
{
	if (!resync->next_ns || now < resync->next_ns)
		return false;
	resync_set_next(resync, now);
	return true;
}

bool resync_due(struct resync_handler *handler, uint64_t now)
{
	if (!handler->period_ns || now < handler->next_ns)
		return false;
	handler->next_ns = now + handler->period_ns;
	return true;
}

uint64_t resync_next(const struct resync *resync)
{
	return resync->next_ns ? resync->next_ns : UINT64_MAX;
}
