/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/request.h"

#include <string.h>

static void request_put_escaped(struct buf *buf, const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			(*p >= '0' && *p <= '9') || strchr("-._~", *p))
			buf_byte(buf, *p);
		else
			buf_printf(buf, "%%%02X", *p);
	}
}

/* The parameter, unless its value is empty. */
static void request_put_parameter(struct buf *buf, const char *name, const char *value)
{
	if (!*value)
		return;
	buf_printf(buf, "&%s=", name);
	request_put_escaped(buf, value);
}

static void request_put_resource(
	struct buf *buf, const struct feed_definition *d, const char *name_space)
{
	if (*d->group)
		buf_printf(buf, "/apis/%s/%s", d->group, d->version);
	else
		buf_printf(buf, "/api/%s", d->version);
	if (*name_space) {
		buf_str(buf, "/namespaces/");
		request_put_escaped(buf, name_space);
	}
	buf_printf(buf, "/%s", d->resource);
}

int request_path(const struct feed_definition *definition, const struct feed_action *action,
	struct buf *path)
{
	request_put_resource(path, definition, definition->namespace_);
	size_t question = path->size;

	request_put_parameter(path, "labelSelector", definition->label_selector);
	request_put_parameter(path, "fieldSelector", definition->field_selector);
	if (action->what == FEED_DO_WATCH || action->what == FEED_DO_STREAM)
		buf_printf(path, "&watch=true&allowWatchBookmarks=true&timeoutSeconds=%u",
			action->timeout_s);
	if (action->what == FEED_DO_STREAM)
		buf_str(path, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
	if (action->what == FEED_DO_LIST && action->limit)
		buf_printf(path, "&limit=%u", action->limit);
	request_put_parameter(path, "continue", action->continue_);
	request_put_parameter(path, "resourceVersion", action->rv);
	int r = buf_error(path);
	if (r >= 0 && path->size > question)
		path->data[question] = '?';
	return r;
}

int request_probe_path(const struct feed_definition *definition, const char *rv, struct buf *path)
{
	const char *name_space = definition->namespace_;

	if (!*name_space && definition->namespaced)
		name_space = "default";
	request_put_resource(path, definition, name_space);
	buf_str(path, "/kinf-probe?resourceVersion=");
	request_put_escaped(path, rv);
	return buf_error(path);
}

const char *request_accept(const struct feed_definition *definition, bool watch)
{
	if (!definition->metadata_only)
		return "application/json";
	return watch ? "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		     : REQUEST_ACCEPT_METADATA;
}
