/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api/api_protobuf.h"

#include <string.h>

#include "common/err.h"
#include "common/text/timestamp.h"
#include "common/value/json.h"
#include "common/value/value.h"

/* ---- the wire format ---------------------------------------------------- */

#define WIRE_VARINT 0u
#define WIRE_BYTES  2u
#define VARINT_MAX  10 /* bytes */

static size_t wire_varint(uint64_t number, uint8_t out[VARINT_MAX])
{
	size_t n = 0;

	for (; number >= 0x80; number >>= 7)
		out[n++] = (uint8_t)(number | 0x80);
	out[n++] = (uint8_t)number;
	return n;
}

static void wire_put_number(struct buf *out, uint64_t number)
{
	uint8_t bytes[VARINT_MAX];

	buf_put(out, bytes, wire_varint(number, bytes));
}

static void wire_put_int(struct buf *out, unsigned field, uint64_t number)
{
	wire_put_number(out, field << 3 | WIRE_VARINT);
	wire_put_number(out, number);
}

static void wire_put_bytes(struct buf *out, unsigned field, struct bytes bytes)
{
	wire_put_number(out, field << 3 | WIRE_BYTES);
	wire_put_number(out, bytes.size);
	buf_bytes_put(out, bytes);
}

static void wire_put_text(struct buf *out, unsigned field, const char *text)
{
	wire_put_bytes(out, field, bytes_str(text ? text : ""));
}

/* Begins a message in a field. Returns where it starts, for wire_close(). */
static size_t wire_open(struct buf *out, unsigned field)
{
	wire_put_number(out, field << 3 | WIRE_BYTES);
	return out->size;
}

/* Inserts the size of a message before its bytes. MORE: bytes still to come. */
static void wire_close_early(struct buf *out, size_t start, uint64_t more)
{
	uint8_t bytes[VARINT_MAX];

	if (buf_error(out) < 0)
		return;
	size_t size = out->size - start, n = wire_varint(size + more, bytes);
	if (!buf_grow(out, n))
		return;
	uint8_t *p = (uint8_t *)out->data + start;
	memmove(p + n, p, size);
	memcpy(p, bytes, n);
}

static void wire_close(struct buf *out, size_t start)
{
	wire_close_early(out, start, 0);
}

/* ---- messages of k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto --- */

enum field_kind {
	FIELD_TEXT, /* also if it is absent */
	FIELD_INT,  /* also if it is absent */
	FIELD_TIME, /* also if it is absent */
	FIELD_INT_OR_NONE,
	FIELD_BOOL_OR_NONE,
	FIELD_TIME_OR_NONE,
	FIELD_JSON, /* a message with the value's JSON as field 1 */
	FIELD_TEXTS,
	FIELD_TEXT_MAP,
	FIELD_MESSAGES
};

struct message_field {
	const char *name;
	unsigned number;
	enum field_kind kind;
	const struct message_field *message; /* of FIELD_MESSAGES; up to one without a name */
};

static const struct message_field message_owner[] = {{"kind", 1, FIELD_TEXT, NULL},
	{"name", 3, FIELD_TEXT, NULL}, {"uid", 4, FIELD_TEXT, NULL},
	{"apiVersion", 5, FIELD_TEXT, NULL}, {"controller", 6, FIELD_BOOL_OR_NONE, NULL},
	{"blockOwnerDeletion", 7, FIELD_BOOL_OR_NONE, NULL}, {NULL, 0, FIELD_TEXT, NULL}};

static const struct message_field message_managed[] = {{"manager", 1, FIELD_TEXT, NULL},
	{"operation", 2, FIELD_TEXT, NULL}, {"apiVersion", 3, FIELD_TEXT, NULL},
	{"time", 4, FIELD_TIME_OR_NONE, NULL}, {"fieldsType", 6, FIELD_TEXT, NULL},
	{"fieldsV1", 7, FIELD_JSON, NULL}, {"subresource", 8, FIELD_TEXT, NULL},
	{NULL, 0, FIELD_TEXT, NULL}};

static const struct message_field message_metadata[] = {{"name", 1, FIELD_TEXT, NULL},
	{"generateName", 2, FIELD_TEXT, NULL}, {"namespace", 3, FIELD_TEXT, NULL},
	{"selfLink", 4, FIELD_TEXT, NULL}, {"uid", 5, FIELD_TEXT, NULL},
	{"resourceVersion", 6, FIELD_TEXT, NULL}, {"generation", 7, FIELD_INT, NULL},
	{"creationTimestamp", 8, FIELD_TIME, NULL},
	{"deletionTimestamp", 9, FIELD_TIME_OR_NONE, NULL},
	{"deletionGracePeriodSeconds", 10, FIELD_INT_OR_NONE, NULL},
	{"labels", 11, FIELD_TEXT_MAP, NULL}, {"annotations", 12, FIELD_TEXT_MAP, NULL},
	{"ownerReferences", 13, FIELD_MESSAGES, message_owner},
	{"finalizers", 14, FIELD_TEXTS, NULL},
	{"managedFields", 17, FIELD_MESSAGES, message_managed}, {NULL, 0, FIELD_TEXT, NULL}};

