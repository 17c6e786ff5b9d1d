/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of etcd: each revision that is not compacted becomes a version, in their order. Custom
 * resources, their definitions and APIServices are kept as JSON. The other kinds are protobuf, or
 * encrypted: they are counted and named.
 */
#include "reflector/import/import_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "common/value/protobuf.h"
#include "reflector/import/bolt.h"

#define ETCD_BUCKET  "key"
#define REVISION     17 /* bytes of a row's key: a revision, '_', a number within it */
#define IS_TOMBSTONE 't'
#define KIND_NAME    64

/* The fields of mvccpb.KeyValue. */
struct etcd_value {
	struct bytes key, value;
	uint64_t revision;
};

struct etcd_walk {
	struct import *import;
	struct source_file file; /* its path is that of the key: it has the plural */
	char path[1024];
	uint64_t left_out; /* versions, */
	char kinds[400];   /* of these: " Pod, Secret," */
};

/* mvccpb.KeyValue */
#define ROW_KEY      1
#define ROW_REVISION 3
#define ROW_VALUE    5
#define TYPE_KIND    2 /* of metav1.TypeMeta */

/* ---- what can't be read -------------------------------------------------- */

static void etcd_count(struct etcd_walk *walk, struct bytes value)
{
	char kind[KIND_NAME], item[KIND_NAME + 2];
	struct bytes type, raw, text;
	size_t n = strlen(walk->kinds);

	walk->left_out++;
	(void)snprintf(kind, sizeof(kind), "%s",
		bytes_starts(value, BYTES_LIT("k8s:enc:")) ? "(encrypted)" : "(no object)");
	/* An object is a runtime.Unknown after "k8s" and a NUL. */
	if (protobuf_object(value, &type, &raw) && protobuf_field(type, TYPE_KIND, &text))
		(void)snprintf(kind, sizeof(kind), "%.*s", BYTES_ARG(text));
	(void)snprintf(item, sizeof(item), " %s,", kind);
	if (!strstr(walk->kinds, item) && n + strlen(item) < sizeof(walk->kinds))
		(void)snprintf(walk->kinds + n, sizeof(walk->kinds) - n, "%s", item);
}

/* ---- objects ------------------------------------------------------------- */

/* Deletes the object of the key PATH, .../GROUP/PLURAL/[NAMESPACE/]NAME, if its kind is known. */
static int etcd_delete(struct import *import, const char *path)
{
	char middle[2 * IMPORT_NAME];
	int r = 0;

	for (size_t i = 0; i < import->n_feeds && r == 0; i++) {
		const struct import_kind *kind = &import->feeds[i].kind;

		size_t n = (size_t)snprintf(
			middle, sizeof(middle), "/%s/%s/", kind->group, kind->plural);
		const char *found = strstr(path, middle);
		if (found)
			r = import_delete(
				import, &(struct import_deletion){.group = bytes_str(kind->group),
						.resource = bytes_str(kind->plural),
						.name = bytes_str(found + n)});
	}
	return r;
}

/* Takes the plural of the object that was stored last from its key. */
static void etcd_take_plural(struct import *import, const char *path)
{
	struct import_kind *kind = &import->feeds[import->last_feed].kind;
	char middle[IMPORT_NAME + 2];

	(void)snprintf(middle, sizeof(middle), "/%s/", kind->group);
	const char *found = strstr(path, middle);
	if (found && *kind->group) {
		found += strlen(middle);
		import_take_plural(import, BYTES(found, strcspn(found, "/")));
	}
}

static int etcd_object(struct etcd_walk *walk, const struct etcd_value *value)
{
	static const char *const keys[] = {"metadata", "resourceVersion", NULL};
	struct import *import = walk->import;
	uint64_t stored = import->stored;
	struct value root;
	char rv[24];

	buf_reset(&import->body);
	buf_reset(&import->annotated);
	int r = json_parse(import->parser, value->value, NULL, &import->body);
	if (r == 0)
		r = value_read(buf_bytes(&import->body), &root);
	(void)snprintf(rv, sizeof(rv), "%" PRIu64, value->revision); /* etcd keeps no RV */
	if (r == 0)
		r = import_set(&root, keys, bytes_str(rv), &import->annotated);
	if (r == 0) {
		r = import_object(import, buf_bytes(&import->annotated), BYTES_NONE, BYTES_NONE);
		if (import->stored > stored)
			etcd_take_plural(import, walk->path);
		return r;
	}
	if (!import_is_bad_input(r))
		return r;
	import->objects++;
	import_skip(import, walk->file.name, 0, walk->path, r);
	return 0;
}

static int etcd_row(void *arg, struct bytes key, struct bytes row)
{
	struct etcd_walk *walk = arg;
	struct etcd_value value = {.revision = protobuf_number(row, ROW_REVISION)};
	bool gone =
		key.size == REVISION + 1 && ((const uint8_t *)key.data)[REVISION] == IS_TOMBSTONE;

	if ((key.size != REVISION && !gone) || !protobuf_field(row, ROW_KEY, &value.key) ||
		!value.key.size)
		return err_say(ERR_CORRUPT, "it has a row that is no revision of etcd");
	if (!protobuf_field(row, ROW_VALUE, &value.value))
		value.value = BYTES_NONE; /* a deleted key has none */
	(void)snprintf(walk->path, sizeof(walk->path), "%.*s", BYTES_ARG(value.key));
	if (gone)
		return etcd_delete(walk->import, walk->path);
	if (value.value.size && *(const char *)value.value.data == '{')
		return etcd_object(walk, &value);
	if (value.key.size && *(const char *)value.key.data == '/')
		etcd_count(walk, value.value); /* else it is a key of etcd's own */
	return 0;
}

int import_etcd(struct import *import, const struct source_file *file)
{
	static struct etcd_walk walk; /* the process reads one file at a time */
	uint64_t audit_ns = import->audit_ns;

	if (!file->fd)
		return err_say(ERR_UNSUPPORTED,
			"it is a snapshot of etcd in an archive: unpack it, and import the file");
	walk = (struct etcd_walk){.import = import, .file = *file};
	walk.file.path = walk.path;
	import->file = &walk.file;
	import->change = IMPORT_WRITE;
	if (import->time_ns > audit_ns)
		import->audit_ns = import->time_ns;
	int r = bolt_walk(*file->fd, ETCD_BUCKET, etcd_row, &walk);
	import->change = IMPORT_LISTED;
	import->file = file;
	if (walk.left_out)
		import_skip(import, file->name, 0, "",
			err_say(ERR_UNSUPPORTED,
				"built-in kinds of etcd are protobuf, which can't be read yet: "
				"%" PRIu64 " versions are left out (%.*s)",
				walk.left_out, (int)strlen(walk.kinds) - 2, walk.kinds + 1));
	return r;
}
