/* SPDX-License-Identifier: Apache-2.0 */
/* The tests copy objects, read parts of them, and write them as text. */
#include "reader/kinf.h"
#include "tests/unit/query_rig.h"

TestSuite(query_objects, .init = setup, .fini = teardown, .timeout = 120);

/* Gets an object of the store; returns its pod. */
static const struct pod *get_one(struct kinf_object *ret_object)
{
	struct pod *pod = w.pods;

	while (!pod->there)
		pod++;
	OK(kinf_get(w.snapshot, "pods", pod->namespace_, pod->name, ret_object));
	return pod;
}

Test(query_objects, copies_outlive_the_snapshot)
{
	struct kinf_object object, *copy = NULL;
	const char *text;
	size_t size;

	const struct pod *pod = get_one(&object);

	OK(kinf_object_copy(&object, &copy));
	kinf_snapshot_close(&w.snapshot);
	OK(kinf_object_path(copy, "metadata.name", &text, &size));
	cr_assert_eq(size, strlen(pod->name));
	cr_assert_eq(memcmp(text, pod->name, size), 0);
	char *json;
	OK(kinf_object_json(copy, 0, &json, &size));
	cr_assert_eq(strncmp(json, "{\"metadata\":{\"name\":\"", 21), 0, "%s", json);
	free(json);
	free(copy);
}

static int collect_part(void *arg, const struct kinf_object *part)
{
	char *text = arg, *json;
	size_t size;

	OK(kinf_object_json(part, 0, &json, &size));
	size_t used = strlen(text);
	(void)snprintf(text + used, 400 - used, "%s;", json);
	free(json);
	return used > 0 ? 17 : 0;
}

Test(query_objects, parts_of_an_object_are_objects)
{
	struct kinf_object object, part, inner;
	const char *text;
	size_t size;
	char *json, all[400] = "";

	const struct pod *pod = get_one(&object);

	OK(kinf_object_part(&object, "metadata", &part));
	cr_assert_eq(part.key_size, object.key_size);
	OK(kinf_object_path(&part, "name", &text, &size));
	cr_assert_eq(size, strlen(pod->name));
	OK(kinf_object_part(&part, "name", &inner));
	OK(kinf_object_json(&inner, 0, &json, &size));
	cr_assert_eq(size, strlen(pod->name) + 2, "%s", json);
	free(json);
	cr_assert_eq(kinf_object_part(&object, "metadata.nothing", &part), KINF_NOT_FOUND);
	OK(kinf_object_each(&object, "spec.containers[*].nothing", collect_part, all));
	cr_assert_str_empty(all);
	cr_assert_eq(kinf_object_each(&object, "metadata[*]", collect_part, all), 17);
	cr_assert_eq(strchr(all, ';'), all + strlen(pod->name) + 2, "%s", all);
	cr_assert_neq(strchr(all, ';'), strrchr(all, ';'), "%s", all);
}

static int count_part(void *arg, const struct kinf_object *part)
{
	(void)part;
	++*(unsigned *)arg;
	return 0;
}

/* As given to on_delete for an object missing after a lapse. */
Test(query_objects, an_object_without_a_body_has_nothing_in_it)
{
	const struct kinf_object object = {.key = "a/x", .key_size = 3};
	struct kinf_object part, *copy;
	unsigned parts = 0;
	const char *text;
	size_t size;
	char *json;

	cr_assert_eq(kinf_object_path(&object, "spec.nodeName", &text, &size), KINF_NOT_FOUND);
	cr_assert_eq(kinf_object_path(&object, "spec.[", &text, &size), KINF_SYNTAX);
	cr_assert_eq(kinf_object_part(&object, "spec", &part), KINF_NOT_FOUND);
	cr_assert_eq(kinf_object_each(&object, "spec.containers[*]", count_part, &parts), 0);
	cr_assert_eq(parts, 0);
	OK(kinf_object_json(&object, 2, &json, &size));
	cr_assert_str_eq(json, "{}");
	cr_assert_eq(size, 2);
	free(json);
	OK(kinf_object_copy(&object, &copy));
	cr_assert_null(copy->body);
	cr_assert_eq(memcmp(copy->key, "a/x", 3), 0);
	free(copy);
}

Test(query_objects, json_has_no_negative_indent)
{
	struct kinf_object object;
	char *json = NULL;
	size_t size;

	(void)get_one(&object);
	cr_assert_eq(kinf_object_json(&object, -1, &json, &size), -EINVAL);
	cr_assert_str_eq(kinf_error(NULL), "an indent of -1 spaces");
	cr_assert_null(json);
}

Test(query_objects, a_bad_path_is_explained_without_a_handle)
{
	struct kinf_object object, part;

	(void)get_one(&object);
	cr_assert_eq(kinf_object_part(&object, "spec.x.", &part), KINF_SYNTAX);
	cr_assert_str_eq(kinf_error(NULL), "field path 'spec.x.', character 8: expected a key");
	cr_assert_str_eq(kinf_error(w.kinf), "");
}
