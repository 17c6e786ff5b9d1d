/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the feeds group (feeds.h). */
#ifndef REFLECTOR_FEED_FEEDS_INTERNAL_H
#define REFLECTOR_FEED_FEEDS_INTERNAL_H

#include "reflector/feed/feeds.h"
#include "reflector/feed/feeds_entry.h"

#define FEEDS_MAGIC       0x46454453u
#define FEEDS_RETRY_FIRST UINT64_C(1000000000)

/* A feed of the configuration. */
struct configured_feed {
	struct entry entry;
	struct session *session; /* NULL: the journal has no such feed yet */
	bool verified;           /* discovery has confirmed the entry; else it is asked ... */
	uint64_t ask_ns;         /* ... not before this; UINT64_MAX: it is being asked */
	uint64_t pause_ns;
	bool warned;                        /* the log has the failure to resolve it */
	bool rolled_back;                   /* its etcd was restored: to be replaced */
	bool renamed;                       /* the open transaction moves the name to it */
	const struct config_feed *wildcard; /* its origin; NULL: it is written out */
	bool served;                        /* comes from a wildcard: discovery has the resource */
	uint64_t columns_ns;                /* its columns are not asked for before this */
	struct stats_feed pending; /* its status row while it has no session; feed 0: none */
};

/* A feed no longer in the configuration. It goes on until its replacement is listed. */
struct retired_feed {
	struct session *session;
	bool rolled_back; /* never to be configured again */
	bool removed;     /* in the open transaction */
};

/* The request for the columns of a custom resource. */
struct feeds_columns {
	struct fetch *fetch; /* NULL: none runs */
	uint64_t due_ns;     /* none is started before this */
	uint32_t feed;       /* whose columns these are */
	char version[64];
	bool ready; /* text is to be stored */
	struct buf text;
};

struct feeds {
	uint32_t magic;
	bool started;
	struct journal *journal;
	struct session_shared shared;
	struct pace pace;
	struct warnings warnings;
	struct session_outage outage;
	struct timer_queue timers;
	size_t queued, listing;      /* sessions waiting for their turn to list; listing */
	const struct config *config; /* borrowed until the next feeds_configure */
	struct configured_feed *configured;
	size_t n_configured, configured_room;
	struct retired_feed *retired;
	size_t n_retired, retired_room;
	struct configured_feed *wildcards; /* for their status rows, while they stand for nothing */
	size_t n_wildcards;
	uint32_t pending; /* ids given to rows of entries without feed */
	size_t left_out;  /* resources without room */

	/* Work of the set itself; work of single feeds is in the timer queue. */
	bool resyncs_changed; /* journal and configuration may differ in a resync */
	bool names_changed;   /* a name may be ready to move */
	bool removals_held;   /* feeds_hold_removals() */
	bool commit_matters;  /* the open transaction removes, renames or sets resyncs */
	bool rolled_back;     /* a configured feed is */
	uint64_t resolve_ns;  /* no configured feed asks discovery before this */
	/* drawn for each answer of discovery: all failed entries wait together */
	uint64_t resolve_random;
	uint64_t wildcards_ns; /* next look at wildcards; UINT64_MAX: discovery is being asked */
	uint64_t wildcards_pause_ns;
	uint64_t definitions_changes; /* session_changes() of the CustomResourceDefinitions */
	uint64_t served_ns;       /* discovery is asked then for what they define; 0: never yet */
	uint64_t served_least_ns; /* and not before this */
	uint64_t turns_ns; /* a turn to list may become free then; UINT64_MAX: none by itself */
	uint64_t check_ns; /* no consistency check is due before this */
	const struct session *checking;
	struct feeds_columns columns;
	struct buf order;   /* of discovery, as the journal has or gets it */
	bool order_changed; /* it may differ from the journal's */
};

/* ---- configured.c ------------------------------------------------------- */

/* Gives W its SESSION, which reports W's status from now on. */
void configured_take(struct feeds *feeds, struct configured_feed *w, struct session *session);
int configured_grow(struct feeds *feeds, struct configured_feed **ret_configured);
void configured_release(struct configured_feed *configured, size_t n);
/* Takes over W's session, if any, when it succeeds. */
int retired_add(struct feeds *feeds, struct configured_feed *w);
/* Hands out the I-th session and removes the entry; the last one takes its place. */
struct session *retired_take(struct feeds *feeds, size_t i);
/* Returns ENTRY's youngest feed (meant to replace the others), SIZE_MAX: none. */
size_t retired_find(const struct feeds *feeds, const struct entry *entry);

/* ---- resolve.c ---------------------------------------------------------- */

/* Lets W ask discovery, not before TIME_NS. */
void resolve_at(struct feeds *feeds, struct configured_feed *w, uint64_t time_ns);
/* Asks discovery for the entries due. Errors are the journal's. */
int resolve_due(struct feeds *feeds);
/* Tells whether the feed of W has other short names than RESOURCE. */
bool resolve_is_renamed(const struct configured_feed *w, const struct resource *resource);
/* Shows in W's status row, and once in the log, why it has no feed. */
void resolve_show(struct feeds *feeds, struct configured_feed *w, int error, const char *why);
void resolve_hide(struct feeds *feeds, struct configured_feed *w);

int order_load(struct feeds *feeds, struct txn *txn);
/* Stores it if the journal has another one. Errors are the journal's. */
int order_due(struct feeds *feeds);

/* ---- replace.c ---------------------------------------------------------- */

/* A retired feed still has NAME. */
bool replace_has_old_of(const struct feeds *feeds, const char *name);
/* Removes, in the open transaction, the retired feeds of each name once all its new feeds are
 * listed, and gives these the name. */
int replace_ready(struct feeds *feeds);

/* Retires the rolled-back feeds; new ones are then listed. Returns: 0, -ENOMEM. */
int etcd_rollback_replace(struct feeds *feeds);

/* ---- wildcard.c --------------------------------------------------------- */

int wildcard_configure(struct feeds *feeds);
void wildcard_release(struct feeds *feeds);
/* Called after resolve_due(): explicit entries are resolved by then. */
int wildcard_due(struct feeds *feeds);
/* Asks discovery soon if SESSION's feed says that there are other resources now. */
void wildcard_heard(struct feeds *feeds, const struct session *session);
/* Returns whether a configured feed comes from the wildcard FEED. */
bool wildcard_stands_for_any(const struct feeds *feeds, const struct config_feed *feed);
void wildcard_discovered(struct feeds *feeds, int result);

/* ---- columns.c ---------------------------------------------------------- */

/* Stores new columns, and asks for the next. Errors are the journal's. */
int columns_due(struct feeds *feeds);
void columns_release(struct feeds *feeds);

#endif
