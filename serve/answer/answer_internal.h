/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the answer group:
 *
 *	answer.c       the process, its workers, the route of a request
 *	request.c      a request: its head, its life, waiting, the head and body of its answer
 *	authorize.c    whether the client may make the request
 *	state.c        which state of a feed a read shows (the tables of RV rules), and its objects
 *	read.c         GET of one object, LIST: pages, streams
 *	watch.c        WATCH: the stream, its times and its end
 *	group.c        the watches of a worker by feed and group: which of them an event is for
 *	discovery.c    /api, /apis, /version and what is below
 *	forward.c      requests that go to the API server; waiting for a state
 *	encode.c       objects, lists and events in the form that the client accepts
 *
 * A request lives from serve_answer() until the transport lets go of its exchange. It is used by
 * its worker's thread only.
 */
#ifndef SERVE_ANSWER_ANSWER_INTERNAL_H
#define SERVE_ANSWER_ANSWER_INTERNAL_H

#include "common/hashtable.h"
#include "print/table/printer.h"
#include "serve/answer/answer.h"
#include "serve/api/api_accept.h"
#include "serve/api/api_options.h"
#include "serve/api/api_path.h"
#include "serve/api/api_pretty.h"
#include "serve/api/api_status.h"
#include "serve/auth/auth.h"
#include "serve/catalog/catalog.h"
#include "serve/metrics.h"
#include "store/read/as_of.h"

#define ANSWER_MAGIC         0x616e7377u
#define ANSWER_REQUEST_MAGIC 0x61727173u
#define ANSWER_WAIT_NS       UINT64_C(3000000000) /* for an RV that is not here yet */
/* mostly the index has caught up after this */
#define ANSWER_RETRY_NS UINT64_C(3000000)
/* of work, before other clients have their turn */
#define ANSWER_SLICE_NS UINT64_C(1000000)
/* a worker's bytes that clients have not taken */
#define ANSWER_HELD_MAX   ((size_t)64 << 20)
#define ANSWER_GZIP_BYTES ((size_t)128 << 10) /* smaller answers are not compressed */

struct answer {
	uint32_t magic;
	struct catalog *catalog;
	struct auth *auth;
	struct metrics *metrics;
	struct metric_cell *renders[API_FORM_MAX], *groups, *lagging;
	struct serve_worker **wake;
	unsigned n_workers;
	uint64_t max_staleness_ns; /* atomic; 0: any */
	bool forward;
	bool quorum; /* the API server answers reads without an RV */
};

struct answer_group;
struct answer_hook;

/* The watches of one feed at one worker. */
struct answer_feed {
	struct answer_feed *next;
	struct catalog_feed *feed;
	uint64_t news;                 /* that were walked for */
	uint64_t states;               /* that leaves were woken for */
	uint64_t walked;               /* the log, for the watches that have caught up */
	struct hashtable by_name;      /* all groups */
	struct hashtable by_value;     /* those with a hook */
	struct answer_group *unhooked; /* the others */
	struct answer_hook *hooks;
};

/* Watches that ask for the same. */
struct answer_group {
	struct answer_feed *feed;
	uint64_t shown;            /* the seq of the last event that was shown to it */
	struct buf name;           /* what the watches have in common */
	struct answer_hook *hook;  /* NULL: every event is shown to it */
	struct buf value;          /* that the hook's thing must have, or have had */
	struct answer_group *next; /* with the same value */
	struct answer_watch *first;
	size_t behind;               /* of the watches: those that have not caught up */
	struct answer_frame *frames; /* those that are kept */
};

/* The lines that the record of SEQ gives to the watches of a group. */
struct answer_frame {
	struct answer_group *group;
	uint64_t seq;
	struct answer_frame *newer, *older; /* of the worker's */
	struct answer_frame *next, **at;    /* of the group's */
	unsigned n;                         /* events: 0 or 1 */
	bool of_watch; /* the event bears an RV of the watch itself: LINES are not for it */
	char rv[TIMELINE_RV_SIZE]; /* of the record */
	size_t size;
	uint8_t lines[];
};

