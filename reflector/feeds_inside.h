/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of feeds.h share: the two lists, and who works on them.
 *
 *	feeds.c     all of them: turns, time limits, commits
 *	wanted.c    the configuration: what is wanted, matched with what the journal has
 *	resolve.c   discovery: what is wanted becomes a definition, which is added or found
 *	replace.c   names move, and what is not wanted any more goes
 *	past.c      an etcd that went back in time
 */
#ifndef REFLECTOR_FEEDS_INSIDE_H
#define REFLECTOR_FEEDS_INSIDE_H

#include "reflector/entry.h"
#include "reflector/feeds.h"

#define FEEDS_MAGIC       0x46454453u
#define FEEDS_RETRY_FIRST UINT64_C(1000000000)

/* One that the configuration wants. */
struct wanted {
	struct entry entry;
	bool verified;  /* discovery has said what it is */
	bool said;      /* that it can't be resolved */
	uint64_t ask_ns; /* not before; UINT64_MAX: discovery is being asked */
	uint64_t pause_ns;
	bool past;    /* what it has is of another past: to be replaced */
	bool renamed; /* in the open transaction: the runner has the name once that is committed */
	struct runner *runner; /* NULL: not in the journal yet */
	struct stats_feed pending; /* its row until then; feed 0: none is shown */
};

/* One that it does not want any more. It works on until what replaces it has been listed. */
struct unwanted {
	struct runner *runner;
	bool past;    /* never to be wanted again */
	bool removed; /* in the open transaction */
};

struct feeds {
	uint32_t magic;
	bool started;
	struct journal *journal;
	struct runner_shared shared;
	struct pace pace;
	struct wanted *wanted;
	size_t n_wanted;
	struct unwanted *unwanted;
	size_t n_unwanted;
	uint32_t pending; /* rows of entries without feed so far */
};

/* wanted.c */
void wanted_release(struct wanted *wanted, size_t n);
/* Takes RUNNER over when it succeeds. */
int unwanted_add(struct feeds *feeds, struct runner *runner);
struct runner *unwanted_take(struct feeds *feeds, size_t i);

/* resolve.c: the row of one that has no feed, or has one now. */
void resolve_hide(struct feeds *feeds, struct wanted *w);
/* Asks discovery for what is due. Errors are the journal's. */
int resolve_due(struct feeds *feeds);

/* replace.c */
bool replace_has_old_of(const struct feeds *feeds, const char *name);
bool replace_is_due(const struct feeds *feeds);
/* In the open transaction: old feeds of names that are ready go, and the new ones get the names. */
int replace_ready(struct feeds *feeds);

/* past.c: -ENOMEM. */
int past_replace(struct feeds *feeds);

#endif
