/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/swarm_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/proc.h"
#include "tests/bench/measure.h"

struct swarm_usage swarm_run_usage(const struct swarm_run *run)
{
	struct swarm_usage usage = {0};
	char path[64], line[512];
	uint64_t value, user, kernel;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)run->server);
	FILE *file = fopen(path, "re");
	must_true(file != NULL, "the server's process has ended");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "RssAnon: %" SCNu64, &value) == 1)
			usage.private = value * 1024;
		if (sscanf(line, "VmRSS: %" SCNu64, &value) == 1)
			usage.peak = value * 1024;
	}
	(void)fclose(file); /* only read */
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)run->server);
	file = fopen(path, "re");
	must_true(file && fgets(line, sizeof(line), file), "the server's process has ended");
	(void)fclose(file);
	const char *rest = strrchr(line, ')');
	must_true(rest && sscanf(rest,
				  ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64
				  " %" SCNu64,
				  &user, &kernel) == 2,
		"/proc/PID/stat");
	usage.cpu_s = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
	return usage;
}

struct swarm_connection *swarm_run_connect(struct swarm_run *run)
{
	struct swarm_connection *c = swarm_connect(&run->swarm);

	must_true(c != NULL, "the server does not take connections");
	return c;
}

void swarm_run_for(struct swarm_run *run, uint64_t ns)
{
	for (uint64_t end = proc_monotonic_ns() + ns; proc_monotonic_ns() < end;)
		swarm_turn(&run->swarm, 10);
}
