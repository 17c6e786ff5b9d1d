/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the results of libkinf with the model. */
#ifndef TESTS_MODEL_READS_H
#define TESTS_MODEL_READS_H

#include "tests/model/selection.h"

/* The place of an object in a list: ordered by its sort value (0: by key only), then by key. */
struct place {
	uint64_t rank;
	int order;
};

/* A list in pages, under way. */
struct pages {
	bool open;
	unsigned feed;
	uint32_t id;    /* of the feed at its first page */
	uint64_t as_of; /* the event number at its first page */
	struct selection selection;
	unsigned limit; /* 0: none */
	unsigned path;  /* the path of the sort value; 0: by key */
	char *token;    /* NULL: the first page is next */
	struct place last;
	unsigned came[KEYS];
};

/* Returns the expected result of a read of feed ID at the instant of world->snapshot, if it needs
 * INDEX (NULL: none): KINF_FOUND, KINF_NO_FEED, KINF_NO_INDEX, KINF_AGAIN. */
int reads_expected(struct world *world, uint32_t id, const char *index);

void step_read(struct world *world);

/* Reads the next page and compares it. */
void pages_step(struct world *world);
void pages_end(struct world *world);

#endif
