/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog/coverage.h"

#include "common/err.h"

int coverage_init(struct coverage *coverage, const struct feed_definition *definition)
{
	const char *path = definition->drop;
	int r = 0;

	*coverage = (struct coverage){
		.definition = definition, .lacks_content = definition->metadata_only};
	if (*definition->label_selector)
		r = selector_parse_labels(definition->label_selector, &coverage->labels);
	if (r == 0 && *definition->field_selector)
		r = selector_parse_fields(definition->field_selector, &coverage->fields);
	while (*path) {
		size_t size = strcspn(path, "\n");
		struct bytes dropped = BYTES(path, size);

		if (bytes_equal(dropped, BYTES_LIT("metadata")) ||
			(bytes_starts(dropped, BYTES_LIT("metadata.")) &&
				!bytes_starts(dropped, BYTES_LIT("metadata.managedFields"))))
			coverage->lacks_metadata = true;
		else if (!bytes_starts(dropped, BYTES_LIT("metadata.")))
			coverage->lacks_content = true;
		path += size + (path[size] == '\n');
	}
	return r < 0 ? err_add(r, "feed '%s'", definition->name) : 0;
}

void coverage_release(struct coverage *coverage)
{
	selector_free(&coverage->labels);
	selector_free(&coverage->fields);
}

bool coverage_is_resource(const struct coverage *coverage, const char *group, const char *version,
	const char *resource)
{
	const struct feed_definition *d = coverage->definition;

	return strcmp(d->resource, resource) == 0 && strcmp(d->group, group) == 0 &&
	       strcmp(d->version, version) == 0;
}

static bool coverage_same(
	const struct selector_requirement *a, const struct selector_requirement *b)
{
	bool same = a->op == b->op && a->n_values == b->n_values && bytes_equal(a->key, b->key);

	for (size_t i = 0; same && i < a->n_values; i++)
		same = bytes_equal(a->values[i], b->values[i]);
	return same;
}

static bool coverage_occurs(const struct selector_requirement *wanted, const struct selector *given)
{
	for (size_t i = 0; given && i < selector_count(given); i++)
		if (coverage_same(wanted, selector_at(given, i)))
			return true;
	return false;
}

/* Returns true if WANTED asks for KEY=VALUE, and VALUE is in the path. */
static bool coverage_implied(
	const struct selector_requirement *wanted, const char *key, const char *value)
{
	return *value && wanted->op == SELECTOR_IN && wanted->n_values == 1 &&
	       bytes_equal(wanted->key, bytes_str(key)) &&
	       bytes_equal(wanted->values[0], bytes_str(value));
}

enum coverage_answer coverage_check(
	const struct coverage *coverage, const struct coverage_request *request)
{
	const struct feed_definition *d = coverage->definition;
	bool partial = false;

	if (!coverage_is_resource(coverage, request->group, request->version, request->resource))
		return COVERAGE_NONE;
	for (size_t i = 0; request->fields && i < selector_count(request->fields); i++)
		if (!path_is_kept(selector_at(request->fields, i)->path, d->metadata_only, d->drop))
			/* a selector would find nothing, as if nothing were there */
			return COVERAGE_NONE;
	if (coverage->lacks_metadata || (coverage->lacks_content && !request->metadata_only))
		return COVERAGE_NONE;
	/* The request is limited to a namespace by its path or its field selector. */
	struct bytes namespace_ = *request->namespace_
					  ? bytes_str(request->namespace_)
					  : selector_value(request->fields, "metadata.namespace");
	if (*d->namespace_ && !bytes_equal(namespace_, bytes_str(d->namespace_)))
		return COVERAGE_NONE;
	for (size_t i = 0; coverage->labels && i < selector_count(coverage->labels); i++)
		partial |= !coverage_occurs(selector_at(coverage->labels, i), request->labels);
	for (size_t i = 0; coverage->fields && i < selector_count(coverage->fields); i++) {
		const struct selector_requirement *r = selector_at(coverage->fields, i);

		partial |= !coverage_occurs(r, request->fields) &&
			   !coverage_implied(r, "metadata.name", request->name) &&
			   !coverage_implied(r, "metadata.namespace", request->namespace_);
	}
	return !partial ? COVERAGE_WHOLE : *request->name ? COVERAGE_FOUND : COVERAGE_NONE;
}
