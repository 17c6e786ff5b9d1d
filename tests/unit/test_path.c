/* SPDX-License-Identifier: Apache-2.0 */
#include "common/bytes.h"
#include "common/value/path_set.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

static struct path *path;

/* Parses TEXT into `path`. */
static void parse(const char *text)
{
	path_free(&path);
	int r = path_parse(text, &path);
	cr_assert_eq(r, 0, "%s: %s", text, err_text(r));
}

static struct buf document;

static void set_up(void)
{
	document = body_of("{\"metadata\":{\"name\":\"web\",\"labels\":{\"a.b/"
			   "c\":\"x\",\"d\":\"y\"}},"
			   "\"spec\":{\"containers\":[{\"image\":\"one\",\"ports\":[80,443]},"
			   "{\"image\":\"two\"},{\"name\":\"none\"},{\"image\":null,\"ports\":"
			   "[]}]},"
			   "\"status\":{\"conditions\":[{\"type\":\"Ready\"}]}}");
}

static void release(void)
{
	path_free(&path);
	buf_release(&document);
}

TestSuite(path, .init = set_up, .fini = release);

static void assert_canonical(const char *text, const char *wanted)
{
	parse(text);
	cr_assert_str_eq(path_text(path), wanted);
	CLEANUP(path_free) struct path *again = NULL;
	cr_assert_eq(path_parse(path_text(path), &again), 0, "%s", path_text(path));
	cr_assert_str_eq(path_text(again), wanted);
}

Test(path, all_spellings_of_a_path_have_one_form)
{
	assert_canonical("spec.nodeName", "spec.nodeName");
	assert_canonical(".spec.nodeName", "spec.nodeName");
	assert_canonical("{.spec.nodeName}", "spec.nodeName");
	assert_canonical("{spec['nodeName']}", "spec.nodeName");
	assert_canonical("metadata.labels['app.kubernetes.io/name']",
		"metadata.labels['app.kubernetes.io/name']");
	assert_canonical("metadata.labels[\"app.kubernetes.io/name\"]",
		"metadata.labels['app.kubernetes.io/name']");
	assert_canonical("metadata.labels.app\\.kubernetes\\.io/name",
		"metadata.labels['app.kubernetes.io/name']");
	assert_canonical("spec.containers[*].image", "spec.containers[*].image");
	assert_canonical("status.conditions[0].type", "status.conditions[0].type");
	assert_canonical("a[*][*][12]['']", "a[*][*][12]['']");
	assert_canonical("['a b'].c", "['a b'].c");
	assert_canonical("a['it\\'s\\\\']", "a['it\\'s\\\\']");
	assert_canonical("a[\"it's\"]", "a['it\\'s']");
	assert_canonical("[*].a", "[*].a");
	assert_canonical("a-b_c/d", "a-b_c/d");
	assert_canonical("a[4294967295]", "a[4294967295]");
	assert_canonical("{ .a.b[-1] }", "a.b[-1]");
	assert_canonical("$.a", "a");
	assert_canonical("@['a']", "a");
	assert_canonical("$ref.@id", "$ref.@id");
	assert_canonical("['$'].a", "['$'].a");
	assert_canonical("a.*.b", "a[*].b");
	assert_canonical("..name", "..name");
	assert_canonical("a..b", "a..b");
	assert_canonical("a..[0]", "a..[0]");
	assert_canonical("a..*", "a..[*]");
	assert_canonical("a[1:]", "a[1:]");
	assert_canonical("a[:2]", "a[:2]");
	assert_canonical("a[-3:-1:2]", "a[-3:-1:2]");
	assert_canonical("a[:]", "a[:]");
	assert_canonical("a['b','c.d']", "a['b','c.d']");
	assert_canonical("a[0, 2 ,-1]", "a[0,2,-1]");
	assert_canonical("c[?(@.type==\"Ready\")].status", "c[?(@.type==\"Ready\")].status");
	assert_canonical("c[?( @.type == 'Ready' )].status", "c[?(@.type==\"Ready\")].status");
	assert_canonical("c[type=Ready].status", "c[?(@.type==\"Ready\")].status");
	assert_canonical("c[a.b='x y']", "c[?(@.a.b==\"x y\")]");
	assert_canonical("c[?(@.n>=5)]", "c[?(@.n>=5)]");
	assert_canonical("c[?(@.n!=-1.5)]", "c[?(@.n!=-1.5)]");
	assert_canonical("c[?(@.on==true)]", "c[?(@.on==true)]");
	assert_canonical("c[?(@.a)]", "c[?(@.a)]");
	assert_canonical("c[?(@<@.b)]", "c[?(@<@.b)]");
	assert_canonical("c[?(@.x[?(@.y=='\\'')])]", "c[?(@.x[?(@.y==\"'\")])]");
}

