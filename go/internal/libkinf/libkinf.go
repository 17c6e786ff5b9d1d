// SPDX-License-Identifier: Apache-2.0

//go:build cgo && libkinf

// Package libkinf asks the C library of build/release, the oracle of the tests. An answer is a text, with
// a line for each object, value or feed.
package libkinf

/*
#cgo CFLAGS: -I${SRCDIR}/../../../reader
#cgo LDFLAGS: -L${SRCDIR}/../../../build/release -Wl,-rpath,${SRCDIR}/../../../build/release -lkinf
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "kinf.h"

struct answer {
	FILE *to;
	char *text;
	size_t size;
};

// FNV-1a, as in hash/fnv.
static uint64_t hash(const uint8_t *at, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	while (n-- > 0)
		h = (h ^ *at++) * UINT64_C(0x100000001b3);
	return h;
}

static void put(FILE *to, const char *what, const struct kinf_object *o)
{
	if (o)
		fprintf(to, "%s%.*s %" PRIu32 " %" PRIu64 " %.*s %.*s %016" PRIx64 "\n", what, (int)o->key_size, o->key,
			o->feed, o->event, (int)o->uid_size, o->uid, (int)o->resource_version_size, o->resource_version,
			hash(o->body, o->body_size));
}

static int get(struct kinf_snapshot *s, const char *feed, const char *namespace, const char *name, FILE *to)
{
	struct kinf_object o;
	int r = kinf_get(s, feed, namespace, name, &o);

	if (r == KINF_FOUND)
		put(to, "", &o);
	return r;
}

static int list(struct kinf_snapshot *s, const char *feed, const char *namespace, const char *labels,
	const char *fields, const char *index, const char *value, FILE *to)
{
	struct kinf_term term = {index, value};
	struct kinf_query query = {.size = sizeof(query), .feed = feed, .namespace_ = *namespace ? namespace : NULL,
		.label_selector = labels, .field_selector = fields, .terms = &term, .n_terms = *index != '\0'};
	struct kinf_listing *listing = NULL;
	struct kinf_object o;
	int r = kinf_list(s, &query, &listing);

	while (r == KINF_FOUND && (r = kinf_list_next(listing, &o)) == KINF_FOUND)
		put(to, "", &o);
	kinf_list_close(&listing);
	return r == KINF_END ? 0 : r;
}

static int put_value(void *to, const char *value, size_t size, uint64_t count)
{
	fprintf(to, "%.*s %" PRIu64 "\n", (int)size, value, count);
	return 0;
}

static int values(struct kinf_snapshot *s, const char *feed, const char *index, FILE *to)
{
	return kinf_index_values(s, feed, index, NULL, put_value, to);
}

#define BOOL(b) ((b) ? "true" : "false")

static int put_feed(void *to, const struct kinf_feed_info *f)
{
	fprintf(to, "%" PRIu32 " %s %s %s %s %s '%s' %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		" %" PRIu64 " %" PRIu64 " %s %s\n", f->feed, f->full_name, f->resource, f->kind, f->namespace_, f->state,
		f->last_error, f->resource_version, f->objects, f->event, f->lag, f->lists, f->watches, f->events,
		f->retries, BOOL(f->synced), BOOL(f->namespaced));
	return 0;
}

static int feeds(struct kinf_snapshot *s, const char *feed, FILE *to)
{
	return kinf_feed_status(s, *feed ? feed : NULL, put_feed, to);
}

// A handler of an informer. What it gets goes to the answer of now.
struct listener {
	struct kinf_informer *informer;
	FILE *to;
};

static void on_add(void *arg, const struct kinf_object *o, int initial)
{
	put(((struct listener *)arg)->to, initial ? "INITIAL " : "ADDED ", o);
}

static void on_update(void *arg, const struct kinf_object *old, const struct kinf_object *o)
{
	put(((struct listener *)arg)->to, "MODIFIED ", o);
	put(((struct listener *)arg)->to, "OLD ", old);
}

static void on_delete(void *arg, const struct kinf_object *o, int unknown)
{
	put(((struct listener *)arg)->to, unknown ? "MISSING " : "DELETED ", o);
}

static void on_sync(void *arg) { fputs("SYNC\n", ((struct listener *)arg)->to); }
static void on_lapped(void *arg) { fputs("LAPPED\n", ((struct listener *)arg)->to); }

static int follow(struct kinf *k, const char *cursor, uint64_t from, struct listener *l)
{
	struct kinf_informer_options options = {.size = sizeof(options), .cursor = *cursor ? cursor : NULL, .from = from};
	struct kinf_handler_options handler = {.size = sizeof(handler), .arg = l, .on_add = on_add,
		.on_update = on_update, .on_delete = on_delete, .on_sync = on_sync, .on_lapped = on_lapped};
	struct kinf_handler *added;
	int r = kinf_informer_new(k, "pods", &options, &l->informer);

	return r < 0 ? r : kinf_informer_add_handler(l->informer, &handler, &added);
}

static int dispatch(struct listener *l, FILE *to)
{
	struct pollfd ready = {.fd = kinf_informer_fd(l->informer), .events = POLLIN};

	(void)poll(&ready, 1, 100);
	l->to = to;
	int r = kinf_informer_dispatch(l->informer, 0);
	return r < 0 ? r : 0;
}
*/
import "C"

