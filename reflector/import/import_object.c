/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/import/import_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/value/value.h"
#include "reflector/cluster/catalogue.h"
#include "reflector/record/object.h"

#define BATCH ((uint64_t)8 << 20) /* bytes in a transaction */

/* The members of an object that identify it, borrowed from its body. */
struct import_identity {
	struct bytes kind, api_version, name, name_space, uid, rv;
	bool has_metadata, has_items;
};

/* ---- identity ----------------------------------------------------------- */

static int object_identify(struct bytes body, struct import_identity *identity)
{
	struct value root, item;
	int r = value_read(body, &root);

	*identity = (struct import_identity){.has_metadata = false};
	if (r < 0)
		return r;
	identity->kind = catalogue_text(&root, "kind");
	identity->api_version = catalogue_text(&root, "apiVersion");
	identity->has_items = value_find(&root, BYTES_LIT("items"), &item) == FOUND;
	if (value_find(&root, BYTES_LIT("metadata"), &item) != FOUND || item.type != VALUE_MAP)
		return 0;
	identity->has_metadata = true;
	identity->name = catalogue_text(&item, "name");
	identity->name_space = catalogue_text(&item, "namespace");
	identity->uid = catalogue_text(&item, "uid");
	identity->rv = catalogue_text(&item, "resourceVersion");
	return 0;
}

static bool object_is_list(struct bytes kind)
{
	return kind.size >= 4 && memcmp((const char *)kind.data + kind.size - 4, "List", 4) == 0;
}

/* Reads kind, group and version of an object. Returns false if it can't be one. */
static bool object_kind(const struct import_identity *identity, struct import_kind *kind)
{
	struct bytes version = identity->api_version;
	const char *slash = version.size ? memchr(version.data, '/', version.size) : NULL;
	size_t group = slash ? (size_t)(slash - (const char *)version.data) : 0;
	size_t after = slash ? group + 1 : 0;

	*kind = (struct import_kind){.namespaced = identity->name_space.size > 0};
	return identity->kind.size && version.size > after &&
	       catalogue_copy_name(identity->kind, kind->kind, sizeof(kind->kind) - 8) &&
	       catalogue_copy_name(BYTES(version.data, group), kind->group, sizeof(kind->group)) &&
	       catalogue_copy_name(BYTES((const char *)version.data + after, version.size - after),
		       kind->version, sizeof(kind->version));
}

/* Finds the kind of an object without one: by its list, else by the path of its file. In
 * namespaces/NAME/, an object of NAME is no Namespace. ROOM holds the texts. */
static bool object_find_kind(struct import *import, struct bytes kind, struct bytes version,
	struct import_identity *identity, char *room, size_t size)
{
	const char *path = import->file->path;
	struct import_kind named;
	size_t end = strlen(path);

	if (kind.size > 4 && version.size && object_is_list(kind)) {
		identity->kind = BYTES(kind.data, kind.size - 4);
		identity->api_version = version;
		return true;
	}
	while (end) { /* the last component first, without its ending */
		size_t start = end;

		while (start && path[start - 1] != '/')
			start--;
		const char *dot = path[end] ? NULL : strrchr(path + start, '.');
		size_t stop = dot ? (size_t)(dot - path) : end;
		if (import_find_named(path + start, stop - start, &named) &&
			(named.namespaced || !identity->name_space.size)) {
			size_t n = (size_t)snprintf(room, size, "%s%s%s", named.group,
				*named.group ? "/" : "", named.version);
			identity->api_version = BYTES(room, n);
			identity->kind = BYTES(room + n + 1, strlen(named.kind));
			(void)snprintf(room + n + 1, size - n - 1, "%s", named.kind);
			return true;
		}
		end = start ? start - 1 : 0;
	}
	return false;
}

/* Puts kind and apiVersion before the members of BODY: the API server leaves them out of the items
 * of typed lists. */
static int object_put_kind(
	struct import *import, struct bytes body, struct bytes kind, struct bytes version)
{
	struct buf *out = &import->headed;
	struct value root;
	int r = value_read(body, &root);

	if (r < 0)
		return r;
	buf_reset(out);
	size_t map = value_open_map(out);
	value_put_string(out, BYTES_LIT("kind"));
	value_put_string(out, kind);
	value_put_string(out, BYTES_LIT("apiVersion"));
	value_put_string(out, version);
	buf_bytes_put(out, root.inner);
	value_close(out, map, root.count + 2);
	return buf_error(out);
}

