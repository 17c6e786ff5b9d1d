/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/serve/api_version.h"

#define VERSION_KEPT ((size_t)16 << 10)
/* runtime.Unknown, after the magic; metav1.TypeMeta; ObjectMeta is field 1 of every object. */
#define VERSION_MAGIC     BYTES("k8s\0", 4)
#define UNKNOWN_TYPE      1
#define UNKNOWN_RAW       2
#define TYPE_KIND         2
#define OBJECT_META       1
#define OBJECT_META_RV    6
#define LIST_META_RV      2

/* ---- JSON ------------------------------------------------------------------------------------ */

static bool version_text_is(const struct api_version *v, const char *text)
{
	return v->size == strlen(text) && memcmp(v->text, text, v->size) == 0;
}

/* A string has ended. */
static void version_end_text(struct api_version *v)
{
	if (v->is_value && v->wanted && v->depth == 2 && v->size < sizeof(v->rv)) {
		memcpy(v->rv, v->text, v->size);
		v->rv[v->size] = '\0';
		v->found = true;
	} else if (!v->is_value && v->depth == 1) {
		v->in_metadata = version_text_is(v, "metadata");
	} else if (!v->is_value && v->depth == 2) {
		v->wanted = v->in_metadata && version_text_is(v, "resourceVersion");
	}
}

static void version_text_byte(struct api_version *v, char c)
{
	if (v->escaped) {
		v->escaped = false;
	} else if (c == '\\') {
		v->escaped = true;
	} else if (c == '"') {
		v->in_text = false;
		version_end_text(v);
		return;
	}
	if (v->size < sizeof(v->text))
		v->text[v->size] = c;
	v->size++;
}

static void version_byte(struct api_version *v, char c)
{
	switch (c) {
	case '"':
		v->in_text = true;
		v->size = 0;
		break;
	case '{':
	case '[':
		v->depth++;
		v->is_value = c == '[';
		break;
	case '}':
	case ']':
		v->ended = v->depth <= 1;
		v->depth -= v->depth > 0;
		v->is_value = true;
		break;
	case ',':
		/* Whether a list or a map goes on counts only where the outer two are. */
		v->is_value = v->depth > 2;
		break;
	case ':':
		v->is_value = true;
		break;
	default:
		break;
	}
}

/* ---- protobuf -------------------------------------------------------------------------------- */

static bool version_varint(struct bytes *rest, uint64_t *ret_number)
{
	const uint8_t *p = rest->data;

	*ret_number = 0;
	for (size_t i = 0; i < rest->size && i < 10; i++) {
		*ret_number |= (uint64_t)(p[i] & 0x7f) << (7 * i);
		if (!(p[i] & 0x80)) {
			*rest = BYTES(p + i + 1, rest->size - i - 1);
			return true;
		}
	}
	return false;
}

/* Finds field WANTED, which has bytes; those of a cut message end with it. */
static bool version_field(struct bytes message, uint64_t wanted, struct bytes *ret_value)
{
	uint64_t tag, number;

	while (version_varint(&message, &tag)) {
		size_t size = 0;

		if ((tag & 7) == 0) {
			if (!version_varint(&message, &number))
				return false;
			continue;
		}
		if ((tag & 7) == 2 && version_varint(&message, &number))
			size = number < message.size ? (size_t)number : message.size;
		else if ((tag & 7) == 1)
			size = 8;
		else if ((tag & 7) == 5)
			size = 4;
		else
			return false;
		if (size > message.size)
			return false;
		if (tag >> 3 == wanted && (tag & 7) == 2) {
			*ret_value = BYTES(message.data, size);
			return true;
		}
		message = BYTES((const uint8_t *)message.data + size, message.size - size);
	}
	return false;
}

static void version_read_protobuf(struct api_version *v)
{
	struct bytes message = buf_bytes(&v->kept), type, kind = BYTES_NONE, raw, meta, rv;

	if (!bytes_starts(message, VERSION_MAGIC))
		return;
	message = BYTES((const uint8_t *)message.data + 4, message.size - 4);
	if (!version_field(message, UNKNOWN_TYPE, &type) ||
		!version_field(message, UNKNOWN_RAW, &raw) ||
		!version_field(raw, OBJECT_META, &meta))
		return;
	(void)version_field(type, TYPE_KIND, &kind);
	bool list =
		bytes_equal(kind, BYTES_LIT("Status")) ||
		(kind.size > 4 && memcmp((const char *)kind.data + kind.size - 4, "List", 4) == 0);
	v->found = version_field(meta, list ? LIST_META_RV : OBJECT_META_RV, &rv) &&
		   rv.size < sizeof(v->rv);
	if (v->found) {
		memcpy(v->rv, rv.data, rv.size);
		v->rv[rv.size] = '\0';
	}
}

/* ---- both ------------------------------------------------------------------------------------ */

void api_version_put(struct api_version *v, struct bytes piece)
{
	const char *p = piece.data;

	if (v->protobuf) {
		size_t room = VERSION_KEPT - v->kept.size;

		buf_put(&v->kept, p, piece.size < room ? piece.size : room);
		if (!v->found && buf_error(&v->kept) == 0)
			version_read_protobuf(v);
		return;
	}
	for (size_t i = 0; i < piece.size && !v->found && !v->ended; i++) {
		if (v->in_text)
			version_text_byte(v, p[i]);
		else
			version_byte(v, p[i]);
	}
}

const char *api_version_get(struct api_version *v)
{
	return v->found ? v->rv : "";
}

void api_version_release(struct api_version *v)
{
	buf_release(&v->kept);
}
