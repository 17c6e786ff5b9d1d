/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/terms.h"

#include "tests/unit/body.h"
#include "tests/unit/unit.h"

static const char pod[] =
	"{\"metadata\":{\"name\":\"x\",\"labels\":{\"app\":\"shop\",\"empty\":\"\"}},"
	"\"spec\":{\"nodeName\":\"n,1\",\"none\":null,\"priority\":10,"
	"\"containers\":[{\"image\":\"a\"},{\"image\":\"b\\\\c\"},{\"image\":{\"no\":1}}]}}";

static struct {
	struct terms *terms;
	struct term_list list;
	struct buf body;
	struct record record;
} f;

static void setup(const char *json, const char *key)
{
	f.body = body_of(json);
	cr_assert_eq(terms_new(&f.terms), 0);
	f.record = (struct record){.key = bytes_str(key), .body = buf_bytes(&f.body)};
}

static void define(uint32_t id, const char *name, const char *paths)
{
	struct index_definition d = {.id = id, .feed = 1, .name = name, .paths = paths};

	OK(terms_add(f.terms, &d));
}

/* All terms as "id:value " one behind the other. */
static const char *collected(void)
{
	static char text[1024];
	size_t n = 0;

	cr_assert_eq(terms_collect(f.terms, &f.record, &f.list), 0);
	text[0] = 0;
	for (size_t i = 0; i < f.list.n; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%u:%.*s ",
			f.list.terms[i].definition, BYTES_ARG(f.list.terms[i].value));
	return text;
}

static void teardown(void)
{
	term_list_release(&f.list);
	terms_free(&f.terms);
	buf_release(&f.body);
}

TestSuite(terms, .fini = teardown);

Test(terms, built_in_namespace_and_labels)
{
	setup(pod, "web/x");
	define(1, INDEX_NAMESPACE, "");
	define(2, INDEX_LABEL, "");
	cr_assert_str_eq(collected(), "1:web 2:app 2:app=shop 2:empty 2:empty= ");
	f.record.key = BYTES_LIT("cluster-scoped");
	cr_assert_str_eq(collected(), "2:app 2:app=shop 2:empty 2:empty= ");
}

Test(terms, paths_give_one_term_for_each_scalar_found)
{
	setup(pod, "web/x");
	define(3, "node", "spec.nodeName");
	define(4, "priority", "spec.priority");
	define(5, "none", "spec.none");
	define(6, "absent", "spec.absent");
	define(7, "image", "spec.containers[*].image");
	cr_assert_str_eq(collected(), "3:n,1 4:10 7:a 7:b\\c ");
	cr_assert_eq(f.list.unindexable, 1, "the map is no value");
}

Test(terms, compounds_combine_what_the_paths_find_and_escape_it)
{
	setup(pod, "web/x");
	define(8, "both", "spec.nodeName\nspec.containers[*].image");
	define(9, "missing", "spec.nodeName\nspec.absent");
	cr_assert_str_eq(collected(), "8:n\\,1,a 8:n\\,1,b\\\\c ");
	cr_assert_eq(terms_evaluate(f.terms, &f.record), 0);
	cr_assert(terms_has(f.terms, 8, BYTES_LIT("n\\,1,a")));
	cr_assert_not(terms_has(f.terms, 8, BYTES_LIT("n\\,1")));
	cr_assert_not(terms_has(f.terms, 9, BYTES_LIT("n\\,1,a")));
}

Test(terms, too_many_combinations_make_the_object_unindexable_there)
{
	CLEANUP(buf_release) struct buf json = BUF_INIT;

	buf_str(&json, "{\"a\":[0");
	for (int i = 1; i < 100; i++)
		buf_printf(&json, ",%d", i);
	buf_str(&json, "],\"b\":\"x\"}");
	setup(buf_cstr(&json), "k");
	define(1, "square", "a[*]\na[*]");
	define(2, "line", "a[*]\nb");
	define(3, "b", "b");
	cr_assert_eq(terms_collect(f.terms, &f.record, &f.list), 0);
	cr_assert_eq(f.list.n, 101);
	cr_assert_eq(f.list.unindexable, 1);
}

/* One path or several: only the number of values counts. */
Test(terms, too_many_values_make_the_object_unindexable_there)
{
	CLEANUP(buf_release) struct buf json = BUF_INIT;

	buf_str(&json, "{\"a\":[0");
	for (int i = 1; i <= TERMS_MAX; i++)
		buf_printf(&json, ",%d", i);
	buf_str(&json, "],\"b\":\"x\"}");
	setup(buf_cstr(&json), "k");
	define(1, "line", "a[*]");
	define(2, "none", "a[*]\nabsent");
	define(3, "b", "b");
	cr_assert_str_eq(collected(), "3:x ");
	cr_assert_eq(f.list.unindexable, 2);
}

Test(terms, damaged_bodies_are_an_error_and_bad_paths_refused)
{
	struct index_definition bad = {.id = 1, .name = "x", .paths = "a[["};
	struct index_definition none = {.id = 1, .name = "x", .paths = ""};

	setup(pod, "web/x");
	cr_assert_eq(terms_add(f.terms, &bad), ERR_SYNTAX);
	cr_assert_eq(terms_add(f.terms, &none), ERR_SYNTAX);
	define(7, "image", "spec.containers[*].image");
	f.record.body.size -= 4;
	cr_assert_eq(terms_collect(f.terms, &f.record, &f.list), ERR_CORRUPT);
	f.record.body = BYTES_NONE;
	cr_assert_eq(terms_collect(f.terms, &f.record, &f.list), 0);
	cr_assert_eq(f.list.n, 0);
}
