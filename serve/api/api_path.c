/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api/api_path.h"

#include "common/text/decimal.h"

#define API_PATH_PARTS 12 /* /apis/G/V/watch/namespaces/NS/PLURAL/NAME/SUB/... */

struct api_path_parts {
	const char *at[API_PATH_PARTS];
	size_t n;
	bool more; /* there are more of them */
};

bool api_path_unescape(struct bytes text, bool plus, struct buf *out)
{
	const char *p = text.data, *end = p + text.size;

	for (; p < end; p++) {
		int high, low;

		if (*p == '+' && plus) {
			buf_byte(out, ' ');
		} else if (*p != '%') {
			buf_byte(out, (uint8_t)*p);
		} else {
			if (end - p < 3 || (high = hex_digit(p[1])) < 0 ||
				(low = hex_digit(p[2])) < 0)
				return false;
			buf_byte(out, (uint8_t)(high << 4 | low));
			p += 2;
		}
	}
	return true;
}

/* Appends one segment, decoded. Returns whether it can be a name. */
static bool api_path_segment(struct bytes segment, struct buf *out)
{
	size_t before = out->size;

	if (!segment.size)
		return false;
	(void)api_path_unescape(segment, false, out); /* api_path_parse() has checked it */
	if (buf_error(out) < 0)
		return false;
	const char *p = (const char *)out->data + before;
	size_t size = out->size - before;

	if (memchr(p, '/', size) || memchr(p, '%', size) || memchr(p, '\0', size))
		return false;
	if ((size == 1 && p[0] == '.') || (size == 2 && p[0] == '.' && p[1] == '.'))
		return false;
	buf_byte(out, '\0');
	return true;
}

/* Splits PATH into decoded segments in TEXT. Returns whether all of them are valid. One slash at
 * the end is left out; RET_SLASH says whether there was one. */
static bool api_path_split(
	struct bytes path, struct buf *text, struct api_path_parts *parts, bool *ret_slash)
{
	const char *p = path.data, *end = p + path.size;
	size_t offsets[API_PATH_PARTS];

	*ret_slash = path.size > 1 && end[-1] == '/';
	if (path.size == 0 || *p != '/')
		return false;
	if (path.size == 1)
		return true;
	end -= *ret_slash;
	do {
		p++;
		const char *slash = memchr(p, '/', (size_t)(end - p));
		const char *stop = slash ? slash : end;
		size_t offset = text->size;

		if (!api_path_segment(BYTES(p, (size_t)(stop - p)), text))
			return false;
		if (parts->n < API_PATH_PARTS)
			offsets[parts->n++] = offset;
		else
			parts->more = true;
		p = stop;
	} while (p < end);
	if (buf_error(text) < 0)
		return false;
	buf_fit(text);
	for (size_t i = 0; i < parts->n; i++) /* the buffer does not move any more */
		parts->at[i] = (const char *)text->data + offsets[i];
	return true;
}

/* Reads the parts after the version: [watch/][namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]]. */
static void api_path_resource(struct api_path *path, const struct api_path_parts *parts, size_t i)
{
	size_t n = parts->n;

	path->kind = API_PATH_RESOURCE;
	if (strcmp(parts->at[i], "watch") == 0 && i + 1 < n) {
		path->is_watch = true;
		i++;
	}
	/* /namespaces/NS and its subresources are the namespace itself, all else is within it. */
	if (strcmp(parts->at[i], "namespaces") == 0 && i + 2 < n &&
		strcmp(parts->at[i + 2], "status") != 0 &&
		strcmp(parts->at[i + 2], "finalize") != 0) {
		path->namespace_ = parts->at[i + 1];
		i += 2;
	}
	path->resource = parts->at[i++];
	path->name = i < n ? parts->at[i++] : "";
	path->is_named = *path->name;
	path->subresource = i < n ? parts->at[i++] : "";
	path->is_long = i < n || parts->more;
}

int api_path_parse(struct bytes text, struct api_path *ret_path)
{
	struct api_path *path = ret_path;
	struct api_path_parts parts = {.n = 0};
	bool slash;

	*path = (struct api_path){.group = "",
		.version = "",
		.namespace_ = "",
		.resource = "",
		.name = "",
		.subresource = ""};
	if (!api_path_unescape(text, false, &path->text)) {
		path->kind = API_PATH_MALFORMED;
		return 0;
	}
	buf_reset(&path->text);
	bool valid = api_path_split(text, &path->text, &parts, &slash);
	int r = buf_error(&path->text);
	if (r < 0 || !valid)
		return r;
	if (parts.n == 0) {
		path->kind = API_PATH_ROOT;
		return 0;
	}
	bool is_core = strcmp(parts.at[0], "api") == 0;

	if (!is_core && strcmp(parts.at[0], "apis") != 0) {
		/* Generated clients ask for /version/, as for /api/ and /apis/. */
		if (parts.n == 1 && strcmp(parts.at[0], "version") == 0)
			path->kind = API_PATH_VERSION;
		path->name = parts.at[0];
		path->subresource = parts.n > 1 ? parts.at[1] : "";
		return 0;
	}
	size_t i = 1;
	if (!is_core && i < parts.n)
		path->group = parts.at[i++];
	if (i < parts.n)
		path->version = parts.at[i++];
	if (i < parts.n && !slash)
		api_path_resource(path, &parts, i);
	else if (i == parts.n)
		path->kind = *path->version ? API_PATH_RESOURCES
			     : *path->group ? API_PATH_GROUP
			     : is_core      ? API_PATH_API
					    : API_PATH_GROUPS;
	return 0;
}

int api_path_put_key(const struct api_path *path, struct buf *out)
{
	buf_printf(out, "%s%s%s", path->namespace_, *path->namespace_ ? "/" : "", path->name);
	return buf_error(out);
}

void api_path_release(struct api_path *path)
{
	buf_release(&path->text);
}