/* The frames of a worker that were used last. */
struct answer_frames {
	struct hashtable table;
	struct answer_frame *newest, *oldest;
	size_t bytes, room;
	struct metric_cell *kept; /* BYTES of all workers */
};

struct answer_worker {
	struct answer *answer;
	struct serve_worker *worker;
	struct snapshot *snapshot; /* NULL: none could be taken yet */
	struct answer_feed *feeds; /* those with watches */
	struct answer_frames frames;
	struct answer_request *waiting;
};

enum answer_verb { ANSWER_GET, ANSWER_LIST, ANSWER_WATCH };

struct answer_forward;

struct answer_request {
	uint32_t magic;
	struct answer_worker *worker;
	struct exchange *x;
	enum answer_verb verb;
	struct api_path path;
	struct api_options options;
	struct api_accept accept;
	struct api_status status;
	bool gzip; /* the client accepts it */
	bool pretty;
	/* the client is another machine's kinf: bookmarks tell it how old the data is */
	bool is_leaf;
	/* The decision. */
	bool deciding, decided;
	enum auth_answer decision;
	char *user, *reason; /* NULL: none, or no memory for it */
	struct auth_pending *pending;
	/* The feed that answers. */
	struct catalog_feed *feed;
	enum coverage_answer coverage;
	struct buf key;          /* GET: of the object; else the prefix of keys */
	struct printer *printer; /* of tables */
	/* Waiting: `resume` is called again after news, or each few milliseconds, until it is
	 * over. */
	void (*resume)(struct answer_request *request);
	uint64_t wait_until_ns; /* 0: it does not wait */
	uint64_t
		/* the RV that it waits for, newer than the feed's; 0: it waits for something
		 * else */
		ahead;
	struct serve_timer timer;
	bool is_waiting, is_parked;
	struct answer_request *next_waiting, **waiting_at;
	struct answer_list *list;
	struct answer_watch *watch;
	/* Forwarding. */
	bool must_forward;  /* waiting would not help: the API server has what was asked for */
	bool unreachable;   /* it was tried in vain: answered as if nothing could be forwarded */
	bool cache_answers; /* if it is tried in vain */
	struct answer_forward *forward;
};

void answer_request_free(struct answer_request **request);
/* Reads the head. Returns: 0; HTTP statuses with the Status; errors. */
int answer_parse(struct answer_request *request);

/* Returns whether the client wants indented JSON. */
static inline bool answer_is_pretty(const struct answer_request *request)
{
	return !request->accept.protobuf && (request->pretty || request->accept.pretty);
}

/* Asks for the decision, and answers from the cache. */
void answer_locally(struct answer_request *request);
/* Returns the verb of the request as RBAC names it. */
const char *answer_verb_name(const struct answer_request *request);
/* Returns whether the request is a GET or HEAD. */
bool answer_is_read(const struct answer_request *request);
/* Answers a request that the decision has allowed. */
void answer_dispatch(struct answer_request *request);

/* ---- authorize.c ------------------------------------------------- */

/* Asks the authorizer whether the client may make the request. It calls FN, now or later. */
void answer_decide(struct answer_request *request, auth_decided_fn *fn);
void answer_decided(void *context, const struct auth_decision *decision);
/* Answers after the decision. */
void answer_go_on(struct answer_request *request);

/* ---- answer.c ----------------------------------------------------------- */

/* Takes the worker's snapshot for this turn of its loop; the caller gives it back with
 * answer_rest() before the turn ends. Returns: 0; AGAIN: there is no index yet; errors. */
int answer_hold(struct answer_worker *worker);
/* Takes a snapshot of the journal alone. */
int answer_hold_log(struct answer_worker *worker);
void answer_rest(struct answer_worker *worker);

/* Lets the request wait: the transport frees it if the client goes away. */
void answer_park(struct answer_request *request);
/* Calls request->resume again after news of the feed, after a few milliseconds otherwise, or with
 * SOON in the next turn of the loop. Returns false if it can't: the request was answered. */
bool answer_wait(struct answer_request *request, bool soon);
/* Makes the request's timer, once. */
int answer_timer_init(struct answer_request *request);
/* Calls request->resume again, because the state that is asked for is not here yet; refuses the
 * request when it has waited for long enough. */
void answer_later(struct answer_request *request);

