/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/informer/resync.h"

static uint64_t period_of(const struct resync *resync, uint64_t wanted_ns)
{
	if (!wanted_ns || !resync->check_ns)
		return 0;
	return wanted_ns < resync->check_ns ? resync->check_ns : wanted_ns;
}

/* A look is late by up to a share of the check, so that programs that were started together do not
 * all read at once. */
static uint64_t jitter(struct resync *resync)
{
	resync->random = resync->random * 1103515245u + 12345u;
	return resync->check_ns / 100 * resync->jitter_percent / 256 * (resync->random >> 16 & 255);
}

static void set_next_look(struct resync *resync, uint64_t now)
{
	resync->next_ns = resync->check_ns ? now + resync->check_ns + jitter(resync) : 0;
}

bool resync_add(struct resync *resync, struct resync_handler *handler, uint64_t wanted_ns, uint64_t now)
{
	bool changed = false;

	if (wanted_ns == UINT64_MAX)
		wanted_ns = resync->default_ns;
	if (wanted_ns && wanted_ns < RESYNC_MIN_NS)
		wanted_ns = RESYNC_MIN_NS;
	if (wanted_ns && !resync->check_ns) {
		resync->check_ns = wanted_ns; /* nobody had any: nothing to adjust */
		if (resync->started)
			set_next_look(resync, now);
	} else if (wanted_ns && wanted_ns < resync->check_ns) {
		changed = !resync->started;
		if (changed)
			resync->check_ns = wanted_ns;
		else
			wanted_ns = resync->check_ns;
	}
	handler->wanted_ns = wanted_ns;
	handler->period_ns = period_of(resync, wanted_ns);
	handler->next_ns = now + handler->period_ns;
	return changed;
}

void resync_adjust(const struct resync *resync, struct resync_handler *handler)
{
	handler->period_ns = period_of(resync, handler->wanted_ns);
}

void resync_start(struct resync *resync, uint64_t now)
{
	resync->started = true;
	resync->random = (uint32_t)now;
	set_next_look(resync, now);
}

bool resync_look(struct resync *resync, uint64_t now)
{
	if (!resync->next_ns || now < resync->next_ns)
		return false;
	set_next_look(resync, now);
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