static void assert_syntax(const char *text, const char *part)
{
	path_free(&path);
	int r = path_parse(text, &path);

	cr_assert_eq(r, ERR_SYNTAX, "%s", text);
	cr_assert(strstr(err_text(r), part), "%s: %s", text, err_text(r));
	cr_assert_null(path);
}

Test(path, errors_point_at_the_place)
{
	assert_syntax("", "character 1: expected a key");
	assert_syntax(".", "character 2: expected a key");
	assert_syntax("a.", "character 3: expected a key");
	assert_syntax("a b", "character 2: expected '.' or '['");
	assert_syntax("a[", "character 3: expected '*'");
	assert_syntax("a[]", "character 3: expected '*'");
	assert_syntax("a[x]", "character 3: expected '*'");
	assert_syntax("a[1", "character 4: expected ']'");
	assert_syntax("a[*", "character 4: expected ']'");
	assert_syntax("a['b]", "character 6: the quote does not end");
	assert_syntax("a['b\\", "the quote does not end");
	assert_syntax("a\\", "nothing follows the backslash");
	assert_syntax("a[4294967296]", "too large");
	assert_syntax("{a", "expected '}'");
	assert_syntax("{", "expected '}'");
	assert_syntax("{}", "expected a key");
	assert_syntax("a}", "character 2: expected '.' or '['");
	assert_syntax("a....b", "twice");
	assert_syntax("a[1:2", "character 6: expected ']'");
	assert_syntax("a[::0]", "above 0");
	assert_syntax("a[-]", "expected a number");
	assert_syntax("a['b',]", "expected '*', a number");
	assert_syntax("a[?(@.x==)]", "character 10: expected a path, a number");
	assert_syntax("a[?(@.x=1)]", "character 8: expected ')' or one of");
	assert_syntax("a[?(@.x==1]", "expected ')'");
	assert_syntax("a[?(@.x=='1)]", "the quote does not end");
	assert_syntax("a[?(@.x==maybe)]", "character 10: expected a path, a number");
	assert_syntax("a[?(@.x[?(@.x[?(@.x[?(@.x[?(@.x[?(@.x[?(@.x[?(@.x[?(@.x)])])])])])])])])]",
		"too many filters");
	struct buf deep = BUF_INIT;
	for (int i = 0; i <= VALUE_DEPTH_MAX; i++)
		buf_str(&deep, i ? ".a" : "a");
	assert_syntax(buf_cstr(&deep), "too many steps");
	buf_release(&deep);
	assert_syntax("a..b..c..d..e", "too many steps '..'");
	assert_syntax("a..b[?(@..c)]..d..e", "too many steps '..'");
	assert_syntax(
		"['a','b','c']['a','b','c']['a','b','c']['a','b','c']['a','b','c']['a','b','c']",
		"combinations");
	assert_syntax("a[?(@['a','b']['a','b']['a','b']['a','b'])]['a.b','c']['a','b','c','d']['a',"
		      "'b','c','d']",
		"combinations");
}

Test(path, keys_are_told_up_to_the_first_other_step)
{
	struct bytes key;

	parse("metadata.labels['a.b']");
	cr_assert_eq(path_keys(path, 2, &key), 3);
	cr_assert(bytes_equal(key, BYTES_LIT("a.b")));
	cr_assert(path_is_plain(path));
	cr_assert_not(path_is_plural(path));
	parse("spec.containers[*].image");
	cr_assert_eq(path_keys(path, 1, &key), 2);
	cr_assert(bytes_equal(key, BYTES_LIT("containers")));
	cr_assert_not(path_is_plain(path));
	cr_assert(path_is_plural(path));
	parse("[0].a");
	cr_assert_eq(path_keys(path, 0, NULL), 0);
	cr_assert_not(path_is_plain(path));
	cr_assert_not(path_is_plural(path));
}