/* Returns whether BODY matches the selectors: 1, 0, ERR_CORRUPT. */
int answer_matches(const struct answer_request *request, struct bytes body);

/* ---- request.c and answer.c -------------------------------------- */

void answer_measure_open(struct answer *answer);
/* Returns the cell of a metric whose labels are group and resource, of the request's feed. */
struct metric_cell *answer_cell(const struct answer_request *request, enum metric metric);

/* ---- request.c; each ends the request, which is freed ------------ */

/* Reads what the client accepts, for the refusal R of its query: it is indented for one that
 * accepts no plain objects. Returns R, or 406 with its Status in place of R's if nothing is
 * acceptable, which the API server finds first; R 0 stays. */
int answer_refusal_form(struct answer_request *request, int r);
/* Answers with the Status, or with 500 if R is an error of ours. */
void answer_refuse(struct answer_request *request, int r);
/* Answers with JSON, a compact document, indented if the client likes, or with protobuf. JSON is
 * changed. */
void answer_send(struct answer_request *request, struct buf *json);
/* Returns the content type of objects, lists and watches. */
const char *answer_type(const struct answer_request *request);

/* Returns whether the request's feed is not live. Sets its age in seconds, negative if that is
 * unknown, and why it is not. */
bool answer_is_stale(const struct answer_request *request, double *ret_age, char why[200]);

struct answer_head {
	struct exchange_header headers[8];
	size_t n;
	char age[24], warning[512], retry[16];
};
/* Puts the headers of all answers, refusals too, with those of answer_head_stale(). */
void answer_head(const struct answer_request *request, const char *type, bool gzip,
	struct answer_head *ret_head);
void answer_head_put(struct answer_head *head, const char *name, const char *value);
/* Puts Age and Warning while the request's feed, if there is one, is not live. */
void answer_head_stale(const struct answer_request *request, struct answer_head *head);

/* ---- state.c ----------------------------------------------------- */

struct answer_state {
	uint64_t seq;              /* the state as of it is shown */
	char rv[TIMELINE_RV_SIZE]; /* its RV */
};

/* Returns whether the API server may have objects that the request's feed lacks, because that is
 * not live. */
bool answer_feed_may_lack(const struct answer_request *request);
/* Checks that the feed can be read at all. Returns: 0; 404, 429, 503 with the Status. */
int answer_check_feed(struct answer_request *request);
/* Decides which state the read shows. TOKEN_RV: that of a continue token, 0: there is none. Needs
 * answer_hold(). Returns: 0; AGAIN: it is not here yet; 400, 410. */
int answer_find_state(
	struct answer_request *request, int64_t token_rv, struct answer_state *ret_state);
/* Returns whether RV is no version for the API server, which reads 64 bits. Other servers may
 * have more. */
static inline bool answer_rv_is_too_long(const struct timeline *t, timeline_rv rv)
{
	return rv >> 64 && !(t->newest >> 64);
}
/* Refuses a resourceVersion that the feed can't have: 400. */
int answer_invalid_rv(struct answer_request *request);
/* Sets the Status of a read that has waited in vain: 504. */
int answer_wait_is_over(struct answer_request *request);

/* ---- encode.c ---------------------------------------------------- */

/* Appends what the feed of CustomResourceDefinitions, if there is one, says of the request's
 * resource: its columns, or with LABELS its selectable fields. */
int answer_custom(struct answer_request *request, bool labels, struct buf *out);

/* Checks that the form is one of what is answered, and of a table its includeObject. Returns: 0;
 * 406, 400. */
int answer_form_check(struct answer_request *request);
/* Checks the form of a watch, and makes the printer of tables. Returns: 0; 406, 400; errors. */
int answer_form_init(struct answer_request *request);

/* ---- encode.c ---------------------------------------------------- */

/* A body under way, in a buffer of the caller's: {.request = REQUEST}. One that begins again takes
 * a new encoder. */
struct answer_encoder {
	const struct answer_request *request;
	uint64_t items;     /* of a list */
	bool columns_given; /* of its table, or in an earlier event of the watch */
};

/* The metadata of a list. */
struct answer_page {
	const char *rv, *token;
	uint64_t remaining;
	uint64_t size; /* of all items; protobuf only */
};

