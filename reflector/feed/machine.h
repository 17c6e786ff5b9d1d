/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides the next action of a feed: resolve, list, watch or wait. It is a pure state machine: it
 * does no I/O and reads neither clock nor randomness. The session (session.h) passes an event with
 * the time and a random number, and carries out the resulting action. The rules are those of
 * client-go's reflector, with the differences in reflector/README.md.
 *
 *	feed_machine_init(&machine, page_size, &policy);
 *	feed_machine_step(&machine, &(struct feed_input){FEED_ON_START, ...}, &action);
 *	... carry out the action; its outcome is the next event
 *
 *	             resolved           turn            last page           list ended
 *	 RESOLVING ────────────► QUEUED ─────► LISTING ───────────► FINISHING ──────────► WATCHING
 *	     ▲                     ▲   └─────► STREAMING ─ end mark ──► ▲                   │
 *	     │                     │              │ failed                                  │ ended
 *	     └──── absent ──── WAITING ◄──────────┴─────────────────────────────────────────┘
 *
 * WATCHING to WAITING: a refused or unanswered watch. One that ended, or whose stream broke, is
 * opened again at once. A failed list waits too. A watch resumed after a pause skips the list.
 *
 * STREAMING is a list sent as a watch (watch-list, policy streaming_lists). Its request stays open:
 * FINISHING and WATCHING go on with it (`keep`). If the server refuses a stream, or loses three in
 * a row, the feed sends ordinary lists for half an hour.
 */
#ifndef REFLECTOR_FEED_MACHINE_H
#define REFLECTOR_FEED_MACHINE_H

#include "common/buf.h"
#include "common/config/config.h"
#include "reflector/net/status.h"
#include "store/journal/journal.h"

enum feed_on {
	FEED_ON_START,    /* begin from the checkpoint {rv, list_open, phase, listed, resolved} */
	FEED_ON_RESOLVED, /* discovery knows the resource */
	FEED_ON_TURN,     /* the feed may list now: fewer than listConcurrency others do */
	FEED_ON_ALIVE,    /* the server answered 200 and is sending */
	FEED_ON_PAGE,     /* a whole page was recorded: rv, continue_, items */
	FEED_ON_DOUBTED,  /* the mass-delete check holds the list */
	FEED_ON_LISTED,   /* FEED_DO_FINISH_LIST is done: LIST_END is recorded */
	FEED_ON_EVENT,    /* a watch event was recorded: rv */
	FEED_ON_INITIAL, /* the stream's end mark came: all initial events are recorded, as of rv */
	FEED_ON_BOOKMARK, /* rv */
	/* nothing lies between the watch's RV and rv: another watch has shown it */
	FEED_ON_PROGRESS,
	FEED_ON_ENDED,  /* the server ended the watch without an error */
	FEED_ON_FAILED, /* status: of the request or of an ERROR event */
	FEED_ON_TICK,   /* the time of FEED_DO_WAIT has come */
	/* the batch failed: go back to the checkpoint {rv, list_open, phase, listed} and send
	 * nothing until FEED_ON_RESUME */
	FEED_ON_REWIND,
	FEED_ON_RESUME, /* the journal can be written again */
	FEED_ON_RELIST, /* list again, for the newest state */
	FEED_ON_MAX
};

struct feed_input {
	enum feed_on on;
	uint64_t now_ns;  /* monotonic */
	uint64_t random;  /* any 64 bits */
	uint64_t span_ns; /* of pace_span(): wait a random part of it before the next request */
	struct bytes rv;
	bool deletion; /* EVENT, START, REWIND: rv is that of a deletion */
	struct bytes continue_;
	uint64_t items; /* of the page */
	bool lacking;   /* FEED_ON_LISTED: some of its objects were passed over */
	const struct status *status;
	enum feed_phase phase;
	bool list_open;
	bool listed; /* a list of this feed has ended before */
	bool resolved;
};

enum feed_do {
	FEED_DO_NOTHING,     /* leave the request running */
	FEED_DO_RESOLVE,     /* ask discovery */
	FEED_DO_QUEUE,       /* wait for FEED_ON_TURN */
	FEED_DO_LIST,        /* rv, limit (0: none), continue_; first: of a new attempt */
	FEED_DO_STREAM,      /* rv, timeout_s: a list as a stream, which becomes the watch */
	FEED_DO_FINISH_LIST, /* delete objects missing in the list, then LIST_END with rv */
	FEED_DO_WATCH,       /* rv, timeout_s */
	FEED_DO_WAIT,        /* for FEED_ON_TICK at until_ns, or (UINT64_MAX) for FEED_ON_RESUME */
	FEED_DO_FAIL,        /* why: the answer is of no use; FEED_ON_FAILED comes next */
	FEED_DO_ROLLED_BACK, /* the server's etcd was restored to an older state */
	FEED_DO_MAX
};

/* Every action but FEED_DO_NOTHING ends a running request, unless `keep` is set. The texts live
 * until the next step. */
struct feed_action {
	enum feed_do what;
	const char *rv;
	const char *continue_; /* "": the first page */
	const char *why;       /* FAIL: a sentence, for ever */
	uint32_t limit;
	uint32_t timeout_s;
	uint64_t until_ns;
	bool first;
	bool keep;          /* FINISH_LIST, WATCH: the open request goes on */
	bool phase_changed; /* feed_machine_phase() changed and belongs into the checkpoint */
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
	FEED_AT_HELD, /* after FEED_ON_REWIND or FEED_DO_ROLLED_BACK */
	FEED_AT_MAX
};
const char *feed_state_name(enum feed_state state);

struct feed_machine {
	enum feed_state state;
	enum feed_phase phase;
	uint32_t page_size;
	const struct config_policy *policy; /* borrowed; may change between two steps */
	bool listed;
	bool resolved;
	bool want_list;
	bool newest;   /* the next list asks for "", the newest state */
	bool unpaged;  /* a page expired: the next list is sent without pages */
	bool streamed; /* FINISHING: a stream; it stays open */
	bool tolerant; /* unreadable objects are skipped */
	bool alive;    /* this request was answered with 200 */
	bool progress; /* this watch has sent an event or a bookmark */
	bool expired;  /* a watch was answered 410, and no watch has sent anything since */
	struct buf rv; /* the next watch begins after it */
	bool deletion; /* RV is that of a deletion: others may have the same */
	char before[24];
	/* this watch's RV while progress on demand is ahead of it; empty: RV */
	struct buf shown;
	struct buf list_rv; /* of the running list's first page */
	struct buf continue_;
	uint64_t pages, empty_pages;
	uint64_t until_ns;
	uint64_t started_ns; /* when this request was begun */
	uint64_t healthy_ns; /* when the last failure was over; 0: it is not */
	uint32_t failures;   /* steps of the back-off */
	uint32_t page_retries;
	uint32_t repeats;          /* pauses by Retry-After since the last answer */
	uint32_t lost_streams;     /* in a row */
	uint64_t no_stream_ns;     /* no streams until then */
	uint32_t strikes;          /* failed watches in a row without an event */
	uint32_t unreadable;       /* attempts in a row with an unreadable object */
	struct feed_action action; /* being decided by this step */
};

void feed_machine_init(
	struct feed_machine *machine, uint32_t page_size, const struct config_policy *policy);
void feed_machine_release(struct feed_machine *machine);

void feed_machine_step(
	struct feed_machine *machine, const struct feed_input *in, struct feed_action *ret_action);

static inline enum feed_phase feed_machine_phase(const struct feed_machine *machine)
{
	return machine->phase;
}

#endif