static bool is_within(const char *text, const char *subtree)
{
	parse(text);
	return !path_is_kept(path, false, subtree);
}

Test(path, what_lies_in_a_subtree_is_told_by_whole_keys)
{
	cr_assert(is_within("{.spec.containers}", "spec.containers"));
	cr_assert(is_within("spec.containers[*].image", "spec.containers"));
	cr_assert(is_within("metadata.annotations['a/b']", "metadata.annotations"));
	cr_assert(is_within("spec['a.b'].c", "spec['a.b']"));
	cr_assert_not(is_within("spec.containersX", "spec.containers"));
	cr_assert_not(is_within("spec", "spec.containers"), "some of it is there");
	cr_assert_not(is_within("..image", "spec.containers"));
}

Test(path, metadata_is_told_by_the_first_key)
{
	static const struct {
		const char *text;
		bool of_metadata;
	} cases[] = {{"metadata.name", true}, {"kind", true}, {"apiVersion", true},
		{"..name", true}, {"[*]", true}, {"data.a", false}, {"metadataX", false},
		{"spec", false}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		parse(cases[i].text);
		cr_expect_eq(
			path_is_kept(path, true, ""), cases[i].of_metadata, "%s", cases[i].text);
	}
}

Test(path, narrow_ones_name_one_place)
{
	static const char *const narrow[] = {
		"a", "a.b['c.d'][-1]", "c[type=Ready].status", "c[?(@.type==\"Ready\")].status"};
	static const char *const wide[] = {"a[*]", "a.*", "a[0:1]", "..a", "['a','b']", "c[?(@.a)]",
		"c[?(@.a!=1)]", "c[?(@.a==@.b)]", "c[?(1==1)]"};

	for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++) {
		parse(narrow[i]);
		cr_assert(path_is_narrow(path), "%s", narrow[i]);
	}
	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
		parse(wide[i]);
		cr_assert_not(path_is_narrow(path), "%s", wide[i]);
	}
}

static int put_text(void *arg, const struct value *value)
{
	char scratch[VALUE_SCRATCH];
	struct bytes text;

	if (value_scalar_text(value, scratch, &text) != FOUND)
		text = value->type == VALUE_MAP ? BYTES_LIT("{}") : BYTES_LIT("[]");
	buf_bytes_put(arg, text);
	buf_byte(arg, ' ');
	return 0;
}

static void assert_finds(const char *text, const char *wanted)
{
	CLEANUP(buf_release) struct buf found = BUF_INIT;

	parse(text);
	cr_assert_eq(path_eval(path, buf_bytes(&document), put_text, &found), 0);
	cr_assert_str_eq(buf_cstr(&found), wanted, "%s: '%s'", text, buf_cstr(&found));
}

Test(path, values_are_found_in_order)
{
	assert_finds("metadata.name", "web ");
	assert_finds("metadata.labels['a.b/c']", "x ");
	assert_finds("metadata.labels[*]", "x y ");
	assert_finds("spec.containers[*].image", "one two  ");
	assert_finds("spec.containers[*].ports[*]", "80 443 ");
	assert_finds("spec.containers[*].ports", "[] [] ");
	assert_finds("spec.containers[1].image", "two ");
	assert_finds("spec.containers[0].ports[1]", "443 ");
	assert_finds("spec[*][*].image", "one two  ");
	assert_finds("[*].conditions[0].type", "Ready ");
	assert_finds("status", "{} ");
}

