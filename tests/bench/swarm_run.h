/* SPDX-License-Identifier: Apache-2.0 */
/* One run of swarm.c: its clients, and the server's process. */
#ifndef TESTS_BENCH_SWARM_RUN_H
#define TESTS_BENCH_SWARM_RUN_H

#include <sys/types.h>

#include "tests/bench/swarm_client.h"

#define SWARM_SECOND_NS UINT64_C(1000000000)
/* streams of a connection: as many as the API server allows */
#define SWARM_PER_HTTP2   100
#define SWARM_PATIENCE_NS (60 * SWARM_SECOND_NS)

struct swarm_run {
	struct swarm swarm;
	pid_t server;
};

/* The CPU time and the memory of the server's process so far. */
struct swarm_usage {
	double cpu_s;
	uint64_t private, peak; /* bytes: RssAnon, VmRSS */
};

/* These end the program with a sentence if they fail. */
struct swarm_usage swarm_run_usage(const struct swarm_run *run);
struct swarm_connection *swarm_run_connect(struct swarm_run *run);

void swarm_run_for(struct swarm_run *run, uint64_t ns);

static inline bool swarm_run_is_http2(const struct swarm_run *run)
{
	return run->swarm.target.protocol == SWARM_HTTP2;
}

#endif
