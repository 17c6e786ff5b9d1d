/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects as real clusters have them, mixed: pods of 3 to 15 kB in every phase, with sidecars,
 * owners and managedFields, a few with annotations of 200 kB; configmaps of 20 bytes to 900 kB; odd
 * but legal names. Rare shapes come round at fixed numbers: 50 objects have each shape except the
 * large ones, and 200 have all.
 */
#ifndef SIMULATOR_LIFELIKE_H
#define SIMULATOR_LIFELIKE_H

#include "tests/simulator/generate.h"
#include "tests/simulator/mix.h"

#define LIFELIKE_NODES 100
#define LIFELIKE_APPS  50

/* An object under construction. Each buffer has the members of an object, or the items of an
 * array, without the brackets. */
struct draft {
	struct mix mix; /* appends to the part chosen by draft_begin */
	const struct kind *kind;
	uint64_t n;
	struct buf name, generate_name, labels, annotations, owners, finalizers;
	struct buf body;                      /* all members but metadata and status */
	struct buf status;                    /* empty: the object has none */
	const char *manager, *status_manager; /* no manager: no managedFields */
	unsigned generation;                  /* 0: none */
	bool deleted;                         /* has a deletionTimestamp */
};

/* Makes the functions of the mix append to PART. Returns the mix. */
struct mix *draft_begin(struct draft *draft, struct buf *part);

/* Appends a time of 2025 or 2026, SECONDS after the object's creation. */
void draft_put_time(struct draft *draft, unsigned seconds);

/* Adds a condition to the status; REASON may be NULL. */
void draft_put_condition(
	struct draft *draft, bool first, const char *type, const char *status, const char *reason);

/* Adds an owner. */
void draft_put_owner(struct draft *draft, const char *api, const char *kind, const char *name);

void lifelike_pod(struct draft *draft);

/* Returns false if there is no lifelike form of KIND. */
bool lifelike_object(const struct kind *kind, uint64_t n, const struct generate_options *options,
	struct buf *out);

#endif