Test(path, slices_and_negative_numbers_count_from_the_end)
{
	assert_finds("spec.containers[-1].ports", "[] ");
	assert_finds("spec.containers[-4].image", "one ");
	assert_finds("spec.containers[-5].image", "");
	assert_finds("spec.containers[0:2].image", "one two ");
	assert_finds("spec.containers[:1].image", "one ");
	assert_finds("spec.containers[1:].image", "two  ");
	assert_finds("spec.containers[-3:-1].image", "two ");
	assert_finds("spec.containers[::3].image", "one  ");
	assert_finds("spec.containers[2:9].name", "none ");
	assert_finds("metadata[0:1]", "");
}

Test(path, filters_keep_the_items_for_which_they_hold)
{
	assert_finds("spec.containers[?(@.image=='two')].image", "two ");
	assert_finds("spec.containers[image=two].image", "two ");
	assert_finds("spec.containers[?(@.image!='two')].image", "one  ");
	assert_finds("spec.containers[?(@.image>'one')].image", "two ");
	assert_finds("spec.containers[?(@.image<=\"one\")].image", "one ");
	assert_finds("spec.containers[?(@.ports)].image", "one  ");
	assert_finds("spec.containers[?(@.ports[0]==80)].image", "one ");
	assert_finds("spec.containers[?(80==@.ports[0])].image", "one ");
	assert_finds("spec.containers[?(@.ports[0]>79.5)].image", "one ");
	assert_finds("spec.containers[?(@.ports[0]=='80')].image", "one ");
	assert_finds("spec.containers[?(@.ports[0]!='80')].image", "");
	assert_finds("spec.containers[?(@.ports[0]!='eighty')].image", "one ");
	assert_finds("spec.containers[ports=80].image", "");
	assert_finds("spec.containers[0].ports[?(@>100)]", "443 ");
	assert_finds("spec.containers[?(@.ports[*]==443)].image", "one ");
	assert_finds("spec.containers[?(@.ports[*]!=443)].image", "one ");
	assert_finds("spec.containers[?(@.ports[*]==1)].image", "");
	assert_finds("spec.containers[?(@.ports[*]<100)].image", "one ");
	assert_finds("spec.containers[?(443==@.ports[*])].image", "one ");
	assert_finds("spec.containers[?(@.ports[1:]==@.ports[*])].image", "one ");
	assert_finds("metadata[?(@.name)]", "");
	assert_finds("spec.containers[?(@.ports[?(@==443)])].image", "one ");
}

Test(path, a_union_gives_what_each_member_finds_in_turn)
{
	assert_finds("spec.containers[0,1].image", "one two ");
	assert_finds("spec.containers[1,0].image", "two one ");
	assert_finds("spec.containers[*]['image','name']", "one two  none ");
	assert_finds("['metadata.name','status.conditions[0].type','metadata']", "web Ready {} ");
	assert_finds("metadata.labels['a.b/c','d']", "x y ");
	assert_finds("['metadata','spec']['name','containers'][0,1].image", "one two ");
	assert_finds("spec.containers[0].ports[0,-1:]", "80 443 ");
}

Test(path, two_dots_descend)
{
	assert_finds("..image", "one two  ");
	assert_finds("spec..ports[0]", "80 ");
	assert_finds("..type", "Ready ");
	assert_finds("..labels.d", "y ");
	assert_finds("metadata..", "{} web {} x y ");
	assert_finds("..ports..nothing", "");
}

/* The members of a map come before those within it, wherever their key stands. */
Test(path, two_dots_give_a_map_s_own_member_first)
{
	buf_release(&document);
	document = body_of("{\"a\":{\"x\":{\"n\":1,\"e\":{},\"f\":[]},\"n\":{\"n\":2}},"
			   "\"b\":[[],[{\"n\":3},7,{\"m\":[{\"n\":4}],\"n\":5}]],\"n\":6}");
	assert_finds("..n", "6 {} 1 2 3 5 4 ");
	assert_finds("..n.n", "2 ");
	assert_finds("b..n", "3 5 4 ");
	assert_finds("..x..n", "1 ");
	assert_finds("..n..n", "2 ");
	assert_finds("..[1]", "[] 7 ");
}