/* ---- records ------------------------------------------------------------ */

static int object_append(struct import *import, struct record *record, enum record_type type)
{
	uint64_t seq;

	record->type = (uint8_t)type;
	record->time_ns = import->change ? import->audit_ns : import->time_ns;
	import->stored++;
	import->open_bytes += record->body.size;
	return journal_append(import->journal, record, &seq);
}

/* Takes another version of the object that HEAD names. */
static int object_again(struct import *import, const struct import_feed *feed,
	struct record *record, const struct head *head)
{
	bool same_source = head->seq > feed->begin;
	bool other_uid = head->uid.size && record->uid.size && !bytes_equal(head->uid, record->uid);
	int order = record->rv.size && head->rv.size ? rv_compare(record->rv, head->rv)
						     : RV_NOT_COMPARABLE;
	struct record old;

	if (import->change == IMPORT_DELETION)
		return other_uid ? 0 : object_append(import, record, RECORD_DELETED);
	if (order == 0 || ((same_source || import->change) && order == -1))
		return 0;
	if (order == RV_NOT_COMPARABLE) {
		int r = journal_get(import->journal, journal_txn(import->journal), head->seq, &old);

		if (r < 0 || (r == FOUND && bytes_equal(old.body, record->body)))
			return r;
	}
	if (same_source && !import->change && (order == RV_NOT_COMPARABLE || other_uid))
		return err_say(ERR_PROTOCOL, "it is there twice, and differs");
	if (!other_uid)
		return object_append(import, record, RECORD_MODIFIED);
	struct record gone = {.feed = feed->id,
		.type = RECORD_DELETED,
		.flags = RECORD_FINAL_STATE_UNKNOWN,
		.key = record->key,
		.uid = head->uid,
		.rv = record->rv,
		.time_ns = import->change ? import->audit_ns : import->time_ns};
	uint64_t seq;
	int r = journal_append(import->journal, &gone, &seq);
	return r < 0 ? r : object_append(import, record, RECORD_ADDED);
}

static int object_record(struct import *import, struct import_feed *feed,
	const struct import_identity *identity, struct bytes body)
{
	struct record record = {
		.feed = feed->id, .uid = identity->uid, .rv = identity->rv, .body = body};
	struct head head;

	buf_reset(&import->key);
	if (identity->name_space.size) {
		buf_bytes_put(&import->key, identity->name_space);
		buf_byte(&import->key, '/');
	}
	buf_bytes_put(&import->key, identity->name);
	record.key = buf_bytes(&import->key);
	int r = buf_error(&import->key);
	if (r == 0 && record.key.size > JOURNAL_KEY_MAX)
		return err_say(ERR_TOO_LARGE, "its name has %zu bytes", record.key.size);
	if (r == 0)
		r = journal_head(
			import->journal, journal_txn(import->journal), feed->id, record.key, &head);
	if (r == FOUND)
		r = object_again(import, feed, &record, &head);
	else if (r == NOT_FOUND && import->change != IMPORT_DELETION)
		r = object_append(import, &record, RECORD_ADDED);
	if (r == NOT_FOUND)
		return 0; /* deleted, and never seen */
	if (r == 0 && !feed->is_new && feed->open)
		r = ARRAY_ADD(feed->seen, feed->n_seen, feed->seen_room, hash_bytes(record.key, 0),
			"the names of a list");
	if (r == 0 && identity->rv.size && identity->rv.size < sizeof(feed->rv) &&
		(!*feed->rv || rv_compare(identity->rv, bytes_str(feed->rv)) == 1))
		(void)snprintf(feed->rv, sizeof(feed->rv), "%.*s", BYTES_ARG(identity->rv));
	return r;
}

/* Refuses a dump of another cluster: its objects would look like changes. */
static int object_check_cluster(struct import *import, const struct import_kind *kind,
	const struct import_identity *identity)
{
	char *known = import->cluster;

	if (strcmp(kind->kind, "Namespace") != 0 || *kind->group || !identity->uid.size ||
		!bytes_equal(identity->name, BYTES_LIT("kube-system")))
		return 0;
	if (*known && !bytes_equal(bytes_str(known), identity->uid))
		return err_say(-EXDEV,
			"it is a dump of another cluster: its namespace kube-system has the uid "
			"%.*s, before it was %s; import it into a store of its own",
			BYTES_ARG(identity->uid), known);
	(void)snprintf(known, sizeof(import->cluster), "%.*s", BYTES_ARG(identity->uid));
	return 0;
}

