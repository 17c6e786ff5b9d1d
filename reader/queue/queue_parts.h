/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a work queue share. An item is one key and all that is known of it; it lives
 * while the key waits, is worked on, or is there for later.
 */
#ifndef READER_QUEUE_PARTS_H
#define READER_QUEUE_PARTS_H

#include <stdbool.h>

#include "reader/kinf.h"
#include "reader/queue/queue_keys.h"

struct queue_item {
	struct queue_key key;
	struct queue_item *next;      /* in line, while nothing else orders the queue */
	struct queue_item *work_next; /* of those being worked on */
	struct queue_item **work_at;  /* what points to this one there; NULL: nobody works on it */
	uint64_t added_at, began_at;  /* ns */
	uint64_t ready_at, turn; /* for later: when, and what came first of those for one time */
	size_t place;            /* in the heap of those for later, from 1; 0: not there */
	bool dirty;              /* wanted: in line, or to be put there when the work on it ends */
};

/* ---- those for later: a heap by (ready_at, turn) ---- */

struct queue_delayed {
	struct queue_item **items;
	size_t n, capacity;
	uint64_t turns;
};

/* The item is there until READY_AT, or until the earlier time it is there for already. */
int queue_delayed_add(struct queue_delayed *delayed, struct queue_item *item, uint64_t ready_at);
void queue_delayed_remove(struct queue_delayed *delayed, struct queue_item *item);
/* The one to come first; NULL: none. */
struct queue_item *queue_delayed_first(const struct queue_delayed *delayed);
void queue_delayed_release(struct queue_delayed *delayed);

/* ---- what is counted ---- */

struct queue_counts {
	uint64_t depth, adds, retries, processing;
	struct kinf_histogram queue_duration, work_duration;
};

void queue_observe(struct kinf_histogram *histogram, uint64_t ns);
/* As of NOW; WORK is the list of what is being worked on. */
void queue_counts_read(const struct queue_counts *counts, const struct queue_item *work,
	uint64_t now, struct kinf_queue_metrics *ret_metrics);

#endif
