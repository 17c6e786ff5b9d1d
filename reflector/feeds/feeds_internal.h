/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of feeds.h share: the two lists, and who works on them.
 *
 *	feeds.c     all of them: turns, time limits, commits
 *	wanted.c    the configuration: what is wanted, matched with what the journal has
 *	resolve.c   discovery: what is wanted becomes a definition, which is added or found
 *	replace.c   names move, and what is not wanted any more goes
 *	wildcard.c  entries that stand for many resources become one of each
 *	past.c      an etcd that went back in time
 */
#ifndef REFLECTOR_FEEDS_FEEDS_INTERNAL_H
#define REFLECTOR_FEEDS_FEEDS_INTERNAL_H

#include "reflector/feeds/entry.h"
#include "reflector/feeds/feeds.h"

#define FEEDS_MAGIC       0x46454453u
#define FEEDS_RETRY_FIRST UINT64_C(1000000000)

/* One that the configuration wants. */
struct wanted {
	struct entry entry;
	bool verified;  /* discovery has said what it is */
	bool said;      /* that it can't be resolved */
	uint64_t ask_ns; /* not before; UINT64_MAX: discovery is being asked */
	uint64_t pause_ns;
	const struct config_feed *wildcard; /* that it came from; NULL: it is an entry itself */
	bool seen;    /* of one that did: discovery has it */
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
	uint64_t random; /* drawn for each answer of discovery's: those it fails wait in step */
	struct warnings warnings;
	const struct config *config; /* borrowed until the next feeds_configure */
	struct wanted *wanted;
	size_t n_wanted;
	struct wanted *wild; /* the wildcards themselves: their rows while they stand for nothing */
	size_t n_wild;
	uint64_t wild_ns;    /* when they are looked up; UINT64_MAX: discovery is being asked */
	uint64_t wild_pause_ns;
	size_t left_out;     /* resources for which there was no room the last time */
	struct unwanted *unwanted;
	size_t n_unwanted;
	uint32_t pending; /* rows of entries without feed so far */
};

/* wanted.c: its runner, if any, gets what is no part of the definition. */
void wanted_tune(const struct wanted *w);
void wanted_release(struct wanted *wanted, size_t n);
/* Takes RUNNER over when it succeeds. */
int unwanted_add(struct feeds *feeds, struct runner *runner);
struct runner *unwanted_take(struct feeds *feeds, size_t i);

/* Of two that are meant the younger one is to replace the other. SIZE_MAX: none. */
size_t unwanted_find(const struct feeds *feeds, const struct entry *entry);

/* wildcard.c */
int wildcard_configure(struct feeds *feeds);
void wildcard_release(struct feeds *feeds);
/* After resolve_due: what entries mean that were written is known. */
int wildcard_due(struct feeds *feeds);
uint64_t wildcard_until(const struct feeds *feeds);
void wildcard_discovered(struct feeds *feeds, int result);

/* resolve.c: shows that W has no feed, for this reason; says so once. */
void resolve_show(struct feeds *feeds, struct wanted *w, int error, const char *why);
/* The row of one that has no feed, or has one now. */
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