static int message_put(const struct value *map, const struct message_field *field, struct bytes rv,
	struct buf *out);

/* Puts the items of an array or a map. Other types are left out: no API server gives them. */
static int message_put_items(
	const struct message_field *field, const struct value *items, struct buf *out)
{
	struct value_iter iter;
	struct value item;
	struct bytes key;
	int r;

	value_iter_init(&iter, items);
	while ((r = value_iter_next(&iter, &key, &item)) == FOUND) {
		if (field->kind == FIELD_TEXTS && item.type == VALUE_STRING) {
			wire_put_bytes(out, field->number, item.text);
		} else if (field->kind == FIELD_TEXT_MAP && item.type == VALUE_STRING) {
			size_t start = wire_open(out, field->number);

			wire_put_bytes(out, 1, key);
			wire_put_bytes(out, 2, item.text);
			wire_close(out, start);
		} else if (field->kind == FIELD_MESSAGES && item.type == VALUE_MAP) {
			size_t start = wire_open(out, field->number);

			r = message_put(&item, field->message, BYTES_NONE, out);
			if (r < 0)
				return r;
			wire_close(out, start);
		}
	}
	return r < 0 ? r : 0;
}

/* Puts a Timestamp, of whole seconds; TIME is empty for none. */
static void message_put_time(unsigned field, struct bytes time, struct buf *out)
{
	size_t start = wire_open(out, field);
	int64_t ns;

	if (time.size && timestamp_parse(time, &ns)) {
		wire_put_int(out, 1, (uint64_t)(ns / 1000000000));
		wire_put_int(out, 2, 0);
	}
	wire_close(out, start);
}

static int message_put_json(unsigned field, const struct value *item, struct buf *out)
{
	struct bytes document;
	int r = value_document(item, &document);

	if (r < 0)
		return r;
	size_t start = wire_open(out, field), inner = wire_open(out, 1);
	r = json_write(document, 0, out);
	wire_close(out, inner);
	wire_close(out, start);
	return r;
}

static int message_put_field(
	const struct message_field *field, const struct value *item, struct buf *out)
{
	struct bytes text = item->type == VALUE_STRING ? item->text : BYTES_NONE;
	bool is_int = item->type == VALUE_UINT || item->type == VALUE_INT;

	switch (field->kind) {
	case FIELD_TEXT:
		wire_put_bytes(out, field->number, text);
		return 0;
	case FIELD_INT:
		wire_put_int(out, field->number, is_int ? item->u.u : 0);
		return 0;
	case FIELD_INT_OR_NONE:
		if (is_int)
			wire_put_int(out, field->number, item->u.u);
		return 0;
	case FIELD_BOOL_OR_NONE:
		if (item->type == VALUE_BOOL)
			wire_put_int(out, field->number, item->u.b);
		return 0;
	case FIELD_TIME:
		message_put_time(field->number, text, out);
		return 0;
	case FIELD_TIME_OR_NONE:
		if (text.size)
			message_put_time(field->number, text, out);
		return 0;
	case FIELD_JSON:
		return item->type == VALUE_NIL ? 0 : message_put_json(field->number, item, out);
	case FIELD_TEXTS:
	case FIELD_TEXT_MAP:
	case FIELD_MESSAGES:
		return message_put_items(field, item, out);
	}
	return 0;
}

