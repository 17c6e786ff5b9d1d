/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The feeds as the whole process sees them: their definitions, timelines and states. A thread of
 * its own, the feeder, keeps them: it follows the journal, woken by the delta ring, reads the
 * checkpoints every 500 ms, every 50 ms while a client waits (a bookmark does not wake it), and
 * calls `news` after a change.
 *
 *	catalog_open(directory, at, speed, news, argument, &catalog);
 *	catalog_find(catalog, &request, &feed, &answer)     a reference to the feed that can answer
 *	catalog_lock(catalog); timeline_seek(&feed->timeline, ...); catalog_unlock(catalog);
 *	catalog_release(&feed);
 *
 * Only catalog.c depends on how the journal reports changes; the others read timelines,
 * snapshots and records by seq.
 */
#ifndef SERVE_CATALOG_CATALOG_H
#define SERVE_CATALOG_CATALOG_H

#include "serve/catalog/coverage.h"
#include "serve/catalog/floor.h"
#include "serve/catalog/replay.h"
#include "serve/catalog/since.h"
#include "serve/catalog/timeline.h"
#include "store/read/snapshot.h"

struct catalog;

#define CATALOG_LATER 3

/* A feed of one journal. Its timeline, age and state are read under catalog_lock(). */
struct catalog_feed {
	unsigned references; /* atomic */
	uint32_t id;
	/* Constant, and so is the coverage; but aliases, categories and columns may become other
	 * texts: they are read under catalog_lock(). */
	struct feed_definition definition;
	char *texts;
	char *later[CATALOG_LATER]; /* those that came later */
	struct coverage coverage;
	struct timeline timeline;
	uint64_t shown;  /* the feeder's: the newest visible entry */
	bool settled;    /* the feeder's: the journal has the feed */
	bool gone;       /* removed, or its journal was replaced: its watches end */
	bool removed;    /* the former: there is nothing to list again */
	uint64_t news;   /* counts changes of its timeline, and of whether it is live */
	uint64_t states; /* counts the latter */
	uint64_t floor;  /* the newest seq shown to a client: no answer is older */
	uint64_t requested_ns,
		requested_rv; /* atomic: the newest request for progress, and its RV */
	/* Atomic: the seq of the definition that does not deprecate the version; 0: not known. */
	uint64_t undeprecated;
	struct floor forwarded; /* after forwarded requests, with a lock of its own */
	struct since since;     /* the moment shown; likewise */
	double age_seconds;     /* since the last contact; negative: unknown */
	char state[16];         /* as `kinf status` shows it */
	char why[240];          /* if it is not live; "" if not known */
	uint64_t failing_ns;    /* its first list has failed since then; 0: it has not */
};

typedef void catalog_news_fn(void *argument);

/* NEWS is called on the feeder's thread. */
/* AT: shows the state as of then (reader/past.h); NULL: the newest. SPEED: shows the changes after
 * AT also, at that speed (replay.h); NULL: none. */
int catalog_open(const char *directory, const char *at, const char *speed, catalog_news_fn *news,
	void *argument, struct catalog **ret_catalog);
void catalog_close(struct catalog **catalog);

/* NULL: it is none. */
struct replay *catalog_replay(struct catalog *catalog);

struct store *catalog_store(struct catalog *catalog);
/* Any thread may take snapshots of it. */
struct kinf *catalog_kinf(struct catalog *catalog);
/* Returns the event whose state is shown; UINT64_MAX: the newest. */
uint64_t catalog_at(const struct catalog *catalog);

/* Returns whether the store has an index and the feeder has read the feeds; else REASON says why
 * not. */
bool catalog_is_ready(struct catalog *catalog, char reason[200]);

/* Returns true if no feed is known yet: nothing can be said about the resources. */
bool catalog_is_empty(struct catalog *catalog);
/* Returns true if the store is of a dump. */
bool catalog_is_imported(struct catalog *catalog);
/* Returns true if each feed was listed that the API server lets be listed; else REASON names one
 * without a list. A first list that has failed for a while holds nobody up. */
bool catalog_are_listed(struct catalog *catalog, char reason[200]);

void catalog_lock(struct catalog *catalog); /* shared */
void catalog_unlock(struct catalog *catalog);

/* Finds the feed for REQUEST: listed ones first, then the oldest. Returns: FOUND; NOT_FOUND: no
 * feed covers it, RET_KNOWN: but one has the resource. */
int catalog_find(struct catalog *catalog, const struct coverage_request *request,
	struct catalog_feed **ret_feed, enum coverage_answer *ret_answer, bool *ret_known);
void catalog_release(struct catalog_feed **feed);

/* Returns the next feed by id, AT is 0 at first; NULL: there is none. Under catalog_lock(). */
struct catalog_feed *catalog_next_feed(const struct catalog *catalog, size_t *at);

/* Returns true if an object in the state shown may have changed since: it is read by an as_of. */
bool catalog_is_past(const struct catalog *catalog);
/* Does as_of_renew() of AS_OF, a state of FEED, for a slice. */
int catalog_renew(struct catalog *catalog, struct snapshot *snapshot, struct catalog_feed *feed,
	struct as_of *as_of);

/* The entries of a feed after a position. */
#define CATALOG_ENTRIES 32
struct catalog_news {
	struct timeline_entry entries[CATALOG_ENTRIES];
	size_t n;
	uint64_t visible;
	char newest[TIMELINE_RV_SIZE]; /* the RV of the visible state */
	bool gone, removed;            /* the feed is */
};
/* Reads at most MOST entries. Returns: FOUND: there may be more; END; LAPPED: POSITION is not
 * kept. */
int catalog_read(struct catalog *catalog, const struct catalog_feed *feed, uint64_t position,
	size_t most, struct catalog_news *ret_news);

/* A client waits for RV, newer than FEED: sends a progress request to the reflector, and reads
 * checkpoints more often for a while. */
void catalog_request_progress(struct catalog *catalog, struct catalog_feed *feed, uint64_t rv);

/* Raises the floor of FEED: a client has seen the state as of SEQ. */
void catalog_raise_floor(struct catalog_feed *feed, uint64_t seq);

#endif