static int object_store(struct import *import, struct import_identity *identity,
	const struct import_kind *kind, struct bytes body)
{
	static const char *const keys[] = {"metadata", "namespace", NULL};
	CLEANUP(buf_release) struct buf moved = BUF_INIT;
	struct import_feed *feed = NULL;
	struct value root;
	int r = object_check_cluster(import, kind, identity);

	if (r == 0 && import->open_bytes >= BATCH) {
		import->open_bytes = 0;
		r = journal_commit(import->journal);
	}
	if (r == 0)
		r = journal_begin(import->journal);
	if (r == 0)
		r = import_find_feed(import, kind, &feed);
	if (r == 0 && feed->kind.scope_is_known && feed->kind.namespaced != kind->namespaced) {
		identity->name_space = feed->kind.namespaced ? BYTES_LIT("default") : BYTES_NONE;
		r = value_read(body, &root);
		if (r == 0)
			r = import_set(&root, keys, identity->name_space, &moved);
		body = buf_bytes(&moved);
	}
	return r < 0 ? r : object_record(import, feed, identity, body);
}

/* Opens the feed of a typed list, which may have been empty. */
static int object_take_list(struct import *import, struct import_identity *identity)
{
	struct import_feed *feed;
	struct import_kind kind;

	if (object_is_list(identity->kind))
		identity->kind.size -= 4;
	if (!object_kind(identity, &kind))
		return 0;
	int r = journal_begin(import->journal);
	return r < 0 ? r : import_find_feed(import, &kind, &feed);
}

/* Takes the items of the list BODY, which is itself an item: the others come one by one. */
static int object_take_items(
	struct import *import, struct bytes body, const struct import_identity *identity)
{
	struct value root, items, item;
	struct value_iter iter;
	struct bytes inner;
	int r = value_read(body, &root);

