/* SPDX-License-Identifier: Apache-2.0 */
/* jsonpath templates and custom columns; the expected output is kubectl 1.20's and later. */
#include "common/buf.h"
#include "print/table/columns.h"
#include "print/table/template.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

#define ITEMS 3

static const char *const items[ITEMS] = {
	"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"labels\":{\"x/y\":\"1\"}},"
	"\"spec\":{\"c\":[{\"i\":\"n:1\"},{\"i\":\"n:2\"}],\"n\":1.0,\"t\":true}}",
	"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"\",\"labels\":{}},\"spec\":{\"c\":[]}}",
	"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"c,}\",\"raw\":\"\\u001b[1m\\n\\u0000\"},"
	"\"spec\":{\"c\":[{\"i\":\"n:3\"}]}}",
};
static struct buf bodies[ITEMS];

static void set_up(void)
{
	for (unsigned i = 0; i < ITEMS; i++)
		body_put(items[i], &bodies[i]);
}

static void tear_down(void)
{
	for (unsigned i = 0; i < ITEMS; i++)
		buf_release(&bodies[i]);
}

TestSuite(template, .init = set_up, .fini = tear_down);
TestSuite(columns, .init = set_up, .fini = tear_down);

/* Returns the output of the template TEXT for the list of all objects, or for the first object
 * alone; or the error's sentence. */
static const char *give_as(const char *text, bool is_list, bool as_json)
{
	static struct buf out;
	struct template *template = NULL;
	int r = template_parse(text, &template);

	buf_reset(&out);
	if (r == 0 && as_json)
		template_use_json(template);
	if (r == 0)
		r = template_begin(template, is_list);
	for (unsigned i = 0; r == 0 && i < (is_list ? ITEMS : 1); i++)
		r = template_object(template, buf_bytes(&bodies[i]));
	if (r == 0)
		r = template_end(template, "77", &out);
	template_free(&template);
	const char *result = r < 0 ? err_text(r) : buf_cstr(&out);
	cr_assert(r == 0 || r == ERR_SYNTAX, "%d %s", r, result);
	return result;
}

static const char *give(const char *text, bool is_list)
{
	return give_as(text, is_list, false);
}

#define OF_LIST(text, wanted) cr_assert_str_eq(give(text, true), wanted)
#define OF_ONE(text, wanted)  cr_assert_str_eq(give(text, false), wanted)

Test(template, values_of_one_object)
{
	OF_ONE("{.metadata.name}", "a");
	OF_ONE("{$.metadata.name}{@.kind}", "aPod");
	OF_ONE("{.metadata.labels}", "{\"x/y\":\"1\"}");
	OF_ONE("{.metadata.labels['x/y']}{.metadata.labels.x/y}", "11");
	OF_ONE("{.spec.c[*].i}", "n:1 n:2");
	OF_ONE("{.spec.n} {.spec.t} {.nothing}.", "1 true .");
	OF_ONE("{range .spec.c[*]}<{.i}>{end}!", "<n:1><n:2>!");
	OF_ONE("", "");
}

Test(template, values_of_a_list)
{
	OF_LIST("{.items[*].metadata.name}", "a  c,}");
	OF_LIST("{.items[2].metadata.name} {.items[0].kind}{.items[9].kind}\n", "c,} Pod\n");
	OF_LIST("names: {.items[*].kind}; {.items[*].spec.n}", "names: Pod Pod Pod; 1");
	OF_LIST("{range .items[*]}{.kind}/{.metadata.name}{\"\\n\"}{end}",
		"Pod/a\nPod/\nPod/c,}\n");
	OF_LIST("{range .items[*]}{range .spec.c[*]}{.i},{end};{end}", "n:1,n:2,;;n:3,;");
	OF_LIST("{range .items[*].spec.c[*]}{@.i} {end}", "n:1 n:2 n:3 ");
}