/* Each of these appends to OUT and returns: 0; errors. */
int answer_encode_object(struct answer_encoder *encoder, struct bytes body, struct buf *out);
int answer_encode_begin(
	struct answer_encoder *encoder, const struct answer_page *page, struct buf *out);
int answer_encode_item(struct answer_encoder *encoder, struct bytes body, struct buf *out);
int answer_encode_end(
	struct answer_encoder *encoder, const struct answer_page *page, struct buf *out);
/* Counts the items of a list that was given out. */
void answer_encode_count(const struct answer_encoder *encoder);
/* Append an event: a line, or a frame of protobuf. */
int answer_encode_event(struct answer_encoder *encoder, const char *type, struct bytes body,
	struct bytes rv, struct buf *out);
void answer_encode_bookmark(
	struct answer_encoder *encoder, const char *rv, bool ends_initial, struct buf *out);
void answer_encode_error(const struct answer_request *request, struct buf *out);

/* ---- state.c ----------------------------------------------------- */

struct answer_objects;

/* Begins with the objects of the request's keys as of SEQ; AFTER: with the key that this text
 * follows the keys' prefix to, "" for the first. */
int answer_objects_new(struct answer_request *request, uint64_t seq, struct bytes after,
	struct answer_objects **ret_objects);
void answer_objects_free(struct answer_objects **objects);
/* Reads from the worker's snapshot from now on, until answer_objects_rest(). Returns: 0; LAPPED,
 * GONE: the state is not kept any more; errors. */
int answer_objects_renew(struct answer_objects *objects);
void answer_objects_rest(struct answer_objects *objects);
/* Begins again. */
int answer_objects_restart(struct answer_objects *objects);
/* Reads the next object that the selectors match. Returns: FOUND; END; AGAIN: it is later than
 * UNTIL_NS; errors. RET_RECORD is borrowed until answer_objects_rest(). */
int answer_objects_next(
	struct answer_objects *objects, uint64_t until_ns, struct record *ret_record);
/* Passes over the next object, whether or not the selectors match. Nothing can be read after it but
 * after a restart. Returns: FOUND; END; AGAIN; errors. */
int answer_objects_skip(struct answer_objects *objects, uint64_t until_ns);
/* Returns the kind of index that is used, "" for none. */
const char *answer_objects_index(const struct answer_objects *objects);

/* ---- encode.c ---------------------------------------------------- */

#define ANSWER_BRACKET_MAX 65536 /* records of a relist that a watch can be given */

struct answer_change {
	const struct record *old, *new; /* the states before and after; NULL: none */
	struct bytes last; /* the state that the server sent with the deletion, if it did */
	struct bytes rv;   /* of a DELETED event */
};

/* Each of these appends the events of a change that the watch is to see. They return how many, 0 or
 * 1; LAPPED: a record is not kept any more; errors. */
int answer_event(
	struct answer_encoder *encoder, const struct answer_change *change, struct buf *out);
/* LAST_RV is put on a deletion that only a list or a new uid revealed: a client that comes back
 * with it gets what follows. */
int answer_event_record(struct answer_encoder *encoder, const struct record *record,
	struct bytes last_rv, struct buf *out);
/* Reads record SEQ of the feed. Returns: 0, LAPPED, errors. */
int answer_event_read(
	const struct answer_request *request, uint64_t seq, struct record *ret_record);

/* The changes of a relist: deletions first, the others by RV. */
struct answer_row {
	uint64_t old_seq, new_seq; /* the states before and after; 0: none */
	timeline_rv rv;
};
struct answer_bracket {
	struct timeline_entry entry;
	struct answer_row *rows;
	size_t n, room, next;
};
void answer_bracket_free(struct answer_bracket **bracket);
int answer_bracket_load(struct answer_request *request, const struct timeline_entry *entry,
	struct answer_bracket **ret_bracket);
int answer_bracket_next(struct answer_encoder *encoder, struct answer_bracket *bracket,
	char last_rv[TIMELINE_RV_SIZE], struct buf *out);

/* ---- group.c ----------------------------------------------------- */