/* Puts the fields of a message from the members of MAP. RV: in place of its resourceVersion. */
static int message_put(const struct value *map, const struct message_field *field, struct bytes rv,
	struct buf *out)
{
	for (; field->name; field++) {
		struct value item;
		int r = value_find(map, bytes_str(field->name), &item);

		if (r < 0)
			return r;
		if (r != FOUND)
			item = (struct value){.type = VALUE_NIL};
		if (rv.size && strcmp(field->name, "resourceVersion") == 0)
			item = (struct value){.type = VALUE_STRING, .text = rv};
		r = message_put_field(field, &item, out);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Puts the fields of a PartialObjectMetadata: the metadata of BODY. */
static int message_put_partial(struct bytes body, struct bytes rv, struct buf *out)
{
	struct value root, metadata;
	int r = value_read(body, &root);

	if (r == 0)
		r = value_find(&root, BYTES_LIT("metadata"), &metadata);
	if (r < 0)
		return r;
	if (r != FOUND)
		metadata = (struct value){.type = VALUE_NIL};
	size_t start = wire_open(out, 1);
	r = message_put(&metadata, message_metadata, rv, out);
	wire_close(out, start);
	return r;
}

static void message_put_list_metadata(
	const char *rv, struct bytes token, uint64_t remaining, struct buf *out)
{
	size_t start = wire_open(out, 1);

	wire_put_text(out, 1, "");
	wire_put_text(out, 2, rv);
	wire_put_bytes(out, 3, token);
	if (remaining)
		wire_put_int(out, 4, remaining);
	wire_close(out, start);
}

static void message_put_details(const struct api_status *status, struct buf *out)
{
	size_t start = wire_open(out, 5), at = 0;

	for (unsigned field = 1; field <= 3; field++) { /* name, group, kind */
		struct bytes text = at < status->object.size
					    ? bytes_str((const char *)status->object.data + at)
					    : BYTES_NONE;

		wire_put_bytes(out, field, text);
		at += text.size + 1;
	}
	for (size_t i = 0; i < status->n_causes; i++) {
		size_t cause = wire_open(out, 4);

		wire_put_text(out, 1, status->causes[i].reason);
		wire_put_text(out, 2, status->causes[i].message);
		wire_put_text(out, 3, status->causes[i].field);
		wire_close(out, cause);
	}
	wire_put_int(out, 5, (uint64_t)status->retry_after);
	wire_put_text(out, 6, "");
	wire_close(out, start);
}

/* ---- objects ------------------------------------------------------------ */

#define META_V1 "meta.k8s.io/v1"

static void unknown_begin(const char *api_version, const char *kind, struct buf *out)
{
	buf_put(out, "k8s", 4);
	size_t start = wire_open(out, 1);
	wire_put_text(out, 1, api_version);
	wire_put_text(out, 2, kind);
	wire_close(out, start);
}

/* Ends an object, with empty encoding and content type. */
static void unknown_end(struct buf *out)
{
	wire_put_text(out, 3, "");
	wire_put_text(out, 4, "");
}

static int unknown_put_partial(struct bytes body, struct bytes rv, struct buf *out)
{
	unknown_begin(META_V1, "PartialObjectMetadata", out);
	size_t start = wire_open(out, 2);
	int r = message_put_partial(body, rv, out);
	wire_close(out, start);
	unknown_end(out);
	return r;
}

/* Returns R or the error of OUT, and then shortens OUT to SIZE. */
static int protobuf_end(struct buf *out, size_t size, int r)
{
	if (r >= 0)
		r = buf_error(out);
	if (r < 0 && out->size > size)
		buf_truncate(out, size);
	return r < 0 ? r : 0;
}

int api_protobuf_object(struct bytes body, struct bytes rv, struct buf *out)
{
	size_t size = out->size;

	return protobuf_end(out, size, unknown_put_partial(body, rv, out));
}

/* ---- events ------------------------------------------------------------- */

struct event_place {
	size_t frame, object, raw;
};

static struct event_place event_begin(const char *type, struct buf *out)
{
	struct event_place place = {.frame = out->size};

	buf_put(out, (const uint8_t[4]){0}, 4);
	wire_put_text(out, 1, type);
	place.object = wire_open(out, 2);
	place.raw = wire_open(out, 1);
	return place;
}

static int event_end(const struct event_place *place, int r, struct buf *out)
{
	wire_close(out, place->raw);
	wire_close(out, place->object);
	r = protobuf_end(out, place->frame, r);
	if (r < 0)
		return r;
	uint8_t *p = (uint8_t *)out->data + place->frame;
	size_t size = out->size - place->frame - 4;
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(size >> (24 - 8 * i));
	return 0;
}

int api_protobuf_event(const char *type, struct bytes body, struct bytes rv, struct buf *out)
{
	const struct event_place place = event_begin(type, out);

	return event_end(&place, unknown_put_partial(body, rv, out), out);
}

int api_protobuf_error(const struct api_status *status, struct buf *out)
{
	const struct event_place place = event_begin("ERROR", out);

	unknown_begin("v1", "Status", out);
	size_t start = wire_open(out, 2);
	message_put_list_metadata("", buf_bytes(&status->token), 0, out);
	wire_put_text(out, 2, "Failure");
	wire_put_bytes(out, 3, buf_bytes(&status->message));
	wire_put_text(out, 4, status->reason);
	if (status->has_details || status->retry_after)
		message_put_details(status, out);
	wire_put_int(out, 6, (uint64_t)status->code);
	wire_close(out, start);
	unknown_end(out);
	return event_end(&place, 0, out);
}

/* ---- lists -------------------------------------------------------------- */

int api_protobuf_begin(const struct api_page *page, struct buf *out)
{
	size_t size = out->size;

	unknown_begin(META_V1, "PartialObjectMetadataList", out);
	size_t start = wire_open(out, 2);
	message_put_list_metadata(page->rv, bytes_str(page->token), page->remaining, out);
	wire_close_early(out, start, page->size);
	return protobuf_end(out, size, 0);
}

int api_protobuf_item(struct bytes body, struct buf *out)
{
	size_t size = out->size, start = wire_open(out, 2);
	int r = message_put_partial(body, BYTES_NONE, out);

	wire_close(out, start);
	return protobuf_end(out, size, r);
}

int api_protobuf_end(struct buf *out)
{
	unknown_end(out);
	return buf_error(out);
}
