/* SPDX-License-Identifier: Apache-2.0 */
/* What programs read through libkinf, against the model. */
#ifndef TESTS_MODEL_READS_H
#define TESTS_MODEL_READS_H

#include "tests/model/selection.h"

/* Where an object stands in a list: by the value it is sorted by (0 where it is not), then its key. */
struct place {
	uint64_t rank;
	int order;
};

/* A list in pages that is under way. */
struct pages {
	bool open;
	unsigned feed;
	uint32_t id;    /* of the feed at its first page */
	uint64_t as_of; /* the event number of then */
	struct selection selection;
	unsigned limit; /* 0: none */
	unsigned path;  /* that it is sorted by; 0: by key */
	char *token;    /* NULL: it begins */
	struct place last;
	unsigned came[KEYS];
};

/* Both are of the same instant as world->snapshot. What a read of feed ID must answer that needs this
 * index (NULL: none): KINF_FOUND, KINF_NO_FEED, KINF_NO_INDEX, KINF_AGAIN. */
int reads_expected(struct world *world, uint32_t id, const char *index);

void step_read(struct world *world);

/* The walk's next page. */
void pages_step(struct world *world);
void pages_end(struct world *world);

#endif