Test(template, a_list_is_an_object_with_items)
{
	OF_LIST("{.kind} {.apiVersion} {.metadata.resourceVersion}", "List v1 77");
	OF_LIST("{.items[?(@.metadata.name==\"c,}\")].spec.c[0].i}", "n:3");
	OF_LIST("{.items[-1].metadata.name}|{.items[0:2].kind}|{.items[1:].kind}",
		"c,}|Pod Pod|Pod Pod");
	OF_LIST("{.items[*]['metadata.name','kind']}", "a  c,} Pod Pod Pod");
	OF_LIST("{range .items[?(@.spec.c[0].i)]}{.metadata.name};{end}", "a;c,};");
	OF_LIST("{..i}", "n:1 n:2 n:3");
	OF_LIST("{.items[*].spec.c[?(@.i!='n:1')].i}", "n:2 n:3");
	OF_LIST("{range .nothing[*]}x{end}|", "|");
	OF_LIST("{.items[*].metadata..x/y}", "1");
}

/* With {.kind}, the List's own, the whole list is kept and each path followed from its
 * beginning. */
Test(template, one_pass_over_items_gives_what_the_whole_list_gives)
{
	static const char *const texts[] = {"{.items[*].metadata.name}",
		"{.items[*].spec.c[?(@.i=='n:2')].i}", "{range .items[*]}{.kind};{end}"};
	CLEANUP(buf_release) struct buf text = BUF_INIT, wanted = BUF_INIT;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		buf_reset(&text);
		buf_printf(&text, "%s{.kind}", texts[i]);
		buf_reset(&wanted);
		buf_printf(&wanted, "%sList", give(texts[i], true));
		cr_assert_str_eq(give(buf_cstr(&text), true), buf_cstr(&wanted), "%s", texts[i]);
	}
}

Test(template, as_json_each_part_is_a_list)
{
	cr_assert_str_eq(give_as("{.metadata.labels}{.spec.c[*].i}", false, true),
		"[\n    {\n        \"x/y\": \"1\"\n    }\n]\n[\n    \"n:1\",\n    \"n:2\"\n]\n");
	cr_assert_str_eq(give_as("a{3}{.nothing}{range .spec.c[0:1]}{.i}{end}", false, true),
		"[\n    \"a\"\n]\n[\n    3\n]\n[]\n[\n    \"n:1\"\n]\n");
	/* One pass over the items, and the whole list in memory. */
	cr_assert_str_eq(
		give_as("{.items[*].spec.t}{.items[*].x}", true, true), "[\n    true\n]\n[]\n");
	cr_assert_str_eq(give_as("{.items[*].metadata.name} ", true, true),
		"[\n    \"a\",\n    \"\",\n    \"c,}\"\n]\n[\n    \" \"\n]\n");
	cr_assert_str_eq(give_as("{.kind}{.items[1]}", true, true),
		"[\n    \"List\"\n]\n[\n    {\n        \"kind\": \"Pod\",\n        \"metadata\": "
		"{\n"
		"            \"labels\": {},\n            \"name\": \"\"\n        },\n        "
		"\"spec\": {\n            \"c\": []\n        }\n    }\n]\n");
}

/* Answers of kubectl's library (client-go 0.37). NULL: it refuses the template, for the reason
 * beside it. */
