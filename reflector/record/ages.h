/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knows the age of the log's records by the monotonic clock. Records carry wall-clock times;
 * comparing those with the wall clock would delete history still in use after a step forward, and
 * keep it too long after a step back. So the reflector samples the log's last seq with the
 * monotonic time: every record up to a sample's seq is at least as old as the sample.
 *
 *	ages_begin(&ages, now)
 *	ages_add_old(&ages, seq, time) ...     records of runs before this one, the newest first
 *	ages_add(&ages, last_seq, now, kept)   now and then
 *	ages_reached(&ages, now, kept)         the last seq with only records older than KEPT
 *
 * Records of earlier runs have no monotonic time. Their age is taken from their wall-clock times,
 * but counted back from the newest of them, as if the reflector had never been away: a step during
 * its absence deletes nothing, at the price of keeping old history for one retention time more.
 * Times that run backwards in the log count as equal.
 */
#ifndef REFLECTOR_RECORD_AGES_H
#define REFLECTOR_RECORD_AGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGES_MAX 512
/* samples for one retention time: trimming is late by a 128th of it at most */
#define AGES_STEPS 128

struct ages_sample {
	uint64_t seq;
	int64_t time_ns; /* monotonic; below 0: before the machine was started */
};

struct ages {
	struct ages_sample samples[AGES_MAX]; /* ascending in both */
	size_t n;
	uint64_t newest_ns; /* wall-clock time of the newest record of earlier runs, 0: none so far
			     */
	int64_t began_ns;
};

void ages_begin(struct ages *ages, uint64_t now_ns);
/* A record with its wall-clock time; at most AGES_STEPS of them count. */
void ages_add_old(struct ages *ages, uint64_t seq, uint64_t time_ns);
/* Returns: whether ages_add() would take a sample at NOW_NS, if records have come since the last
 * one. */
bool ages_is_due(const struct ages *ages, uint64_t now_ns, uint64_t kept_ns);
/* The log ends at SEQ at the monotonic time NOW_NS, and KEPT_NS is the retention time. */
void ages_add(struct ages *ages, uint64_t seq, uint64_t now_ns, uint64_t kept_ns);
/* Forgets superfluous samples. Returns: the seq, 0: none is so old. */
uint64_t ages_reached(struct ages *ages, uint64_t now_ns, uint64_t kept_ns);

#endif
