/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/field.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"

#define FIELD_MAGIC 0x6669656cu
#define LABEL_PATHS 2
#define LABELS_MAX  2 /* of one name */
#define N_ROWS      ARRAY_SIZE(field_rows)

/* A field label of the API server. */
struct field_row {
	const char *kind, *group; /* "": the core group */
	const char *name;
	const char *paths[LABEL_PATHS]; /* the first nonempty one counts; NULL: no second */
	const char *absent;             /* the value if both are absent */
};

static const struct field_row field_rows[] = {
	{"Pod", "", "spec.host", {"spec.nodeName"}, ""},
	{"Pod", "", "spec.hostNetwork", {"spec.hostNetwork"}, "false"},
	{"Node", "", "spec.unschedulable", {"spec.unschedulable"}, "false"},
	{"ReplicationController", "", "status.replicas", {"status.replicas"}, "0"},
	{"Job", "batch", "status.successful", {"status.succeeded"}, "0"},
	{"Event", "", "source", {"source.component", "reportingComponent"}, ""},
	{"Event", "events.k8s.io", "source", {"deprecatedSource.component", "reportingController"},
		""},
};

struct field_label {
	const struct field_row *row;
	struct path *paths[LABEL_PATHS];
};

struct field {
	uint32_t magic;
	struct path *path;
	struct field_label labels[LABELS_MAX];
	size_t n_labels;
};

/* ---- making ------------------------------------------------------------- */

void field_free(struct field **field)
{
	if (!*field)
		return;
	CHECK_OBJ(*field, FIELD_MAGIC);
	path_free(&(*field)->path);
	for (size_t i = 0; i < (*field)->n_labels; i++)
		for (size_t p = 0; p < LABEL_PATHS; p++)
			path_free(&(*field)->labels[i].paths[p]);
	(*field)->magic = 0;
	free(*field);
	*field = NULL;
}

int field_parse(struct bytes name, struct field **ret_field)
{
	CLEANUP(field_free) struct field *field = calloc(1, sizeof(*field));
	AUTO_FREE char *text = strndup(name.size ? name.data : "", name.size);

	if (field)
		field->magic = FIELD_MAGIC;
	if (!field || !text)
		return err_set(-ENOMEM, "field");
	int r = path_parse(text, &field->path);
	for (size_t i = 0; r == 0 && i < N_ROWS; i++) {
		const struct field_row *row = &field_rows[i];

		if (!bytes_equal(name, bytes_str(row->name)))
			continue;
		REQUIRE(field->n_labels < LABELS_MAX);
		struct field_label *label = &field->labels[field->n_labels++];

		label->row = row;
		for (size_t p = 0; r == 0 && p < LABEL_PATHS && row->paths[p]; p++)
			r = path_parse(row->paths[p], &label->paths[p]);
	}
	if (r < 0)
		return r;
	*ret_field = TAKE(field);
	return 0;
}

const struct path *field_path(const struct field *field)
{
	CHECK_OBJ(field, FIELD_MAGIC);
	return field->path;
}

bool field_is_label(const struct field *field)
{
	CHECK_OBJ(field, FIELD_MAGIC);
	return field->n_labels > 0;
}

/* ---- reading ------------------------------------------------------------ */

struct field_search {
	field_text_fn *text_fn;
	void *arg;
	bool needs_text; /* empty counts as none */
	bool is_present;
};

static int field_check_value(void *arg, const struct value *value)
{
	struct field_search *search = arg;
	char scratch[VALUE_SCRATCH];
	struct bytes text;

	if (value_scalar_text(value, scratch, &text) != FOUND || (search->needs_text && !text.size))
		return 0;
	search->is_present = true;
	return search->text_fn(search->arg, text);
}

/* Returns 1 if the document is of the label's kind, 0 if not, ERR_CORRUPT. */
static int field_is_of_kind(const struct field_row *row, struct bytes document)
{
	struct value root, kind, api_version;
	int r = value_read(document, &root);

	if (r == 0)
		r = value_find(&root, BYTES_LIT("kind"), &kind);
	if (r != FOUND)
		return r == NOT_FOUND ? 1 : r;
	if (kind.type != VALUE_STRING || !bytes_equal(kind.text, bytes_str(row->kind)))
		return 0;
	r = value_find(&root, BYTES_LIT("apiVersion"), &api_version);
	if (r != FOUND)
		return r == NOT_FOUND ? 0 : r;
	if (api_version.type != VALUE_STRING)
		return 0;

	/* The group is the part before the slash. */
	struct bytes group = api_version.text;
	const char *slash = group.size ? memchr(group.data, '/', group.size) : NULL;

	group.size = slash ? (size_t)(slash - (const char *)group.data) : 0;
	return bytes_equal(group, bytes_str(row->group));
}

int field_read(const struct field *field, struct bytes document, field_text_fn *text_fn, void *arg)
{
	struct field_search search = {.text_fn = text_fn, .arg = arg};
	int r;

	CHECK_OBJ(field, FIELD_MAGIC);
	for (size_t i = 0; i < field->n_labels; i++) {
		const struct field_label *label = &field->labels[i];

		r = field_is_of_kind(label->row, document);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		search.needs_text = true;
		for (size_t p = 0; p < LABEL_PATHS && label->paths[p]; p++) {
			r = path_eval(label->paths[p], document, field_check_value, &search);
			if (r != 0 || search.is_present)
				return r;
		}
		return text_fn(arg, bytes_str(label->row->absent));
	}
	r = path_eval(field->path, document, field_check_value, &search);
	return r != 0 || search.is_present ? r : text_fn(arg, BYTES_NONE);
}