import (
	"context"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"kinf"
)

// An Error is a result other than 0, and libkinf's sentence for it.
type Error struct {
	code int
	text string
}

func (e *Error) Error() string { return e.text }

// Kind is the error that this module has for it.
func (e *Error) Kind() error {
	kind, ok := map[int]error{C.KINF_NOT_FOUND: kinf.ErrNotFound, C.KINF_AGAIN: kinf.ErrNotYet, C.KINF_CORRUPT: kinf.ErrCorrupt,
		C.KINF_FORMAT: kinf.ErrFormat, C.KINF_NO_FEED: kinf.ErrNoFeed, C.KINF_SNAPSHOT_EXPIRED: kinf.ErrExpired,
		C.KINF_LOCKED: kinf.ErrLocked, C.KINF_NO_STORE: kinf.ErrNoStore, C.KINF_SYNTAX: kinf.ErrSyntax,
		C.KINF_NO_INDEX: kinf.ErrNoIndex}[e.code]
	if !ok {
		return syscall.Errno(-e.code)
	}
	return kind
}

// A Store is a struct kinf with a snapshot. One goroutine uses it at a time, but for Changes.
type Store struct {
	kinf     *C.struct_kinf
	snapshot *C.struct_kinf_snapshot
}

// Open takes a snapshot of a store. Each record's checksum is verified.
func Open(path string) (*Store, error) {
	s := &Store{}
	_, err := s.ask(func(*C.FILE) C.int {
		if r := C.kinf_open(text(path), &s.kinf); r != 0 {
			return r
		}
		C.kinf_set_check(s.kinf, 1)
		return C.kinf_snapshot_open(s.kinf, &s.snapshot)
	})
	if err != nil {
		s.Close()
	}
	return s, err
}

// Close closes the store.
func (s *Store) Close() {
	C.kinf_snapshot_close(&s.snapshot)
	C.kinf_close(&s.kinf)
}

// text is a C string for one call.
func text(s string) *C.char { return (*C.char)(unsafe.Pointer(unsafe.StringData(s + "\x00"))) }

// ask gives what a call writes, and its error: that is the thread's.
func (s *Store) ask(call func(to *C.FILE) C.int) (string, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a := (*C.struct_answer)(C.calloc(1, C.sizeof_struct_answer))
	defer C.free(unsafe.Pointer(a))
	a.to = C.open_memstream(&a.text, &a.size)
	r := call(a.to)
	C.fclose(a.to)
	defer C.free(unsafe.Pointer(a.text))
	if r != 0 {
		return C.GoStringN(a.text, C.int(a.size)), &Error{int(r), C.GoString(C.kinf_error(s.kinf))}
	}
	return C.GoStringN(a.text, C.int(a.size)), nil
}

// Renew takes a snapshot of the newest state.
func (s *Store) Renew() error {
	_, err := s.ask(func(*C.FILE) C.int { return C.kinf_snapshot_renew(s.snapshot) })
	return err
}

// Event returns the event that the snapshot is complete up to.
func (s *Store) Event() uint64 { return uint64(C.kinf_snapshot_event(s.snapshot)) }

// Get gives an object.
func (s *Store) Get(feed, key string) (string, error) {
	namespace, name, found := strings.Cut(key, "/")
	if !found {
		namespace, name = "", key
	}
	return s.ask(func(to *C.FILE) C.int { return C.get(s.snapshot, text(feed), text(namespace), text(name), to) })
}

// List gives the objects of a query, of an index if it is not "".
func (s *Store) List(feed string, q kinf.Query, index, value string) (string, error) {
	return s.ask(func(to *C.FILE) C.int {
		return C.list(s.snapshot, text(feed), text(q.Namespace), text(q.LabelSelector), text(q.FieldSelector), text(index),
			text(value), to)
	})
}

// IndexValues gives the values of an index, and how many objects have each.
func (s *Store) IndexValues(feed, index string) (string, error) {
	return s.ask(func(to *C.FILE) C.int { return C.values(s.snapshot, text(feed), text(index), to) })
}

// Feeds gives the feeds of a name, all with "", and their states.
func (s *Store) Feeds(feed string) (string, error) {
	return s.ask(func(to *C.FILE) C.int { return C.feeds(s.snapshot, text(feed), to) })
}

// Changes gives what an informer of pods tells, until it is enough. It begins at a cursor, after an event,
// or with all objects.
func (s *Store) Changes(ctx context.Context, cursor string, after uint64, enough func(string) bool) (changes string, err error) {
	l := (*C.struct_listener)(C.calloc(1, C.sizeof_struct_listener))
	defer func() {
		C.kinf_informer_free(&l.informer)
		C.free(unsafe.Pointer(l))
	}()
	_, err = s.ask(func(*C.FILE) C.int { return C.follow(s.kinf, text(cursor), C.uint64_t(after), l) })
	for err == nil && !enough(changes) {
		var more string
		if more, err = s.ask(func(to *C.FILE) C.int { return C.dispatch(l, to) }); err == nil {
			err = ctx.Err()
		}
		changes += more
	}
	return changes, err
}
