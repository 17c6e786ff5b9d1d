/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When bytes last came from the network: a page shared by stamp.so, which is loaded into
 * kinf-reflector before libcurl, and watchlag, which reads it when an event arrives. The same is
 * done to client-go where it is measured (its transport notes when a read of the watch returned),
 * but above TLS and HTTP/2; here below, so our figure has more in it. Right only while nothing else
 * arrives: at a moderate rate, and on one watch.
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
