/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a scratch directory with a hand-made journal, and queries of the index a processor
 * makes of it. All failures fail the test. */
#ifndef UNIT_RIG_H
#define UNIT_RIG_H

#include "processor/pair.h"
#include "store/index/index.h"
#include "store/journal/journal.h"
#include "store/ring/ring.h"
#include "tests/unit/unit.h"

struct rig {
	struct processor p;
	struct config *config;
	struct journal *journal; /* for writing */
	struct ring *delta;      /* NULL: nothing is published */
	struct pair *pair;
};

/* CONFIG: yaml. With a journal and a delta ring; no feeds yet. */
void rig_open(struct rig *rig, const char *config);
void rig_close(struct rig *rig);
void rig_configure(struct rig *rig, const char *config);

/* Each commits; a feed of resource NAME and its id. */
uint32_t rig_add_feed(struct rig *rig, const char *name);
uint32_t rig_add_pods(struct rig *rig, const char *namespace_); /* the feed "pods" */

/* Appends to the open transaction; JSON may be NULL. The record's seq. */
uint64_t rig_append(
	struct rig *rig, uint32_t feed, uint8_t type, const char *key, const char *json);
/* Commits, and publishes when there is a ring. */
void rig_commit(struct rig *rig);
/* Both. */
uint64_t rig_record(
	struct rig *rig, uint32_t feed, uint8_t type, const char *key, const char *json);

/* Opens the pair when there is none and steps until there is nothing left to do. */
void rig_settle(struct rig *rig);
/* Commits, and settles. */
void rig_take(struct rig *rig);
/* As after a kill -9: only the test's own resources are closed in order. */
void rig_restart(struct rig *rig);

/* Answers of the current index, in static buffers. */
const char *rig_names(struct rig *rig, uint32_t feed); /* "key@seq key@seq" in key order */
const char *rig_under(struct rig *rig, uint32_t feed, const char *definition, const char *value);
struct index_feed rig_feed(struct rig *rig, uint32_t feed); /* .feed 0: it has no row */
uint64_t rig_taken(struct rig *rig);
uint32_t rig_generation(struct rig *rig);

#endif
