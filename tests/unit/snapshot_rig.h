/* SPDX-License-Identifier: Apache-2.0 */
/* A small store for each test, and a reader of it with a snapshot. */
#ifndef UNIT_SNAPSHOT_RIG_H
#define UNIT_SNAPSHOT_RIG_H

#include "store/read/snapshot.h"
#include "tests/unit/small_store.h"
#include "tests/unit/unit.h"

static const struct store_options checking = {.check = true};

static struct small_store s;
static struct store *store;
static struct snapshot *snapshot;

static inline void set_up(void)
{
	small_store_open(&s);
}

static inline void tear_down(void)
{
	snapshot_close(&snapshot);
	store_close(&store);
	small_store_close(&s);
}

static inline void open_snapshot(void)
{
	OK(store_open(s.path, &checking, &store));
	OK(snapshot_open(store, &snapshot));
}

#endif
