/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/custom.h"

#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "common/value/value.h"

static const char *const custom_builtin_groups[] = {"", "apiregistration.k8s.io", "apps",
	"events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch",
	"certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io",
	"storage.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io",
	"scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io",
	"resource.k8s.io", "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io",
	"storagemigration.k8s.io", "lifecycle.k8s.io"};

unsigned custom_group_rank(const char *group)
{
	unsigned n = ARRAY_SIZE(custom_builtin_groups), i = 0;

	while (i < n && strcmp(custom_builtin_groups[i], group) != 0)
		i++;
	return i;
}

bool custom_is_builtin_group(const char *group)
{
	return custom_group_rank(group) < ARRAY_SIZE(custom_builtin_groups);
}

/* Reads "v2", "v1beta3". Returns false if it is no such version. */
static bool custom_read_version(const char *version, unsigned *ret_stage, unsigned ret_numbers[2])
{
	int end = 0;

	ret_numbers[1] = 0;
	if (sscanf(version, "v%9u%n", &ret_numbers[0], &end) == 1 && end && !version[end])
		*ret_stage = 2;
	else if (sscanf(version, "v%9ubeta%9u%n", &ret_numbers[0], &ret_numbers[1], &end) == 2 &&
		 !version[end])
		*ret_stage = 1;
	else if (sscanf(version, "v%9ualpha%9u%n", &ret_numbers[0], &ret_numbers[1], &end) == 2 &&
		 !version[end])
		*ret_stage = 0;
	else
		return false;
	return true;
}

int custom_compare_versions(const char *a, const char *b)
{
	unsigned stage_a, stage_b, x[2], y[2];
	bool is_a = custom_read_version(a, &stage_a, x), is_b = custom_read_version(b, &stage_b, y);

	if (!is_a || !is_b)
		return is_a != is_b ? (is_a ? -1 : 1) : strcmp(a, b);
	if (stage_a != stage_b)
		return stage_a > stage_b ? -1 : 1;
	if (x[0] != y[0])
		return x[0] > y[0] ? -1 : 1;
	return (x[1] < y[1]) - (x[1] > y[1]);
}

/* Finds the member KEY of VERSION. Returns: FOUND; NOT_FOUND: the body is no definition; END:
 * the version has no such list; errors. */
static int custom_find(
	struct bytes definition, struct bytes version, const char *key, struct value *ret_list)
{
	struct value root, spec, versions, one, name;
	struct value_iter iter;
	int r = value_read(definition, &root);

	if (r == 0)
		r = value_find(&root, BYTES_LIT("spec"), &spec);
	if (r == FOUND)
		r = value_find(&spec, BYTES_LIT("versions"), &versions);
	if (r != FOUND)
		return r;
	value_iter_init(&iter, &versions);
	while ((r = value_iter_next(&iter, NULL, &one)) == FOUND) {
		r = value_find(&one, BYTES_LIT("name"), &name);
		if (r < 0)
			return r;
		if (r == NOT_FOUND || !bytes_equal(name.text, version))
			continue;
		r = value_find(&one, bytes_str(key), ret_list);
		return r < 0 ? r : r == FOUND && ret_list->type == VALUE_ARRAY ? FOUND : END;
	}
	return r < 0 ? r : END;
}

int custom_columns(struct bytes definition, struct bytes version, struct bytes *ret_columns)
{
	struct value columns;
	int r = custom_find(definition, version, "additionalPrinterColumns", &columns);

	*ret_columns = BYTES_NONE;
	return r == FOUND ? value_document(&columns, ret_columns) : r == END ? FOUND : r;
}

int custom_selectable(struct bytes definition, struct bytes version, struct buf *out)
{
	struct value list, one, path;
	struct value_iter iter;
	int r = custom_find(definition, version, "selectableFields", &list);

	if (r != FOUND)
		return r == END ? FOUND : r;
	value_iter_init(&iter, &list);
	while ((r = value_iter_next(&iter, NULL, &one)) == FOUND)
		if (value_find(&one, BYTES_LIT("jsonPath"), &path) == FOUND && path.text.size > 1)
			buf_printf(out, " %.*s ", (int)path.text.size - 1,
				(const char *)path.text.data + 1);
	return r < 0 ? r : buf_error(out);
}

/* Appends the text KEY of a column without tabs and line ends: they separate texts. */
static void custom_put_column(
	struct buf *out, const struct value *column, const char *key, char after)
{
	char scratch[VALUE_SCRATCH];
	struct bytes text = BYTES_NONE;
	struct value value;

	if (value_find(column, bytes_str(key), &value) == FOUND)
		(void)value_scalar_text(&value, scratch, &text);
	for (size_t i = 0; i < text.size; i++) {
		char c = ((const char *)text.data)[i];
		buf_byte(out, c == '\t' || c == '\n' || c == '\0' ? ' ' : (uint8_t)c);
	}
	buf_byte(out, (uint8_t)after);
}

/* Finds the columns of a definition of v1beta1, as etcd has it: those of all versions. */
static int custom_old_columns(struct bytes definition, struct bytes *ret_columns)
{
	struct value root, spec, columns;
	int r = value_read(definition, &root);

	if (r == 0)
		r = value_find(&root, BYTES_LIT("spec"), &spec);
	if (r == FOUND)
		r = value_find(&spec, BYTES_LIT("additionalPrinterColumns"), &columns);
	if (r == FOUND)
		return value_document(&columns, ret_columns);
	return r < 0 ? r : FOUND;
}

int custom_write_columns(struct bytes definition, const char *version, struct buf *out)
{
	struct bytes columns;
	struct value list, column;
	struct value_iter iter;
	int r = custom_columns(definition, bytes_str(version), &columns);
	bool is_old = r == FOUND && !columns.size;

	if (is_old)
		r = custom_old_columns(definition, &columns);
	if (r != FOUND || !columns.size)
		return r;
	r = value_read(columns, &list);
	if (r < 0)
		return r;
	value_iter_init(&iter, &list);
	while ((r = value_iter_next(&iter, NULL, &column)) == FOUND) {
		custom_put_column(out, &column, "name", '\t');
		custom_put_column(out, &column, "type", '\t');
		custom_put_column(out, &column, "format", '\t');
		custom_put_column(out, &column, "priority", '\t');
		custom_put_column(out, &column, is_old ? "JSONPath" : "jsonPath", '\t');
		custom_put_column(out, &column, "description", '\n');
	}
	return r < 0 ? r : buf_error(out);
}
