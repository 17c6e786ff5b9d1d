/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the index in use when a reader has reported that it is damaged (store/ring/damage.h):
 * against itself and against the journal, as `kinf verify` does. Any member of the group may
 * report, and a check takes about 3 us an object, so after a check without a fault the next one
 * waits for a minute, then twice as long each time, up to an hour.
 */
#ifndef PROCESSOR_CHECKUP_H
#define PROCESSOR_CHECKUP_H

#include "processor/processor.h"

struct checkup {
	int fd;            /* of the reports; -1: there is no socket yet */
	bool asked;        /* a report came */
	uint64_t after_ns; /* no check before this (monotonic) */
	uint64_t pause_ns;
};

#define CHECKUP_INIT \
	{ \
		.fd = -1 \
	}

void checkup_release(struct checkup *checkup);
/* Receives reports; makes the socket if it is missing. To be called once a second. */
void checkup_receive(struct checkup *checkup, struct home *home);
/* Checks the index, if a report came and a check is due. Returns: 0; ERR_CORRUPT: it has faults,
 * of which the sentence gives the first; -EINTR: the processor is to stop. */
int checkup_run(struct checkup *checkup, const struct processor *p);

#endif