	if (r == 0)
		r = value_find(&root, BYTES_LIT("items"), &items);
	if (r != FOUND || items.type != VALUE_ARRAY)
		return r < 0 ? r : 0;
	value_iter_init(&iter, &items);
	while ((r = value_iter_next(&iter, NULL, &item)) == FOUND) {
		if (item.type != VALUE_MAP)
			return err_say(ERR_PROTOCOL, "an item that is no object");
		r = value_document(&item, &inner);
		if (r == 0)
			r = import_object(import, inner, identity->kind, identity->api_version);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

/* ---- import_internal.h -------------------------------------------------- */

int import_set(const struct value *map, const char *const *keys, struct bytes text, struct buf *out)
{
	struct value item, member = {.type = VALUE_NIL};
	struct bytes name, body;
	struct value_iter iter;
	uint32_t count = 0;
	int r;

	size_t opened = value_open_map(out);
	value_iter_init(&iter, map);
	while ((r = value_iter_next(&iter, &name, &item)) == FOUND) {
		if (bytes_equal(name, bytes_str(*keys))) {
			member = item;
			continue;
		}
		r = value_document(&item, &body);
		if (r < 0)
			return r;
		value_put_string(out, name);
		buf_bytes_put(out, body);
		count++;
	}
	if (r < 0)
		return r;
	if (keys[1] || text.size) {
		value_put_string(out, bytes_str(*keys));
		count++;
	}
	if (keys[1])
		r = import_set(&member, keys + 1, text, out);
	else if (text.size)
		value_put_string(out, text);
	value_close(out, opened, count);
	return r < 0 ? r : buf_error(out);
}

static int object_take(struct import *import, struct bytes *body, struct import_identity *identity,
	struct bytes kind, struct bytes version)
{
	bool alone = !*import->file->path;
	struct import_kind own;
	char room[2 * IMPORT_NAME];
	int r = object_identify(*body, identity);
	/* Support bundles of 2023 have a list of the kind of its items. */
	bool is_list =
		identity->has_items && (object_is_list(identity->kind) || !identity->name.size);

	if (r == 0 && is_list)
		r = object_take_items(import, *body, identity);
	if (r == 0 && !identity->kind.size && !identity->api_version.size &&
		identity->has_metadata &&
		object_find_kind(import, kind, version, identity, room, sizeof(room))) {
		r = object_put_kind(import, *body, identity->kind, identity->api_version);
		*body = buf_bytes(&import->headed);
		if (r == 0)
			r = object_identify(*body, identity);
	}
	if (r < 0)
		return r;
	if (bytes_equal(identity->kind, BYTES_LIT("APIResourceList")))
		return import_take_discovery(import, *body);
	if (bytes_equal(identity->kind, BYTES_LIT("Event")) &&
		bytes_starts(identity->api_version, BYTES_LIT("audit.k8s.io/"))) {
		import->events++;
		return import_audit(import, *body);
	}
	if (is_list)
		return object_take_list(import, identity);
	bool is_object = object_kind(identity, &own);
	if (!identity->has_metadata && (!alone || !is_object))
		return 0; /* other files and documents are among them */
	import->objects++;
	if (!is_object)
		return err_say(ERR_PROTOCOL,
			identity->kind.size && identity->api_version.size
				? "its kind or apiVersion is no name that an API server would take"
				: "it has no kind and apiVersion, as 'kubectl get -o json' writes "
				  "them");
	if (!identity->name.size || memchr(identity->name.data, '/', identity->name.size) ||
		(identity->name_space.size &&
			memchr(identity->name_space.data, '/', identity->name_space.size)))
		return err_say(ERR_PROTOCOL, "it has no name");
	if (memchr(identity->name.data, '\0', identity->name.size))
		return err_say(ERR_TOO_LARGE, OBJECT_NAME_HAS_NUL);
	return object_store(import, identity, &own, *body);
}

int import_object(struct import *import, struct bytes body, struct bytes kind, struct bytes version)
{
	struct import_identity identity = {.has_metadata = false};
	char name[JOURNAL_KEY_MAX + 1];
	int r = object_take(import, &body, &identity, kind, version);

	if (!import_is_bad_input(r))
		return r;
	(void)snprintf(name, sizeof(name), "%.*s%s%.*s", BYTES_ARG(identity.name_space),
		identity.name_space.size ? "/" : "", BYTES_ARG(identity.name));
	import_skip(import, import->file->name, import->line, name, r);
	return 0;
}

/* Reads the last version of a deleted object, and names the user in it. */
static int object_last(struct import *import, const struct import_deletion *deletion, uint64_t seq,
	struct bytes *ret_body)
{
	struct record last;
	struct value root;
	int r = journal_get(import->journal, journal_txn(import->journal), seq, &last);

	if (r != FOUND || !last.body.size)
		return r < 0 ? r : 0;
	r = value_read(last.body, &root);
	if (r == 0)
		r = import_annotate(import, &root, deletion->user);
	if (r == 0)
		*ret_body = buf_bytes(&import->annotated);
	return r;
}

int import_delete(struct import *import, const struct import_deletion *deletion)
{
	struct record record = {.type = RECORD_DELETED, .time_ns = import->audit_ns};
	uint64_t seq;
	struct head head;
	int r = journal_begin(import->journal);

	buf_reset(&import->key);
	if (deletion->name_space.size) {
		buf_bytes_put(&import->key, deletion->name_space);
		buf_byte(&import->key, '/');
	}
	buf_bytes_put(&import->key, deletion->name);
	record.key = buf_bytes(&import->key);
	for (size_t i = 0; r == 0 && i < import->n_feeds; i++) {
		const struct import_kind *kind = &import->feeds[i].kind;

		if (!bytes_equal(bytes_str(kind->group), deletion->group) ||
			!bytes_equal(bytes_str(kind->plural), deletion->resource) ||
			!record.key.size || record.key.size > JOURNAL_KEY_MAX)
			continue;
		record.feed = import->feeds[i].id;
		r = journal_head(import->journal, journal_txn(import->journal), record.feed,
			record.key, &head);
		if (r != FOUND || (deletion->uid.size && head.uid.size &&
					  !bytes_equal(deletion->uid, head.uid))) {
			r = r < 0 ? r : 0;
			continue;
		}
		record.uid = head.uid;
		record.rv = head.rv;
		record.body = BYTES_NONE;
		r = deletion->user.size ? object_last(import, deletion, head.seq, &record.body) : 0;
		record.flags = record.body.size ? 0 : RECORD_FINAL_STATE_UNKNOWN;
		if (r == 0)
			r = journal_append(import->journal, &record, &seq);
		import->objects++;
	}
	return r;
}
