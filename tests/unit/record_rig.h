/* SPDX-License-Identifier: Apache-2.0 */
/* A journal in the scratch directory with a feed of pods. Tests record into it. All failures fail
 * the test. */
#ifndef UNIT_RECORD_RIG_H
#define UNIT_RECORD_RIG_H

#include "reflector/record/record.h"
#include "reflector/record/recorder.h"
#include "tests/unit/unit.h"

struct record_rig {
	struct home *home;
	struct journal *journal;
	struct recorder *recorder;
	struct record_feed feed;
};

/* Opens the ring and the recorder's other inputs. */
static inline void record_rig_open(struct record_rig *rig)
{
	char reason[256];

	*rig = (struct record_rig){0};
	OK(home_open(scratch_path("store"),
		&(struct home_options){.create = true, .runtime_dir = scratch()}, &rig->home));
	cr_assert_eq(home_take_role(rig->home, HOME_REFLECTOR), 0);
	cr_assert_eq(
		journal_open_write(rig->home, &(struct journal_options){.map_bytes = 64u << 20},
			reason, &rig->journal),
		0);
}

/* The second half. RING and STATS, NULL for none, stay the caller's. */
static inline void record_rig_add_feed(
	struct record_rig *rig, const char *drop, struct ring *ring, struct stats *stats)
{
	struct feed_definition definition = {.name = "pods",
		.group = "",
		.version = "v1",
		.resource = "pods",
		.kind = "Pod",
		.list_kind = "PodList",
		.namespace_ = "",
		.label_selector = "",
		.field_selector = "",
		.drop = drop,
		.namespaced = true};
	struct feed_checkpoint checkpoint = {.phase = FEED_LISTING};

	cr_assert_eq(recorder_new(rig->journal, ring, stats, &rig->recorder), 0);
	cr_assert_eq(journal_begin(rig->journal), 0);
	cr_assert_eq(journal_add_feed(rig->journal, &definition, &definition.id), 0);
	cr_assert_eq(journal_commit(rig->journal), 0);
	cr_assert_eq(record_feed_init(&rig->feed, rig->recorder, &definition, &checkpoint), 0);
}

static inline void record_rig_close(struct record_rig *rig)
{
	record_feed_release(&rig->feed);
	recorder_free(&rig->recorder);
	journal_close(&rig->journal);
	home_close(&rig->home);
}

#endif
