/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latest times of the API server's bytes, in a page shared by two programs: preload.so, loaded
 * into kinf-reflector before libcurl, writes them, and watchlag reads them when an event arrives.
 * client-go's measurement notes the return of a read of the watch, above TLS and HTTP/2. Ours are
 * below both, and between them; the second is the one to compare, and still includes HTTP/2. The
 * times are only right while no other bytes arrive: at a moderate rate, on one watch.
 */
#ifndef TESTS_BENCH_STAMP_H
#define TESTS_BENCH_STAMP_H

#include <stdatomic.h>
#include <stdint.h>

#define STAMP_FILE_VARIABLE "KINF_BENCH_STAMP" /* names the file, of sizeof(struct stamp) */

struct stamp {
	_Atomic uint64_t read_ns;      /* a read of the socket returned (CLOCK_MONOTONIC) */
	_Atomic uint64_t decrypted_ns; /* OpenSSL has decrypted a record */
};

#endif
