/* SPDX-License-Identifier: Apache-2.0 */
#include "common/moment.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/err.h"
#include "common/proc.h"

static uint64_t moment_boot(void)
{
	static _Thread_local uint64_t known; /* reading it costs some system calls */
	char id[33];

	if (known)
		return known;
	int r = proc_boot_id(id);
	if (r < 0) {
		err_ignore(r, "ages are measured by the wall clock then");
		return 0;
	}
	(void)sscanf(id, "%16" SCNx64, &known); /* hex digits */
	return known;
}

void moment_now(struct moment *ret_moment)
{
	*ret_moment = (struct moment){.realtime_ns = proc_realtime_ns(),
		.boottime_ns = proc_boottime_ns(),
		.boot = moment_boot()};
}

bool moment_age_ns(const struct moment *moment, uint64_t *ret_age_ns)
{
	bool same_boot = moment->boot && moment->boot == moment_boot();
	uint64_t now = same_boot ? proc_boottime_ns() : proc_realtime_ns();
	uint64_t then = same_boot ? moment->boottime_ns : moment->realtime_ns;

	if (!moment->realtime_ns || then > now)
		return false;
	*ret_age_ns = now - then;
	return true;
}
