/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time at which bytes last came from the network, in a page shared by two programs: preload.so,
 * loaded into kinf-reflector before libcurl, writes it, and watchlag reads it when an event
 * arrives. The measurement of client-go notes the time when a read of the watch returns, which is
 * above TLS and HTTP/2; ours is below them, so our figure includes more. The time is only right
 * while no other bytes arrive: at a moderate rate, on one watch.
 */
#ifndef TESTS_BENCH_STAMP_H
#define TESTS_BENCH_STAMP_H

#include <stdatomic.h>
#include <stdint.h>

#define STAMP_FILE_VARIABLE "KINF_BENCH_STAMP" /* names the file, of sizeof(struct stamp) */

struct stamp {
	_Atomic uint64_t read_ns; /* CLOCK_MONOTONIC */
};

#endif
