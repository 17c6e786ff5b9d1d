/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated objects: the N-th one of a kind is the same in every run. Without a size they are a
 * lifelike mix (lifelike.h). With one they are alike: pods with a long environment, the others
 * small.
 */
#ifndef SIMULATOR_GENERATE_H
#define SIMULATOR_GENERATE_H

#include "tests/simulator/kind.h"

struct generate_options {
	unsigned namespaces; /* spread over this many: ns-0, ns-1, ...; at least 1 */
	const char *prefix;  /* of names */
	size_t size;         /* alike, and pods of about this many bytes; 0: a lifelike mix */
	uint64_t seed;       /* of the mix */
	bool short_names;    /* never as long as the API server's limit */
};

void generate_object(const struct kind *kind, uint64_t n, const struct generate_options *options,
	struct buf *out);

/* A merge patch with a small change: STEP in an annotation, and a label in a cycle of ten steps, to
 * change label indexes too. */
void generate_patch(uint64_t step, struct buf *out);

#endif
