/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the import group: import.c (sources become lists), import_file.c (files become
 * objects), import_audit.c (audit events become objects), import_etcd.c (so do keys of etcd, bolt.c
 * reads the file), import_object.c (objects become records), import_feeds.c (kinds become feeds).
 */
#ifndef REFLECTOR_IMPORT_IMPORT_INTERNAL_H
#define REFLECTOR_IMPORT_IMPORT_INTERNAL_H

#include <stdint.h>

#include "common/buf.h"
#include "common/value/json.h"
#include "common/value/value.h"
#include "reflector/feed/list.h"
#include "reflector/import/import.h"
#include "reflector/import/source.h"
#include "store/journal/journal.h"

#define IMPORT_NAME 256

/* A kind of objects and its resource. */
struct import_kind {
	bool namespaced;
	bool scope_is_known; /* else `namespaced` is guessed from the objects */
	char group[IMPORT_NAME], version[64], kind[IMPORT_NAME / 2];
	char plural[IMPORT_NAME / 2], singular[IMPORT_NAME / 2], list_kind[IMPORT_NAME / 2 + 8];
	char short_names[IMPORT_NAME], categories[IMPORT_NAME]; /* with a blank after each */
};

struct import_feed {
	struct import_kind kind;
	uint32_t id;
	bool open;      /* this source has objects of it */
	uint64_t begin; /* seq of its LIST_BEGIN */
	uint64_t *seen; /* hashes of the keys in this source */
	size_t n_seen, seen_room;
	bool is_new; /* of this source: nothing can be missing */
	char rv[64]; /* the newest of its objects */
};

/* The kinds of input: an object of a dump; one that was written or deleted, by an audit log or a
 * snapshot of etcd. */
enum import_change { IMPORT_LISTED, IMPORT_WRITE, IMPORT_DELETION };

struct import {
	struct home *home;
	struct journal *journal;
	struct json_parser *parser;
	struct list *list;
	struct import_feed *feeds;
	size_t n_feeds, feeds_room, last_feed;
	struct import_kind *known; /* of discovery documents in the dump */
	size_t n_known, known_room;
	struct buf body, headed, annotated, key;
	uint64_t open_bytes;
	uint64_t objects, stored, named, unreadable; /* of all sources */
	uint64_t time_ns;                            /* of the source; 0: now */
	bool incomplete;                             /* the source, in any of its kinds */
	uint64_t *skipped; /* hashes of the keys that this source has, but are left out */
	size_t n_skipped, skipped_room;
	char cluster[64]; /* uid of kube-system; "": unknown */

	uint64_t events; /* of audit logs */
	enum import_change change;
	uint64_t audit_ns; /* time of the last audit event */

	/* The file being read. */
	const struct source_file *file;
	size_t line;  /* of the object; 0: unknown */
	size_t lines; /* of JSON, before the piece */
};

/* ---- import.c ------------------------------------------------------------ */

/* Names what is left out because of R: NAME's LINE (0: unknown) and its OBJECT ("": unknown). An
 * earlier version of OBJECT stays as it is; without OBJECT, all that this source lacks. */
void import_skip(struct import *import, const char *name, size_t line, const char *object, int r);
/* Returns true if R is a fault of the input, not of this machine. */
bool import_is_bad_input(int r);

/* ---- import_file.c ------------------------------------------------------- */

/* Takes an item of the list cutter (list_item_fn). */
int import_take_item(void *arg, struct bytes item, bool cut);
/* Reads all objects of FILE. Returns: 0; errors that are not the file's. */
int import_file(void *arg, const struct source_file *file);

/* ---- import_object.c ----------------------------------------------------- */

/* Stores the object BODY. KIND and VERSION are its List's, maybe empty. Returns: 0, also if it is
 * left out; errors. */
int import_object(
	struct import *import, struct bytes body, struct bytes kind, struct bytes version);

/* Writes MAP to OUT with the string TEXT at KEYS, names of maps within maps that end with NULL;
 * without a member there if TEXT is empty. */
int import_set(
	const struct value *map, const char *const *keys, struct bytes text, struct buf *out);

/* A deletion without the object. */
struct import_deletion {
	struct bytes group, resource, name_space, name; /* resource: the plural */
	struct bytes uid;                               /* empty: any */
	struct bytes user; /* is named in the last version; empty: unknown */
};

int import_delete(struct import *import, const struct import_deletion *deletion);

/* ---- import_audit.c ------------------------------------------------------ */

/* Takes an audit event. Returns as import_object(). */
int import_audit(struct import *import, struct bytes body);
/* Writes OBJECT with the user's name in its annotation to import->annotated; without the annotation
 * if USER is empty. */
int import_annotate(struct import *import, const struct value *object, struct bytes user);

/* ---- import_etcd.c ------------------------------------------------------- */

/* Takes all revisions in FILE, a bbolt file. Returns as import_file(). */
int import_etcd(struct import *import, const struct source_file *file);

/* ---- import_feeds.c ------------------------------------------------------ */

/* Finds a kind among the API server's own by the name of a file or directory: plural, singular or
 * short name, also with .group. */
bool import_find_named(const char *name, size_t size, struct import_kind *ret_kind);
/* Takes an APIResourceList of the dump. */
int import_take_discovery(struct import *import, struct bytes body);
/* Takes the plural of the object that was stored last, unless it is no name. */
void import_take_plural(struct import *import, struct bytes plural);
/* Finds the feed of KIND's kind, version and group, or adds it. Opens its list. For a change it is
 * the feed of any version, and gets the newest one. */
int import_find_feed(
	struct import *import, const struct import_kind *kind, struct import_feed **ret_feed);
/* Gives all feeds the names and columns of definitions and discovery in the dump. */
int import_define_feeds(struct import *import);

#endif