Test(path, a_path_that_leads_nowhere_finds_nothing)
{
	assert_finds("spec.nodeName", "");
	assert_finds("metadata.name.more", "");
	assert_finds("metadata.name[*]", "");
	assert_finds("metadata[0]", "");
	assert_finds("spec.containers[9].image", "");
	assert_finds("spec.containers.image", "");
}

static int stop_at_two(void *arg, const struct value *value)
{
	++*(int *)arg;
	return bytes_equal(value->text, BYTES_LIT("two")) ? 42 : 0;
}

/* A backslash in it means a plain dot to the path, and nothing to the key. Found by fuzzing. */
Test(path, the_text_of_a_quoted_member_of_a_union_means_the_same)
{
	static const char *const texts[] = {"['a','\\..b']", "['a','..b']", "[\"it's.b\",'c']",
		"['it\\'s.b','c']", "['a\\.b','c.d']"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_canonical(texts[i], texts[i]);
}

Test(path, the_callback_can_stop_the_walk)
{
	struct value value;
	int calls = 0;

	parse("spec.containers[*].image");
	cr_assert_eq(path_eval(path, buf_bytes(&document), stop_at_two, &calls), 42);
	cr_assert_eq(calls, 2);
	cr_assert_eq(path_first(path, buf_bytes(&document), &value), FOUND);
	cr_assert(bytes_equal(value.text, BYTES_LIT("one")));
	parse("spec.nodeName");
	cr_assert_eq(path_first(path, buf_bytes(&document), &value), NOT_FOUND);
}

Test(path, damaged_documents_are_reported)
{
	struct value value;

	parse("status.conditions[*].type");
	for (size_t n = 0; n < document.size; n++)
		cr_assert_eq(
			path_first(path, BYTES(document.data, n), &value), ERR_CORRUPT, "%zu", n);
	cr_assert_eq(path_first(path, buf_bytes(&document), &value), FOUND);
}

/* ---- several paths in one walk ------------------------------------------ */

/* Compares the set's answers with those of each path alone, for WHOLE cut to SIZE bytes. */
static void assert_set_finds_the_same(
	struct path_set *set, struct path *const *paths, size_t n, struct bytes whole, size_t size)
{
	AUTO_FREE uint8_t *copy = malloc(size + 1); /* of exact size, for AddressSanitizer */

	memcpy(copy + 1, whole.data, size);
	struct bytes cut = BYTES(copy + 1, size);
	int set_result = path_set_find(set, cut);
	if (size == whole.size)
		cr_assert_eq(set_result, 0);
	for (size_t i = 0; i < n; i++) {
		struct buf together = BUF_INIT, alone = BUF_INIT;
		int a = set_result < 0 ? set_result : path_set_eval(set, i, put_text, &together);
		int b = path_eval(paths[i], cut, put_text, &alone);

		/* A single path may end before the damage another one meets. */
		cr_assert(a == b || (a == ERR_CORRUPT && size < whole.size), "%s: %d, %d",
			path_text(paths[i]), a, b);
		if (a == 0)
			cr_assert_str_eq(
				buf_cstr(&together), buf_cstr(&alone), "%s", path_text(paths[i]));
		buf_release(&together);
		buf_release(&alone);
	}
}

Test(path, a_set_finds_what_each_of_its_paths_finds_alone)
{
	static const char *const texts[] = {"spec.nodeName", "metadata.labels",
		"spec.containers[*].image", "metadata.ownerReferences[*].uid", "metadata",
		"metadata.name", "spec.containers[*].ports[*].port", "a.b.c", "a.b", "a.d", "a.b",
		"absent.b", "spec.absent", "[*].name", "..uid", "metadata.name.more",
		"['a','spec'].b", "twice", "twice.x", "last", "list[*][*].k", "list[*]",
		"list[*][0]", "list[*].m[*]", "list[*]['m','n'].k", "list.k", "map[*].k.l", "map.k",
		"map[*][?(@.l)].l"};
	static const char *const documents[] = {
		"{\"list\":[[{\"k\":1},{\"z\":[1,2],\"k\":2}],[],{\"m\":[3,[4]],\"n\":{\"k\":5}},"
		"{\"k\":6,\"k\":7,\"m\":{\"x\":8,\"x\":{\"k\":9}}},null],\"map\":{\"k\":{\"l\":1},"
		"\"j\":{\"k\":{\"l\":2},\"b\":[{\"l\":3}]},\"i\":[{\"l\":4},{\"k\":{\"l\":5}}]}}",
		"{\"list\":{\"k\":[{\"k\":1}],\"m\":{\"m\":[2]},\"k\":{\"k\":3}},\"map\":[{\"k\":{"
		"\"l\":1}},"
		"[{\"l\":2},{\"l\":3,\"k\":4}],{\"k\":{\"l\":5}}]}",
		"{\"metadata\":{\"name\":\"x\",\"labels\":{\"p\":\"q\",\"r\":1},\"more\":[1,2,{"
		"\"z\":{}}],"
		"\"ownerReferences\":[{\"uid\":\"u1\"},{\"uid\":\"u2\",\"k\":null}]},\"spec\":{"
		"\"volumes\":[{\"a\":"
		"{\"nodeName\":\"no\"}}],\"containers\":[{\"image\":\"i1\",\"ports\":[{\"port\":1},"
		"{\"port\":2}]},"
		"{\"args\":[\"a long text of more than thirty-one "
		"bytes\"],\"image\":\"i2\"}],\"nodeName\":\"n\"},"
		"\"a\":{\"d\":-5,\"b\":{\"c\":1.5}},\"last\":true}",
		"{\"last\":1,\"twice\":{\"x\":1},\"twice\":{\"x\":2},\"metadata\":5,\"spec\":[1],"
		"\"a\":{\"b\":[{\"c\":2}]}}",
		"{}", "[{\"name\":1},{\"name\":2}]", "\"text\"",
		"{\"a\":{\"b\":{\"c\":{}},\"b\":{\"c\":3},\"d\":[]},\"spec\":{\"nodeName\":\"\","
		"\"b\":0}}"};
	enum {
		PATHS = sizeof(texts) / sizeof(*texts),
		DOCUMENTS = sizeof(documents) / sizeof(*documents)
	};
	struct path *paths[PATHS];
	struct path_set set = {0};
	size_t number;

	for (size_t i = 0; i < PATHS; i++) {
		cr_assert_eq(path_parse(texts[i], &paths[i]), 0, "%s", texts[i]);
		cr_assert_eq(path_set_add(&set, paths[i], &number), 0);
		cr_assert_eq(number, i);
	}
	for (size_t d = 0; d < DOCUMENTS; d++) {
		struct buf body = body_of(documents[d]);

		cr_assert_gt(body.size, 0);
		for (size_t size = body.size; size > 0; size--)
			assert_set_finds_the_same(&set, paths, PATHS, buf_bytes(&body), size);
		buf_release(&body);
	}
	path_set_release(&set);
	for (size_t i = 0; i < PATHS; i++)
		path_free(&paths[i]);
}

Test(path, a_set_takes_keys_alone_and_grows_between_two_documents)
{
	CLEANUP(path_set_release) struct path_set set = {0};
	size_t name, none, whole, late;

	cr_assert_eq(path_set_add_keys(&set, "metadata.name", &name), 0);
	cr_assert_eq(path_set_add_keys(&set, "metadata.name.more", &none), 0);
	cr_assert_eq(path_set_add_keys(&set, "", &whole), 0);
	cr_assert_null(path_set_value(&set, late = name)); /* no document yet */
	cr_assert_eq(path_set_find(&set, buf_bytes(&document)), 0);
	cr_assert(bytes_equal(path_set_value(&set, name)->text, BYTES_LIT("web")));
	cr_assert_null(path_set_value(&set, none));
	cr_assert_eq(path_set_value(&set, whole)->type, VALUE_MAP);

	cr_assert_eq(path_set_add_keys(&set, "status.conditions", &late), 0);
	cr_assert_null(path_set_value(&set, late));
	cr_assert(bytes_equal(path_set_value(&set, name)->text, BYTES_LIT("web")));
	cr_assert_eq(path_set_find(&set, buf_bytes(&document)), 0);
	cr_assert_eq(path_set_value(&set, late)->type, VALUE_ARRAY);
}
