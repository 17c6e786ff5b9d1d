/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of feeds.h share: the two lists, and who works on them.
 *
 *	feeds.c     all of them: turns, time limits, commits
 *	configured.c    the configuration: what is configured, matched with what the journal has
 *	resolve.c   discovery: what is configured becomes a definition, which is added or found
 *	replace.c   names move, and what is not configured any more goes
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
struct configured_feed {
	struct entry entry;
	bool verified;  /* discovery has said what it is */
	bool said;      /* that it can't be resolved */
	uint64_t ask_ns; /* not before; UINT64_MAX: discovery is being asked */
	uint64_t pause_ns;
	const struct config_feed *wildcard; /* that it came from; NULL: it is an entry itself */
	bool seen;    /* of one that did: discovery has it */
	bool rolled_back;    /* what it has is of another past: to be replaced */
	bool renamed; /* in the open transaction: the session has the name once that is committed */
	struct session *session; /* NULL: not in the journal yet */
	struct stats_feed pending; /* its row until then; feed 0: none is shown */
};

/* One that it does not want any more. It works on until what replaces it has been listed. */
struct retired_feed {
	struct session *session;
	bool rolled_back;    /* never to be configured again */
	bool removed; /* in the open transaction */
};

struct feeds {
	uint32_t magic;
	bool started;
	struct journal *journal;
	struct session_shared shared;
	struct pace pace;
	uint64_t random; /* drawn for each answer of discovery's: those it fails wait in step */
	struct warnings warnings;
	const struct config *config; /* borrowed until the next feeds_configure */
	struct configured_feed *configured;
	size_t n_configured;
	struct configured_feed *wildcards; /* the wildcards themselves: their rows while they stand for nothing */
	size_t n_wildcards;
	uint64_t wildcards_ns;    /* when they are looked up; UINT64_MAX: discovery is being asked */
	uint64_t wildcards_pause_ns;
	size_t left_out;     /* resources for which there was no room the last time */
	struct retired_feed *retired;
	size_t n_retired;
	uint32_t pending; /* rows of entries without feed so far */
};

/* configured.c: its session, if any, gets what is no part of the definition. */
void configured_tune(const struct configured_feed *w);
void configured_release(struct configured_feed *configured, size_t n);
/* Takes RUNNER over when it succeeds. */
int retired_add(struct feeds *feeds, struct session *session);
struct session *retired_take(struct feeds *feeds, size_t i);

/* Of two that are meant the younger one is to replace the other. SIZE_MAX: none. */
size_t retired_find(const struct feeds *feeds, const struct entry *entry);

/* wildcard.c */
int wildcard_configure(struct feeds *feeds);
void wildcard_release(struct feeds *feeds);
/* After resolve_due: what entries mean that were written is known. */
int wildcard_due(struct feeds *feeds);
uint64_t wildcard_until(const struct feeds *feeds);
void wildcard_discovered(struct feeds *feeds, int result);

/* resolve.c: shows that W has no feed, for this reason; says so once. */
void resolve_show(struct feeds *feeds, struct configured_feed *w, int error, const char *why);
/* The row of one that has no feed, or has one now. */
void resolve_hide(struct feeds *feeds, struct configured_feed *w);
/* Asks discovery for what is due. Errors are the journal's. */
int resolve_due(struct feeds *feeds);

/* replace.c */
bool replace_has_old_of(const struct feeds *feeds, const char *name);
bool replace_is_due(const struct feeds *feeds);
/* In the open transaction: old feeds of names that are ready go, and the new ones get the names. */
int replace_ready(struct feeds *feeds);

/* past.c: -ENOMEM. */
int etcd_rollback_replace(struct feeds *feeds);

#endif
