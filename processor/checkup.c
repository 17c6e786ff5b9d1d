/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/checkup.h"

#include <errno.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/ring/damage.h"
#include "store/verify/verify.h"

#define PAUSE_MIN_NS (60 * UINT64_C(1000000000))
#define PAUSE_MAX_NS (60 * PAUSE_MIN_NS)

void checkup_release(struct checkup *checkup)
{
	cleanup_fd(&checkup->fd);
}

void checkup_receive(struct checkup *checkup, struct home *home)
{
	struct damage_report report;

	damage_keep(home, DAMAGE_PROCESSOR, &checkup->fd);
	for (int n = 0; n < DAMAGE_REPORTS_MAX && damage_receive(checkup->fd, &report) == FOUND;
		n++)
		checkup->asked = true;
}

static void checkup_keep_first(void *arg, const char *sentence)
{
	char *first = arg;

	if (!*first)
		(void)snprintf(first, 256, "%s", sentence);
}

static int checkup_tick(void *arg)
{
	return processor_tick(arg);
}

int checkup_run(struct checkup *checkup, const struct processor *p)
{
	uint64_t now = proc_monotonic_ns();
	struct verify_report report = {0};
	char first[256] = "";
	struct processor attended = *p;
	const struct verify_options options = {.index_only = true,
		.fault = checkup_keep_first,
		.arg = first,
		.tick = checkup_tick,
		.tick_arg = &attended};

	if (!checkup->asked || now < checkup->after_ns)
		return 0;
	checkup->asked = false;
	int r = verify_store(home_path(p->home), &options, &report);
	if (r == 0 && report.faults) {
		checkup->pause_ns = checkup->after_ns = 0;
		return err_say(ERR_CORRUPT, "%s", first);
	}
	checkup->pause_ns = checkup->pause_ns ? checkup->pause_ns * 2 : PAUSE_MIN_NS;
	if (checkup->pause_ns > PAUSE_MAX_NS)
		checkup->pause_ns = PAUSE_MAX_NS;
	checkup->after_ns = proc_monotonic_ns() + checkup->pause_ns;
	if (r == -EINTR)
		return r;
	err_ignore(r, "the next report has the index checked again");
	return 0;
}
