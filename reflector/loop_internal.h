/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the loop: loop_open.c (opening and closing) and loop.c (turns). */
#ifndef REFLECTOR_LOOP_INTERNAL_H
#define REFLECTOR_LOOP_INTERNAL_H

#include "reflector/cluster/cluster.h"
#include "common/proc.h"
#include "reflector/cluster/documents.h"
#include "reflector/feed/feeds.h"
#include "reflector/loop.h"
#include "reflector/net/upstream.h"
#include "reflector/record/compaction.h"
#include "reflector/record/trimming.h"

#define LOOP_MAGIC 0x4c4f4f50u
#define HOLD_FIRST SECOND_NS

struct loop {
	uint32_t magic;
	struct daemon *daemon;
	struct home *home;
	struct stats *stats;
	struct journal *journal;
	struct ring *ring;
	struct doorbell *doorbell; /* NULL: none could be made yet */
	bool doorbell_warned;
	int progress_fd;      /* socket of progress requests; -1: it could not be made yet */
	uint64_t progress_ns; /* it is not read before this (monotonic): a flood costs little */
	struct kubeconfig *kubeconfig;
	struct http *http;
	struct upstream upstream;
	struct discovery *discovery;
	struct documents documents;
	struct cluster *cluster;
	struct recorder *recorder;
	struct feeds *feeds;
	struct retention *retention;

	bool shows_plugin; /* the state shows a hanging exec plugin */
	bool rolled_back;  /* etcd was: another journal is to be begun */
	bool work_left;
	uint64_t beat_ns;
	/* as counted at the last turn: a change may be committed as it comes in */
	uint64_t commits;
	struct trimming trimming;
	struct compaction compaction;
	uint64_t held_ns;    /* nothing is read until then (monotonic); 0: not held */
	uint64_t hold_pause; /* of the next hold */
	uint64_t resumed_ns; /* when the last hold ended */
};

struct journal_options loop_journal_options(const struct loop *loop);

/* Opens and closes everything of one journal and its uuid. */
int loop_open_feeds(struct loop *loop);
void loop_close_feeds(struct loop *loop);

/* Puts the daemon's configuration into use, at a start and at a reload. Errors are those of
 * feeds_configure(). */
int loop_configure(struct loop *loop);

/* Makes the doorbell if there is none. Without one the reflector goes on; polling followers learn
 * of changes later. */
void loop_make_doorbell(struct loop *loop);

#endif
