/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a feed does next: resolve, list, watch or wait. A pure state machine without I/O, clock or
 * randomness of its own: all of them come in with the event, one action goes out. The rules are
 * client-go's (docs/protocol.md 14) with the deviations that reflector/README.md gives reasons for.
 *
 *	feed_machine_init(&feed, page_size, &policy);
 *	feed_machine_step(&feed, &(struct feed_input){FEED_ON_START, .now_ns = ..., ...}, &action);
 *	... do the action; what comes of it is the next event
 *
 * An action other than FEED_DO_NOTHING ends the request that may be running, but with `keep`. Texts of an action live
 * until the next step.
 *
 *	             resolved           turn            last page           list ended
 *	 RESOLVING ────────────► QUEUED ─────► LISTING ───────────► FINISHING ──────────► WATCHING
 *	     ▲                     ▲   └─────► STREAMING ─ end mark ──► ▲                   │
 *	     │                     │              │ failed                                  │ ended, failed
 *	     └──── absent ──── WAITING ◄──────────┴─────────────────────────────────────────┘
 *
 * STREAMING is a list that comes as a watch does (watch-list, policy streaming_lists): FINISHING and
 * WATCHING then go on with the request that is open already (`keep`). Where a server refuses it, or
 * loses it three times in a row, the feed lists for the next half hour.
 */
#ifndef REFLECTOR_FEED_MACHINE_H
#define REFLECTOR_FEED_MACHINE_H

#include "common/buf.h"
#include "common/config/config.h"
#include "reflector/wire/status.h"
#include "store/journal/journal.h"

enum feed_on {
	FEED_ON_START,    /* checkpoint {rv, list_open, phase, listed}; resolved: no discovery needed */
	FEED_ON_RESOLVED, /* discovery knows the resource */
	FEED_ON_TURN,     /* a place among the lists that may run at once */
	FEED_ON_ALIVE,    /* the server answered with success and is sending */
	FEED_ON_PAGE,     /* a page was taken whole: rv, continue_, items */
	FEED_ON_DOUBTED,  /* the list that FEED_DO_FINISH_LIST meant is not believed: once more */
	FEED_ON_LISTED,   /* what FEED_DO_FINISH_LIST asked for is done */
	FEED_ON_EVENT,    /* a watch event was taken: rv */
	FEED_ON_INITIAL,  /* the stream's initial events are all there, as of rv */
	FEED_ON_BOOKMARK, /* rv */
	FEED_ON_ENDED,    /* the watch ended well */
	FEED_ON_FAILED,   /* status: of whatever was being done, ERROR events included */
	FEED_ON_TICK,     /* time has passed */
	FEED_ON_REWIND,   /* nothing since the checkpoint {rv, list_open} was kept; stop */
	FEED_ON_RESUME,   /* go on after FEED_ON_REWIND */
	FEED_ON_RELIST,   /* somebody asked for a list */
	FEED_ON_MAX
};

struct feed_input {
	enum feed_on on;
	uint64_t now_ns; /* monotonic */
	uint64_t random; /* any 64 bits */
	uint64_t span_ns; /* many turn to the server now: wait a random part of it (pace.h) */
	struct bytes rv;
	struct bytes continue_;
	uint64_t items;      /* of the page */
	uint64_t unreadable; /* FEED_ON_LISTED: items of the whole list that were passed over */
	const struct status *status;
	enum feed_phase phase;
	bool list_open;
	bool listed; /* a list of this feed has ended before */
	bool resolved;
};

enum feed_do {
	FEED_DO_NOTHING,     /* let it run */
	FEED_DO_RESOLVE,     /* ask discovery */
	FEED_DO_QUEUE,       /* wait for FEED_ON_TURN */
	FEED_DO_LIST,        /* rv, limit (0: none), continue_; first: of a new attempt */
	FEED_DO_STREAM,      /* rv, timeout_s: a list as a stream that goes on as the watch */
	FEED_DO_FINISH_LIST, /* sweep what the list lacks, LIST_END with rv */
	FEED_DO_WATCH,       /* rv, timeout_s */
	FEED_DO_WAIT,        /* FEED_ON_TICK at until_ns, UINT64_MAX: FEED_ON_RESUME */
	FEED_DO_FORGET,      /* the server is in another past: begin a new journal */
	FEED_DO_MAX
};

struct feed_action {
	enum feed_do what;
	const char *rv;
	const char *continue_; /* "": the first page */
	uint32_t limit;
	uint32_t timeout_s;
	uint64_t until_ns;
	bool first;
	bool keep;          /* FINISH_LIST, WATCH: the open request goes on */
	bool phase_changed; /* the checkpoint is to say feed_phase() now */
};

enum feed_state {
	FEED_AT_START,
	FEED_AT_RESOLVING,
	FEED_AT_QUEUED,
	FEED_AT_LISTING,
	FEED_AT_STREAMING,
	FEED_AT_FINISHING,
	FEED_AT_WATCHING,
	FEED_AT_WAITING,
	FEED_AT_HELD, /* rewound */
	FEED_AT_MAX
};

struct feed_machine {
	enum feed_state state;
	enum feed_phase phase;
	uint32_t page_size;
	const struct config_policy *policy; /* times; may change between two steps */
	bool listed;
	bool resolved;
	bool want_list;
	bool newest;   /* ask for "", whatever is known */
	bool unpaged;  /* a page expired: the next list has none that could */
	bool streamed; /* FINISHING: of a stream, which stays open */
	bool tolerant; /* objects that can't be read are passed over */
	bool alive;    /* this request was answered with success */
	bool progress; /* this watch has given something */
	bool expired;  /* a watch was told 410, and none has given anything since */
	struct buf rv; /* watch on from here */
	struct buf list_rv; /* of the running list's first page */
	struct buf continue_;
	uint64_t pages, empty_pages;
	uint64_t until_ns;
	uint64_t started_ns; /* this request */
	uint64_t healthy_ns; /* since then nothing failed; 0: not healthy */
	uint32_t failures;   /* back-off steps taken */
	uint32_t page_retries;
	uint32_t lost_streams; /* in a row */
	uint64_t no_stream_ns; /* until then lists are lists */
	uint32_t strikes;    /* watches in a row that gave nothing and were the server's fault */
	uint32_t unreadable; /* attempts in a row that met an object we can't read */
};

/* POLICY is borrowed. */
void feed_machine_init(struct feed_machine *feed, uint32_t page_size, const struct config_policy *policy);
void feed_machine_release(struct feed_machine *feed);

void feed_machine_step(struct feed_machine *feed, const struct feed_input *in, struct feed_action *ret_action);

static inline enum feed_phase feed_phase(const struct feed_machine *feed)
{
	return feed->phase;
}
/* What to do with an object that can't be read: pass over it (and say so), or fail. */
static inline bool feed_machine_is_tolerant(const struct feed_machine *feed)
{
	return feed->tolerant;
}

const char *feed_state_name(enum feed_state state);

#endif
