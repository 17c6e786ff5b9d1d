/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of informers: a store of one feed "pods" made by the processor's modules, changed by
 * hand, and handlers writing down their events:
 *
 *	"add! a/x=1"  on_add of the initial state (version 1 of a/x)     "add a/x=1"  another on_add
 *	"upd a/x=1>2" on_update ("?>2": the old state is not known)      "sync"  "lapped"
 *	"del a/x=2"   on_delete ("del? a/x=2": final state unknown; "a/x" alone: no state at all)
 *
 * joined by blanks. All failures fail the test.
 */
#ifndef UNIT_TAPE_H
#define UNIT_TAPE_H

#include "common/buf.h"
#include "reader/kinf.h"
#include "tests/unit/rig.h"

struct cache {
	struct rig rig;
	struct kinf *kinf;
	uint32_t feed; /* id of "pods" */
	unsigned version;
};

extern struct cache cache;

/* With the feed listed and empty; to be a suite's .init and .fini. */
void cache_open(void);
void cache_close(void);

/* Writes "a/x"; its version is counted. NODE: spec.nodeName, the index "node"; NULL: "n". */
uint64_t cache_put(const char *key, const char *node);
void cache_delete(const char *key);
/* All in NAMES ("a/x a/y") as one list: other objects are found missing. */
void cache_relist(const char *names);
/* Commits and indexes all changes. */
void cache_take(void);
/* Trims all changes from the history. */
void cache_trim(void);
/* A feed "pods" of another definition takes the old one's place; empty and listed. */
void cache_replace_feed(void);

struct tape {
	struct buf text;
	struct kinf_informer *informer;
	struct kinf_handler *handler;
	unsigned calls;
	/* Called after each note, when set. */
	void (*then)(struct tape *tape);
};

/* Handler options of a tape; .arg is the tape. */
struct kinf_handler_options tape_options(struct tape *tape);
void tape_release(struct tape *tape);

struct kinf_informer *tape_informer(const struct kinf_informer_options *options);
struct kinf_handler *tape_add(
	struct kinf_informer *informer, struct tape *tape, const char *field_selector);
/* Dispatches until nothing is left. */
void tape_drain(struct kinf_informer *informer);
/* The tape says exactly this, and is emptied. */
void tape_is(struct tape *tape, const char *text);
/* The same in any order. */
void tape_is_any_order(struct tape *tape, const char *text);

#define KINF_OK(call) \
	do { \
		int ok_ = (call); \
		cr_assert_eq(ok_, 0, "%s: %d %s", #call, ok_, kinf_error(cache.kinf)); \
	} while (0)

#endif
