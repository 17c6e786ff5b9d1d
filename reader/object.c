/* SPDX-License-Identifier: Apache-2.0 */
/* Objects: field paths, parts, JSON, copies. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/value/json.h"
#include "common/value/path.h"
#include "reader/handle.h"

#define PATHS_KEPT 8

void object_from_record(const struct record *record, struct kinf_object *ret_object)
{
	err_ignore(failpoint_pass(FAILPOINT_READ_OBJECT), "a test stops here");
	*ret_object = (struct kinf_object){
		.key = record->key.data,
		.uid = record->uid.data,
		.resource_version = record->rv.data,
		.body = record->body.data,
		.key_size = (uint32_t)record->key.size,
		.uid_size = (uint32_t)record->uid.size,
		.resource_version_size = (uint32_t)record->rv.size,
		.body_size = (uint32_t)record->body.size,
		.event = record->seq,
		.feed = record->feed,
	};
}

/* The last parsed paths of a thread: programs ask for the same few again and again. */
static _Thread_local struct lately {
	struct path *path[PATHS_KEPT];
	char *text[PATHS_KEPT];
	unsigned next;
	char scratch[VALUE_SCRATCH];
} lately;

static pthread_key_t at_thread_end;
static int have_thread_end = -1;

static void paths_forget(void *arg)
{
	struct lately *l = arg;

	for (unsigned i = 0; i < PATHS_KEPT; i++) {
		path_free(&l->path[i]);
		free(l->text[i]);
		l->text[i] = NULL;
	}
}

static void paths_make_key(void)
{
	have_thread_end = pthread_key_create(&at_thread_end, paths_forget);
}

/* Runs before the library is unloaded, because the key calls its code. */
__attribute__((destructor)) static void paths_delete_key(void)
{
	if (have_thread_end == 0)
		(void)pthread_key_delete(at_thread_end);
}

static int path_is_missing(void)
{
	return err_say(-EINVAL, "the field path is NULL");
}

static int paths_get(const char *text, const struct path **ret_path)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!text)
		return path_is_missing();
	for (unsigned i = 0; i < PATHS_KEPT; i++)
		if (lately.text[i] && strcmp(lately.text[i], text) == 0) {
			*ret_path = lately.path[i];
			return 0;
		}
	struct path *path = NULL;
	int r = path_parse(text, &path);
	if (r < 0)
		return r;
	char *copy = strdup(text);
	if (!copy) {
		path_free(&path);
		return err_set(-ENOMEM, "path '%s'", text);
	}
	/* Without a key, or memory for one, a thread leaks its paths: a bounded number. */
	if (lately.next == 0) {
		(void)pthread_once(&once, paths_make_key);
		if (have_thread_end == 0)
			(void)pthread_setspecific(at_thread_end, &lately);
	}
	unsigned slot = lately.next++ % PATHS_KEPT;
	path_free(&lately.path[slot]);
	free(lately.text[slot]);
	lately.path[slot] = path;
	lately.text[slot] = copy;
	*ret_path = path;
	return 0;
}

/* Finds the first value at a path. An object without a body (kinf_informer.h: on_delete) has
 * none. */
static int object_first(
	const struct kinf_object *object, const struct path *path, struct value *ret_value)
{
	return object->body_size
		       ? path_first(path, BYTES(object->body, object->body_size), ret_value)
		       : NOT_FOUND;
}

int kinf_object_path(
	const struct kinf_object *object, const char *path, const char **ret_text, size_t *ret_size)
{
	const struct path *parsed;
	struct value value;
	struct bytes text;
	int r = paths_get(path, &parsed);

	if (r == 0)
		r = object_first(object, parsed, &value);
	if (r == FOUND)
		r = value_scalar_text(&value, lately.scratch, &text);
	if (r == FOUND) {
		*ret_text = text.data;
		*ret_size = text.size;
	}
	return kinf_result(NULL, r);
}

/* Makes PART the same as OBJECT, with VALUE as its body. */
static int part_make(
	const struct kinf_object *object, const struct value *value, struct kinf_object *ret_part)
{
	struct bytes document;
	int r = value_document(value, &document);

	if (r < 0)
		return r;
	*ret_part = *object;
	ret_part->body = document.data;
	ret_part->body_size = (uint32_t)document.size;
	return 0;
}

int kinf_object_part(
	const struct kinf_object *object, const char *path, struct kinf_object *ret_part)
{
	const struct path *parsed;
	struct value value;
	int r = paths_get(path, &parsed);

	if (r == 0)
		r = object_first(object, parsed, &value);
	if (r == FOUND)
		r = part_make(object, &value, ret_part);
	return kinf_result(NULL, r);
}

struct part_walk {
	const struct kinf_object *object;
	kinf_part_fn *fn;
	void *arg;
};

static int part_give(void *arg, const struct value *value)
{
	const struct part_walk *each = arg;
	struct kinf_object part;
	int r = part_make(each->object, value, &part);

	return r < 0 ? r : each->fn(each->arg, &part);
}

int kinf_object_each(
	const struct kinf_object *object, const char *path, kinf_part_fn *fn, void *arg)
{
	CLEANUP(path_free) struct path *parsed = NULL;
	struct part_walk each = {object, fn, arg};
	/* Its own: FN may ask for many others. */
	int r = path ? path_parse(path, &parsed) : path_is_missing();

	if (r == 0 && object->body_size)
		r = path_eval(parsed, BYTES(object->body, object->body_size), part_give, &each);
	return kinf_result(NULL, r);
}

int kinf_object_json(
	const struct kinf_object *object, int indent, char **ret_json, size_t *ret_size)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	int r = indent < 0 ? err_say(-EINVAL, "an indent of %d spaces", indent) : 0;

	if (r == 0 && object->body_size)
		r = json_write(BYTES(object->body, object->body_size), indent, &out);
	else
		buf_str(&out, "{}");
	buf_byte(&out, '\0');
	if (r == 0)
		r = buf_error(&out);
	if (r < 0)
		return kinf_result(NULL, r);
	*ret_size = out.size - 1;
	*ret_json = (char *)TAKE(out.data);
	return 0;
}

/* Copies SIZE bytes to *END, moves it on, and returns where they are. */
static const void *copy_put(uint8_t **end, const void *data, size_t size)
{
	void *place = *end;

	if (size)
		memcpy(place, data, size);
	*end += size;
	return place;
}

int kinf_object_copy(const struct kinf_object *object, struct kinf_object **ret_copy)
{
	struct kinf_object *copy = malloc(sizeof(*copy) + object->body_size + object->key_size +
					  object->uid_size + object->resource_version_size);

	if (!copy)
		return kinf_result(
			NULL, err_set(-ENOMEM, "copy of an object of %u bytes", object->body_size));
	uint8_t *end = (uint8_t *)(copy + 1);
	*copy = *object;
	if (object->body_size)
		copy->body = copy_put(&end, object->body, object->body_size);
	copy->key = copy_put(&end, object->key, object->key_size);
	copy->uid = copy_put(&end, object->uid, object->uid_size);
	copy->resource_version =
		copy_put(&end, object->resource_version, object->resource_version_size);
	*ret_copy = copy;
	return 0;
}
