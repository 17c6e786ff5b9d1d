/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/object.h"

#include <inttypes.h>
#include <sys/random.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "tests/simulator/jsontext.h"

bool object_key(const struct kind *kind, struct bytes text, struct buf *out)
{
	struct bytes name = jsontext_get(text, "metadata.name");
	struct bytes namespace = jsontext_get(text, "metadata.namespace");

	if (name.size <= 2 || (kind->namespaced && namespace.size <= 2))
		return false;
	if (kind->namespaced) {
		jsontext_unescape(namespace, out);
		buf_byte(out, '/');
	}
	jsontext_unescape(name, out);
	return true;
}

static void object_put_span(struct buf *out, struct bytes text, size_t begin, size_t end)
{
	buf_put(out, (const char *)text.data + begin, end - begin);
}

/* Appends the members of the object TEXT, except for those in WITHOUT. */
static void object_put_members(
	struct buf *out, struct bytes text, const char *without[2], bool *first)
{
	struct jsontext_iter iter;
	struct jsontext_member member;

	jsontext_iter_init(&iter, text);
	while (jsontext_iter_next(&iter, &member)) {
		if (without && (bytes_equal(member.key, bytes_str(without[0])) ||
				       bytes_equal(member.key, bytes_str(without[1]))))
			continue;
		if (!*first)
			buf_byte(out, ',');
		*first = false;
		object_put_span(out, text, member.begin, member.end);
	}
}

static void object_put_kind(const struct kind *kind, struct buf *out)
{
	if (kind->custom) {
		buf_str(out, "\"apiVersion\":\"");
		kind_put_group_version(kind, out);
		buf_printf(out, "\",\"kind\":\"%s\"", kind->name);
		return;
	}
	buf_printf(out, "\"kind\":\"%s\",\"apiVersion\":\"", kind->name);
	kind_put_group_version(kind, out);
	buf_byte(out, '"');
}

/* Appends the stored form without the stamp: removes or adds kind and apiVersion. */
static void object_put_item(const struct kind *kind, struct bytes text, struct buf *out)
{
	static const char *type[2] = {"kind", "apiVersion"};
	bool typed = jsontext_get(text, "kind").data && jsontext_get(text, "apiVersion").data;
	bool first = true;

	if (kind->custom && typed) {
		buf_bytes_put(out, text);
		return;
	}
	buf_byte(out, '{');
	if (kind->custom) {
		object_put_kind(kind, out);
		first = false;
	}
	object_put_members(out, text, type, &first);
	buf_byte(out, '}');
}

static void object_put_field(struct buf *out, const char *key, const char *value, bool *first)
{
	buf_printf(out, "%s\"%s\":\"%s\"", *first ? "" : ",", key, value);
	*first = false;
}

/* The members of a stamp missing in METADATA; NULL: it has the member. */
struct object_missing {
	const char *uid, *created, *rv;
};

/* Appends METADATA with the missing members in kube-apiserver's order: for built-in kinds uid,
 * resourceVersion and creationTimestamp after the name or namespace; for custom kinds the timestamp
 * first and the other two last. */
static void object_put_stamped(const struct kind *kind, struct bytes metadata,
	struct object_missing missing, struct buf *out)
{
	struct jsontext_iter iter;
	struct jsontext_member member;
	bool first = true, sorted = kind->custom;
	const char *behind = kind->namespaced ? "namespace" : "name";

	buf_byte(out, '{');
	if (sorted && missing.created)
		object_put_field(out, "creationTimestamp", missing.created, &first);
	jsontext_iter_init(&iter, metadata);
	while (jsontext_iter_next(&iter, &member)) {
		buf_str(out, first ? "" : ",");
		first = false;
		object_put_span(out, metadata, member.begin, member.end);
		if (sorted || !bytes_equal(member.key, bytes_str(behind)))
			continue;
		if (missing.uid)
			object_put_field(out, "uid", missing.uid, &first);
		if (missing.rv)
			object_put_field(out, "resourceVersion", missing.rv, &first);
		if (missing.created)
			object_put_field(out, "creationTimestamp", missing.created, &first);
	}
	if (sorted && missing.rv)
		object_put_field(out, "resourceVersion", missing.rv, &first);
	if (sorted && missing.uid)
		object_put_field(out, "uid", missing.uid, &first);
	buf_byte(out, '}');
}

void object_restamp(struct bytes stored, uint64_t rv, struct buf *out)
{
	struct bytes old = jsontext_get(stored, "metadata.resourceVersion");
	size_t begin = (size_t)((const char *)old.data - (const char *)stored.data);

	REQUIRE(old.data != NULL);
	object_put_span(out, stored, 0, begin);
	buf_printf(out, "\"%" PRIu64 "\"", rv);
	object_put_span(out, stored, begin + old.size, stored.size);
}

void object_store(const struct kind *kind, struct bytes text, const struct object_stamp *stamp,
	struct buf *out)
{
	CLEANUP(buf_release) struct buf item = BUF_INIT;
	CLEANUP(buf_release) struct buf stamped = BUF_INIT;

	object_put_item(kind, text, &item);

	struct bytes bare = buf_bytes(&item), metadata = jsontext_get(bare, "metadata");
	size_t begin = (size_t)((const char *)metadata.data - (const char *)bare.data);
	struct object_missing missing = {
		.uid = jsontext_get(metadata, "uid").data ? NULL : stamp->uid,
		.created = jsontext_get(metadata, "creationTimestamp").data ? NULL : stamp->created,
		.rv = jsontext_get(metadata, "resourceVersion").data ? NULL : "",
	};

	object_put_span(&stamped, bare, 0, begin);
	object_put_stamped(kind, metadata, missing, &stamped);
	object_put_span(&stamped, bare, begin + metadata.size, bare.size);
	object_restamp(buf_bytes(&stamped), stamp->rv, out);
}

void object_show(
	const struct kind *kind, enum object_form form, struct bytes stored, struct buf *out)
{
	if (form == OBJECT_METADATA) {
		buf_str(out, "{\"kind\":\"PartialObjectMetadata\","
			     "\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":");
		buf_bytes_put(out, jsontext_get(stored, "metadata"));
		buf_byte(out, '}');
	} else if (form == OBJECT_FULL && !kind->custom) {
		buf_byte(out, '{');
		object_put_kind(kind, out);
		buf_byte(out, ',');
		object_put_span(out, stored, 1, stored.size);
	} else {
		buf_bytes_put(out, stored);
	}
}

void object_new_uid(char ret_uid[OBJECT_UID_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t random[16];
	size_t n = 0;

	REQUIRE(getrandom(random, sizeof(random), 0) == (ssize_t)sizeof(random));
	random[6] = (uint8_t)((random[6] & 0x0f) | 0x40);
	random[8] = (uint8_t)((random[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(random); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			ret_uid[n++] = '-';
		ret_uid[n++] = digits[random[i] >> 4];
		ret_uid[n++] = digits[random[i] & 15];
	}
	ret_uid[n] = '\0';
}