void answer_frames_init(struct answer_frames *frames, const struct answer *answer);
void answer_frames_release(struct answer_frames *frames);
/* Drops the frames of GROUP: none of its watches needs them. */
void answer_frames_drop(struct answer_worker *worker, struct answer_group *group);
/* Returns what record SEQ is for the watches of GROUP, of which WATCH is one. The frame is valid
 * until the next call. *HELD: the log is held; it is when it had to be read. Returns: 0; LAPPED,
 * AGAIN; errors. */
int answer_frame(struct answer_request *request, struct answer_group *group, uint64_t seq,
	bool *held, const struct answer_frame **ret_frame);

/* ---- group.c ----------------------------------------------------- */

struct answer_watch;
int answer_group_join(struct answer_watch *watch);
void answer_group_leave(struct answer_watch *watch);
void answer_group_set_caught_up(struct answer_watch *watch, bool caught_up);
/* Shows what is new to the groups that it is for, and wakes their watches. */
void answer_group_news(struct answer_worker *worker);

/* ---- watches ------------------------------------------------------------ */

#define WATCH_PIECE ((size_t)32 << 10)

enum watch_stage { WATCH_WAIT, WATCH_INITIAL, WATCH_LIVE, WATCH_ENDED };

struct answer_watch {
	struct answer_request *request;
	struct answer_encoder encoder;
	struct answer_group *group;
	struct answer_watch *next, **at; /* in the group */
	enum watch_stage stage;
	unsigned undecided; /* how often nobody could decide */
	bool caught_up;     /* its position is also that of the group's feed, if that is later */
	bool bookmark_due, finishing;
	bool lags;                      /* counted as lagging: its last read() gave something */
	bool said_stale;                /* by the last bookmark to a leaf */
	struct websocket *socket;       /* the events are its messages; NULL: they are lines */
	struct answer_objects *objects; /* the initial ones */
	uint64_t position;
	char rv[TIMELINE_RV_SIZE]; /* the newest RV that was given, or that the client had; of the
				     * initial objects while they are given */
	timeline_rv
		skip; /* the client asked for this RV, which is to come: none up to it is sent */
	struct answer_bracket *bracket; /* the relist that is being given; NULL: none */
	struct buf out;
	size_t taken; /* of OUT */
	uint64_t deadline_ns, bookmark_ns, decide_ns, retry_ns, last_bookmark_ns;
	struct metric_cell *events, *sizes, *watchers;
};

void answer_watch_set_timer(struct answer_watch *watch);
/* Ends the stream: what comes after its position is not kept any more. */
void answer_watch_expire(struct answer_watch *watch);
/* Makes the next events. Returns: 0: some, or the stage has changed; AGAIN: there are none now;
 * errors. */
int answer_watch_produce(struct answer_watch *watch);

/* ---- forward.c --------------------------------------------------- */

/* Return whether the request could go to the API server; can: it has credentials for it. */
bool answer_may_forward(const struct answer_request *request);
bool answer_can_forward(const struct answer_request *request);
/* Sends the request to the API server, which decides on it. */
void answer_forward(struct answer_request *request);
void answer_forward_free(struct answer_forward **forward);

/* ---- the verbs; R of the request's options is valid --------------------- */

void answer_read(struct answer_request *request);
void answer_list_begin(struct answer_request *request);
void answer_list_free(struct answer_list **list);
void answer_watch_begin(struct answer_request *request);
void answer_watch_free(struct answer_watch **watch);

/* ---- watch.c ----------------------------------------------------- */

/* Returns whether the client takes the events of its watch only as messages of a WebSocket,
 * which can be answered here. */
bool answer_takes_messages(const struct answer_request *request);
/* Checks the handshake and makes the watch's socket. Returns: 0; 400 with the Status; -ENOMEM. */
int answer_socket_make(struct answer_watch *watch);
/* Begins the answer: status 101, and nothing but frames after it. */
void answer_socket_begin(struct answer_watch *watch);

void answer_discovery(struct answer_request *request);
/* Returns whether the request is for a document that is made of the feeds, or for the version. */
bool answer_is_discovery(const struct answer_request *request);
/* Returns whether the document is made of the feeds. */
bool answer_is_of_feeds(const struct answer_request *request);

#endif