Test(template, filters_slices_and_unions_are_kubectls_or_better)
{
	static const struct {
		const char *text, *kubectl, *ours; /* ours: NULL: the same */
	} cases[] = {
		{"{.items[?(@.spec.t==true)].metadata.name}", "a", NULL},
		{"{.items[?(@.spec.c)].metadata.name}", "a  c,}", NULL},
		{"{.items[?(@.spec.c[*].i)].metadata.name}", "a c,}", NULL},
		{"{.items[?(@.metadata.name==\"\")].kind}", "Pod", NULL},
		{"{.items[?(@.metadata.name==\"c,}\")].kind}", "Pod", NULL},
		{"{.items[?(@.metadata.labels.x/y==\"1\")].metadata.name}", "a", NULL},
		{"{.items[-1:].metadata.name}", "c,}", NULL},
		{"{.items[-2:-1].kind}", "Pod", NULL},
		{"{.items[0:3:2].metadata.name}", "a c,}", NULL},
		{"{.items[::2].metadata.name}", "a c,}", NULL},
		{"{.items[:-1].spec.c[*].i}", "n:1 n:2", NULL},
		{"{.items[0,2].metadata.name}", "a c,}", NULL},
		{"{.items[*]['kind','metadata.name']}", "Pod Pod Pod a  c,}", NULL},
		{"{.items[0]..i}", "n:1 n:2", NULL},
		{"{range .items[*]}{.metadata.name}:{range .spec.c[*]}{.i},{end};{end}",
			"a:n:1,n:2,;:;c,}:n:3,;", NULL},
		{"{range .items[?(@.spec.t)]}{@.metadata.name}{end}", "a", NULL},
		{"{range .items[*]}{.x}-{end}", "---", NULL},
		/* "can only compare one element at a time" */
		{"{.items[?(@.spec.c[*].i==\"n:2\")].metadata.name}", NULL, "a"},
		{"{.items[?(@.spec.c[*].i!=\"n:2\")].metadata.name}", NULL, "a c,}"},
		{"{.items[?(@.spec.c[*].i>=\"n:2\")].metadata.name}", NULL, "a c,}"},
		{"{.items[?(\"n:2\"==@.spec.c[*].i)].metadata.name}", NULL, "a"},
		{"{.items[?(@..i==\"n:2\")].metadata.name}", NULL, "a"},
		/* "incompatible types for comparison" */
		{"{.items[?(@.spec.n==\"1\")].metadata.name}", NULL, "a"},
		{"{.items[?(@.spec.n==1)].metadata.name}", NULL, "a"},
		{"{.items[?(@.spec.n>\"0\")].metadata.name}", NULL, "a"},
		{"{.items[?(@.spec.t==\"true\")].metadata.name}", NULL, "a"},
		{"{.items[?(@.spec.t!=\"true\")].metadata.name}", NULL, ""},
		{"{.items[?(@.spec.t==\"x\")].metadata.name}", NULL, ""},
		/* "array index out of bounds", "is not array or slice" */
		{"{.items[3].kind}", NULL, ""},
		{"{.items[0:4].kind}", NULL, "Pod Pod Pod"},
		{"{.items[?(@.spec.c[5].i==\"x\")].metadata.name}", NULL, ""},
		{"{.items[*].metadata[0]}", NULL, ""},
		{"{.items[*].metadata[?(@.x)]}", NULL, ""},
		/* "unterminated filter" */
		{"{.items[?(@.spec.c[?(@.i==\"n:2\")])].metadata.name}", NULL, "a"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_str_eq(give(cases[i].text, true),
			cases[i].ours ? cases[i].ours : cases[i].kubectl, "%s: %s", cases[i].text,
			give(cases[i].text, true));
}

Test(template, what_kubectl_refuses_when_it_meets_an_object_is_refused_at_once)
{
	static const char *const texts[] = {"{.items[?(@.spec.n=~1)].kind}",
		"{.items[?(@.spec.n=1)].kind}", "{.items[?(@.spec.n==null)].kind}", "{.items[a]}",
		"{.items[*].kind", "{.items[?(@.spec.n==1].kind}", "{end}",
		"{range .items[*]}{.kind}", "{.items[0:1:2:3]}"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct template *template = NULL;

		cr_expect_eq(template_parse(texts[i], &template), ERR_SYNTAX, "%s", texts[i]);
	}
}

Test(template, blanks_quotes_and_constants)
{
	OF_ONE("{ .metadata.name }{ range .spec.c[*] }{ .i }{ end }", "an:1n:2");
	OF_ONE("{'it\\'s'}{\"\\u00e9\\x41\"}{ \"b\" }", "it's\xc3\xa9"
							"Ab");
	OF_ONE("{1}{true}{-2.5}", "1true-2.5");
	OF_ONE("{range .spec.c[*]}{@.i}{$.i}{end}", "n:1n:1n:2n:2");
	OF_ONE("{.spec.c[0]}{.}",
		"{\"i\":\"n:1\"}{\"kind\":\"Pod\",\"metadata\":{\"labels\":"
		"{\"x/y\":\"1\"},\"name\":\"a\"},\"spec\":{\"c\":[{\"i\":\"n:1\"},{\"i\":\"n:2\"}],"
		"\"n\":1,\"t\":true}}");
}

Test(template, text_is_text_also_when_it_looks_like_more)
{
	OF_ONE("}a\\n", "}a\\n");
	OF_ONE("{\"{\\t}\\\"\\\\\"}", "{\t}\"\\");
	OF_ONE("{.metadata['}']}-", "-");
}

Test(template, what_makes_no_sense_is_said_with_its_place)
{
	OF_ONE("a{.b", "jsonpath 'a{.b', character 3: '}' is missing");
	OF_ONE("{end}", "jsonpath '{end}', character 2: 'end' without a range");
	OF_ONE("{range .a}", "jsonpath '{range .a}', character 11: a range has no {end}");
	OF_ONE("{\"a\"b}", "jsonpath '{\"a\"b}', character 5: expected '}' after the quote");
	OF_ONE("{.a.b.}", "field path '{.a.b.}', character 7: expected a key");
	OF_ONE("{range .a}{range .a}{range .a}{range .a}{range .a}{range .a}{range .a}{range .a}"
	       "{range .a}",
		"jsonpath '{range .a}{range .a}{range .a}{range .a}{range .a}{range .a}"
		"{range .a}{range .a}{range .a}', character 82: too many ranges within each other");
}

static const char *table_by(int (*parse)(const char *, struct columns **), const char *text)
{
	static struct buf out;
	CLEANUP(columns_free) struct columns *columns = NULL;
	CLEANUP(table_release) struct table table = {0};
	int r = parse(text, &columns);

	buf_reset(&out);
	if (r == 0)
		columns_table(columns, &table);
	for (unsigned i = 0; r == 0 && i < ITEMS; i++)
		r = columns_row(columns, buf_bytes(&bodies[i]), &table, &out);
	if (r == 0)
		r = table_settle(&table, &out);
	return r < 0 ? err_text(r) : buf_cstr(&out);
}

static const char *table_of(const char *text)
{
	return table_by(columns_parse, text);
}

Test(columns, a_file_has_a_line_of_heads_and_one_of_paths)
{
	static const char wanted[] = "write a line of headings and below it a line with a field "
				     "path for each, with blanks between them";

	cr_assert_str_eq(
		table_by(columns_parse_file, " NAME\tN  \r\n.metadata.name {.spec.n}\nmore\n"),
		"NAME   N\na      1\n       <none>\nc,}    <none>\n");
	cr_assert_str_eq(table_by(columns_parse_file, "N\nspec.n"), "N\n1\n<none>\n<none>\n");
	cr_assert_str_eq(table_by(columns_parse_file, ""), wanted);
	cr_assert_str_eq(table_by(columns_parse_file, "A B"), wanted);
	cr_assert_str_eq(table_by(columns_parse_file, "\n\n"), wanted);
	cr_assert_str_eq(table_by(columns_parse_file, "A B\n.a\n"), wanted);
	cr_assert_str_eq(table_by(columns_parse_file, "A\n.a .b\n"), wanted);
	cr_assert_str_eq(table_by(columns_parse_file, "A\n.a.\n"),
		"column 'A': field path '.a.', character 4: expected a key");
}

Test(columns, values_none_and_several)
{
	cr_assert_str_eq(table_of("NAME:.metadata.name,IMAGES:{.spec.c[*].i},N:spec.n"),
		"NAME   IMAGES    N\n"
		"a      n:1,n:2   1\n"
		"       <none>    <none>\n"
		"c,}    n:3       <none>\n");
	cr_assert_str_eq(table_of("L:.metadata.labels['x/y'],M:.metadata.labels[\"a,b\"]"),
		"L        M\n"
		"1        <none>\n"
		"<none>   <none>\n"
		"<none>   <none>\n");
}

Test(columns, maps_and_lists_are_go_s)
{
	cr_assert_str_eq(table_of("L:.metadata.labels,C:.spec.c,F:.spec.c[?(@.i=='n:3')].i"),
		"L            C                         F\n"
		"map[x/y:1]   [map[i:n:1] map[i:n:2]]   <none>\n"
		"map[]        []                        <none>\n"
		"<none>       [map[i:n:3]]              n:3\n");
}

Test(columns, controls_are_made_visible)
{
	cr_assert_str_eq(table_of("RAW:.metadata.raw"), "RAW\n<none>\n<none>\n^[[1m^J^@\n");
}

Test(columns, bad_ones_are_named)
{
	cr_assert_str_eq(table_of(""), "column '': write one as HEAD:PATH");
	cr_assert_str_eq(table_of("A:.b,C"), "column 'C': write one as HEAD:PATH");
	cr_assert_str_eq(
		table_of("A:.b."), "column 'A': field path '.b.', character 4: expected a key");
	cr_assert_str_eq(
		table_of("A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,"
			 "A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,"
			 "A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,"
			 "A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a,A:a"),
		"at most 64 columns");
}
