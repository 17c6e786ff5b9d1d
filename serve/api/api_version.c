/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api/api_version.h"

#include "common/value/protobuf.h"

#define VERSION_KEPT ((size_t)16 << 10)
/* metav1.TypeMeta; ObjectMeta is field 1 of every object. */
#define TYPE_KIND              2
#define OBJECT_META            1
#define OBJECT_META_RV         6
#define OBJECT_META_DELETED    9  /* deletionTimestamp */
#define OBJECT_META_GRACE      10 /* deletionGracePeriodSeconds */
#define OBJECT_META_FINALIZERS 14
#define LIST_META_RV           2

/* ---- JSON --------------------------------------------------------------- */

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
	} else if (!v->is_value && v->depth == 2 && v->in_metadata) {
		v->wanted = version_text_is(v, "resourceVersion");
		v->terminating |= version_text_is(v, "deletionTimestamp");
		v->in_grace = version_text_is(v, "deletionGracePeriodSeconds");
		v->finalized |= version_text_is(v, "finalizers");
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
		v->complete |= v->depth == 2 && v->in_metadata;
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
		v->lingers |= v->in_grace && v->depth == 2 && c >= '1' && c <= '9';
		break;
	}
}

/* ---- protobuf ----------------------------------------------------------- */

static void version_read_protobuf(struct api_version *v)
{
	struct bytes type, kind = BYTES_NONE, raw, meta, rv;

	if (!protobuf_object(buf_bytes(&v->kept), &type, &raw) ||
		!protobuf_field(raw, OBJECT_META, &meta))
		return;
	(void)protobuf_field(type, TYPE_KIND, &kind);
	bool list =
		bytes_equal(kind, BYTES_LIT("Status")) ||
		(kind.size > 4 && memcmp((const char *)kind.data + kind.size - 4, "List", 4) == 0);
	v->terminating = !list && protobuf_field(meta, OBJECT_META_DELETED, &rv);
	v->lingers = !list && protobuf_number(meta, OBJECT_META_GRACE) != 0;
	v->finalized = !list && protobuf_field(meta, OBJECT_META_FINALIZERS, &rv);
	v->found = protobuf_field(meta, list ? LIST_META_RV : OBJECT_META_RV, &rv) &&
		   rv.size < sizeof(v->rv);
	if (v->found) {
		memcpy(v->rv, rv.data, rv.size);
		v->rv[rv.size] = '\0';
	}
}

/* ---- both --------------------------------------------------------------- */

void api_version_put(struct api_version *v, struct bytes piece)
{
	const char *p = piece.data;

	if (v->protobuf) {
		size_t room = VERSION_KEPT - v->kept.size;

		buf_put(&v->kept, p, piece.size < room ? piece.size : room);
		if (room && buf_error(&v->kept) == 0)
			version_read_protobuf(v);
		return;
	}
	for (size_t i = 0; i < piece.size && !v->complete && !v->ended; i++) {
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

bool api_version_is_gone(const struct api_version *v)
{
	return v->terminating && !v->lingers && !v->finalized && (v->complete || v->protobuf);
}

void api_version_release(struct api_version *v)
{
	buf_release(&v->kept);
}
