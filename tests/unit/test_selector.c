/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/selector.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

typedef int parse_fn(const char *text, struct selector **ret_selector);

static void assert_canonical(parse_fn *parse, const char *text, const char *wanted)
{
	struct selector *selector, *again;

	int r = parse(text, &selector);
	cr_assert_eq(r, 0, "%s: %s", text, err_text(r));
	cr_assert_str_eq(selector_text(selector), wanted);
	cr_assert_eq(parse(wanted, &again), 0);
	cr_assert_str_eq(selector_text(again), wanted);
	selector_free(&again);
	selector_free(&selector);
	cr_assert_null(selector);
	selector_free(&selector);
}

static void assert_refused(parse_fn *parse, const char *text, const char *message)
{
	struct selector *selector = NULL;

	cr_assert_eq(parse(text, &selector), ERR_SYNTAX, "%s", text);
	cr_assert_str_eq(err_text(ERR_SYNTAX), message);
	cr_assert_null(selector);
}

/* ---- label grammar ------------------------------------------------------ */

Test(selector, labels_have_one_canonical_form)
{
	assert_canonical(selector_parse_labels, "", "");
	assert_canonical(selector_parse_labels, " \t\n", "");
	assert_canonical(selector_parse_labels, "a", "a");
	assert_canonical(selector_parse_labels, " ! a ", "!a");
	assert_canonical(selector_parse_labels, "a=b", "a=b");
	assert_canonical(selector_parse_labels, "a == b", "a=b");
	assert_canonical(selector_parse_labels, "a!=b", "a!=b");
	assert_canonical(selector_parse_labels, "a in (b)", "a=b");
	assert_canonical(selector_parse_labels, "a in (c, b ,c)", "a in (b,c)");
	assert_canonical(selector_parse_labels, "a notin(c,b)", "a notin (b,c)");
	assert_canonical(selector_parse_labels, "z,a=1,m in (x,y)", "a=1,m in (x,y),z");
	assert_canonical(selector_parse_labels, "a!=2,a,a!=1", "a!=1,a!=2,a");
	assert_canonical(
		selector_parse_labels, "app.kubernetes.io/name=x", "app.kubernetes.io/name=x");
	assert_canonical(selector_parse_labels, "a>5,a<9", "a>5,a<9");
}

Test(selector, empty_members_of_a_set_are_empty_values)
{
	assert_canonical(selector_parse_labels, "a=", "a=");
	assert_canonical(selector_parse_labels, "a==,b!=", "a=,b!=");
	assert_canonical(selector_parse_labels, "a in ()", "a=");
	assert_canonical(selector_parse_labels, "a in (,)", "a=");
	assert_canonical(selector_parse_labels, "a in (b,,c)", "a in (,b,c)");
	assert_canonical(selector_parse_labels, "a in (,b)", "a in (,b)");
	assert_canonical(selector_parse_labels, "a in (b,)", "a in (,b)");
}

Test(selector, in_and_notin_are_words_outside_of_operators)
{
	assert_canonical(selector_parse_labels, "in in (in,notin)", "in in (in,notin)");
	assert_canonical(selector_parse_labels, "notin", "notin");
	assert_canonical(selector_parse_labels, "a=in", "a=in");
	assert_canonical(selector_parse_labels, "!in", "!in");
}

Test(selector, label_errors_are_the_ones_of_the_api_server)
{
	assert_refused(selector_parse_labels, "a,", "found '', expected: identifier after ','");
	assert_refused(selector_parse_labels, ",a",
		"found ',', expected: !, identifier, or 'end of string'");
	assert_refused(selector_parse_labels, "a,,b", "found ',', expected: identifier after ','");
	assert_refused(selector_parse_labels, "a b",
		"unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
	assert_refused(selector_parse_labels, "a in b",
		"unable to parse requirement: found 'b' expected: '('");
	assert_refused(selector_parse_labels, "a in (b",
		"unable to parse requirement: found '', expected: ',' or ')'");
	assert_refused(selector_parse_labels, "a in (",
		"unable to parse requirement: found '', expected: ',', ')' or identifier");
	assert_refused(selector_parse_labels, "a in (,=)",
		"unable to parse requirement: found '=', expected: ',', or identifier");
	assert_refused(selector_parse_labels, "a=(b)",
		"unable to parse requirement: found '(', expected: identifier");
	assert_refused(selector_parse_labels, "!",
		"unable to parse requirement: found '', expected: identifier");
	assert_refused(selector_parse_labels, "!=a",
		"found '!=', expected: !, identifier, or 'end of string'");
	assert_refused(selector_parse_labels, "!!a",
		"unable to parse requirement: found '!', expected: identifier");
	assert_refused(
		selector_parse_labels, "!a=b", "found '=', expected: ',' or 'end of string'");
	assert_refused(
		selector_parse_labels, "a=b c", "found 'c', expected: ',' or 'end of string'");
	assert_refused(selector_parse_labels, "a>x",
		"unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' "
		"operators, the value must be an integer");
}

Test(selector, label_names_are_validated)
{
	static const char *const bad_keys[] = {"_a", "a_", "-a", "a.", "x/y/z", "/a", "a/", "Foo/a",
		"a..b/c", "a-/c", "a.-b/c", "\u00e4", "a*"};
	struct selector *selector = NULL;
	char text[80];

	for (size_t i = 0; i < sizeof(bad_keys) / sizeof(bad_keys[0]); i++) {
		cr_assert_eq(selector_parse_labels(bad_keys[i], &selector), ERR_SYNTAX, "%s",
			bad_keys[i]);
		cr_assert(strstr(err_text(ERR_SYNTAX),
			"unable to parse requirement: <nil>: Invalid value: \""));
	}
	memset(text, 'k', 64);
	text[64] = '\0';
	cr_assert_eq(selector_parse_labels(text, &selector), ERR_SYNTAX);
	cr_assert(strstr(err_text(ERR_SYNTAX), "name part must be no more than 63 bytes"));
	text[63] = '\0';
	assert_canonical(selector_parse_labels, text, text);
	assert_refused(selector_parse_labels, "app in (-x,y)",
		"unable to parse requirement: values[0][app]: Invalid value: \"-x\": a valid label "
		"must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
		"and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
		"'my_value',  or '12345', regex used for validation is "
		"'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
	assert_canonical(selector_parse_labels, "A-b_c.9=X_y.z-0", "A-b_c.9=X_y.z-0");
}

Test(selector, requirements_can_be_looked_at)
{
	CLEANUP(selector_free) struct selector *selector = NULL;

	cr_assert_eq(selector_parse_labels("b in (y,x),!a", &selector), 0);
	cr_assert_eq(selector_count(selector), 2);
	const struct selector_requirement *first = selector_at(selector, 0);
	cr_assert(bytes_equal(first->key, BYTES_LIT("a")));
	cr_assert_eq(first->op, SELECTOR_NOT_EXISTS);
	cr_assert_eq(first->n_values, 0);
	const struct selector_requirement *second = selector_at(selector, 1);
	cr_assert_eq(second->op, SELECTOR_IN);
	cr_assert_eq(second->n_values, 2);
	cr_assert(bytes_equal(second->values[0], BYTES_LIT("x")));
	cr_assert(bytes_equal(second->values[1], BYTES_LIT("y")));
}

/* ---- field grammar ------------------------------------------------------ */

Test(selector, fields_have_one_canonical_form)
{
	assert_canonical(selector_parse_fields, "", "");
	assert_canonical(selector_parse_fields, ",,", "");
	assert_canonical(selector_parse_fields, "spec.nodeName=a", "spec.nodeName=a");
	assert_canonical(selector_parse_fields, "spec.nodeName==a,", "spec.nodeName=a");
	assert_canonical(selector_parse_fields, "status.phase!=Running,metadata.name=x",
		"metadata.name=x,status.phase!=Running");
	assert_canonical(selector_parse_fields, "a= b ", "a= b ");
	assert_canonical(selector_parse_fields, "a=", "a=");
	assert_canonical(selector_parse_fields, "a=x\\,y\\=z\\\\", "a=x\\,y\\=z\\\\");
	assert_canonical(selector_parse_fields, "a=!b", "a=!b");
}

Test(selector, queries_also_compare)
{
	assert_canonical(selector_parse_query, "b=1, a>2", "a>2,b=1");
	assert_canonical(selector_parse_query, "a <= 1.5Gi ,a>=-1e3", "a>=-1e3,a<=1.5Gi");
	assert_canonical(selector_parse_query, "a<2026-11-22T08:30:00Z", "a<2026-11-22T08:30:00Z");
	assert_canonical(selector_parse_query, "a>2026-11-22,age<1h30m,a<now-7d,a>=now",
		"a>2026-11-22,a<now-7d,a>=now,age<1h30m");
	assert_canonical(selector_parse_query, "c[?(@.a<3)].b>2", "c[?(@.a<3)].b>2");
	assert_canonical(selector_parse_query, "a=<5,b!=>6", "a=<5,b!=>6");
	assert_canonical(selector_parse_query, ".age=5", ".age=5");
}

Test(selector, errors_of_queries_are_for_people)
{
	assert_refused(
		selector_parse_query, "a", "field selector 'a': 'a' has none of = != < <= > >=");
	assert_refused(selector_parse_query, "a=b=c",
		"field selector 'a=b=c': a '=' within a value is written '\\='");
	assert_refused(selector_parse_query, "a=\\x",
		"field selector 'a=\\x': only '\\', ',' and '=' are written with a backslash "
		"before them, not 'x'");
	assert_refused(selector_parse_query, "a[=b",
		"field selector 'a[=b': field path 'a[', character 3: expected '*', a number, a "
		"slice, a quoted key, a filter '?(...)' or KEY=VALUE");
	assert_refused(selector_parse_query, "a>x",
		"field selector 'a>x': 'a' is compared with 'x': write a number (3, 500m, 1.5Gi), "
		"a time (2026-11-22, 2026-11-22T08:30:00Z) or a time ago (now-10m)");
	assert_refused(selector_parse_query, "age<10",
		"field selector 'age<10': age: not a duration: '10'; write one as 10m, 1h30m, "
		"500ms or 0s");
	assert_refused(selector_parse_query, "age=10m",
		"field selector 'age=10m': compare 'age', the time since an object was created, "
		"with < or >; a field of that name is '.age'");
	static const char *const others[] = {"a>", "a>now-", "a>now-1", "a>now+1m", "a>2026-13-01",
		"a>2026-11-2", "age>", "age<-1m", "a<>1", "a ! 1>2", ">3", "a<==1", "age > now"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct selector *selector = NULL;
		cr_assert_eq(
			selector_parse_query(others[i], &selector), ERR_SYNTAX, "%s", others[i]);
		cr_assert_null(selector);
	}
}

static void assert_field_keys(const char *text, size_t n, const char *key)
{
	CLEANUP(selector_free) struct selector *selector = NULL;

	cr_assert_eq(
		selector_parse_fields(text, &selector), 0, "%s: %s", text, err_text(ERR_SYNTAX));
	cr_assert_eq(selector_count(selector), n, "%s", text);
	cr_assert(bytes_equal(selector_at(selector, 0)->key, bytes_str(key)), "%s: %.*s", text,
		BYTES_ARG(selector_at(selector, 0)->key));
}

Test(selector, keys_of_fields_are_paths_with_all_that_brackets_hold)
{
	assert_field_keys("c[type=Ready].status=False", 1, "c[type=Ready].status");
	assert_field_keys(
		"c[?(@.type==\"Ready\")].status!=False", 1, "c[?(@.type==\"Ready\")].status");
	assert_field_keys("c[?(@.a=='x],=')].b=1,z=2", 2, "c[?(@.a=='x],=')].b");
	assert_field_keys("a['b','c']=1", 1, "a['b','c']");
	assert_field_keys("a=x[1", 1, "a");
	assert_field_keys("a=x[1,b=2]", 2, "a");
}

Test(selector, field_errors_are_the_ones_of_the_api_server)
{
	assert_refused(selector_parse_fields, "a", "invalid selector: 'a'; can't understand 'a'");
	assert_refused(selector_parse_fields, "b=1,a!,c",
		"invalid selector: 'b=1,a!,c'; can't understand 'a!'");
	assert_refused(selector_parse_fields, "a=b=c",
		"invalid field selector: unescaped character in value: 61");
	assert_refused(selector_parse_fields, "a===b",
		"invalid field selector: unescaped character in value: 61");
	assert_refused(selector_parse_fields, "a=\\x",
		"invalid field selector: invalid escape sequence: \\x");
	assert_refused(selector_parse_fields, "a=\\\u00e4b",
		"invalid field selector: invalid escape sequence: \\\u00e4");
	assert_refused(selector_parse_fields, "a=b\\",
		"invalid field selector: invalid escape sequence: \\");
	assert_refused(selector_parse_fields, " a=b", "field label not supported:  a");
	assert_refused(selector_parse_fields, "=b", "field label not supported: ");
}

/* ---- matching ----------------------------------------------------------- */

static struct buf document;

static void put_document(const char *json)
{
	buf_reset(&document);
	body_put(json, &document);
}

static void set_up(void)
{
	document = BUF_INIT;
	put_document("{\"metadata\":{\"name\":\"web\",\"labels\":{\"app\":\"shop\",\"tier\":\"\","
		     "\"size\":\"10\",\"app.io/"
		     "x\":\"y\"}},\"spec\":{\"nodeName\":\"n,1\",\"replicas\":3,"
		     "\"paused\":true,\"ports\":[{\"port\":80},{\"port\":443}]},"
		     "\"status\":{\"succeeded\":2}}");
}

static void tear_down(void)
{
	buf_release(&document);
}

static int match(parse_fn *parse, const char *text)
{
	CLEANUP(selector_free) struct selector *selector = NULL;

	cr_assert_eq(parse(text, &selector), 0, "%s", text);
	int r = selector_match(selector, buf_bytes(&document));
	return r;
}

Test(selector, labels_match_as_on_the_server, .init = set_up, .fini = tear_down)
{
	static const char *const yes[] = {"", "app", "app=shop", "app in (shop,x)", "app!=x",
		"other!=x", "other notin (a,b)", "!other", "tier=", "tier", "tier in ()", "size>9",
		"size<11", "size>0", "app=shop,tier=,size>9,!other", "app.io/x=y", "app!="};
	static const char *const no[] = {"other", "app=x", "app in (x,y)", "app!=shop", "!app",
		"app=", "other=", "app notin (shop)", "size>10", "size<10", "app>1", "tier<5",
		"other>0", "app=shop,other", "tier!="};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		cr_assert_eq(match(selector_parse_labels, yes[i]), 1, "%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		cr_assert_eq(match(selector_parse_labels, no[i]), 0, "%s", no[i]);
}

Test(selector, objects_without_labels_match_what_needs_none, .init = set_up, .fini = tear_down)
{
	static const char *const documents[] = {"{}", "{\"metadata\":{}}", "{\"metadata\":null}",
		"{\"metadata\":{\"labels\":null}}", "{\"metadata\":{\"labels\":{}}}", "1"};

	for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
		put_document(documents[i]);
		cr_assert_eq(match(selector_parse_labels, ""), 1);
		cr_assert_eq(match(selector_parse_labels, "!a,b!=c"), 1);
		cr_assert_eq(match(selector_parse_labels, "a"), 0);
		cr_assert_eq(match(selector_parse_labels, "a="), 0);
	}
}

Test(selector, fields_match_by_their_text, .init = set_up, .fini = tear_down)
{
	static const char *const yes[] = {"", "metadata.name=web", "metadata.name!=x",
		"spec.nodeName=n\\,1", "spec.replicas=3", "spec.paused=true",
		"spec.none=", "spec.none!=x", "metadata.name=web,spec.replicas==3",
		"spec.ports[*].port=443", "spec.ports[1].port=443", "metadata.labels['app.io/x']=y",
		"spec.ports[*].port!=443", "spec.none[*].port!=443", "spec.ports="};
	static const char *const no[] = {"metadata.name=x", "metadata.name!=web", "spec.none=x",
		"spec.none!=", "spec.replicas=3.0", "metadata.name=web,spec.replicas=4",
		"spec.ports[0].port=443",
		"spec.ports[*].port!=80,spec.ports[*].port!=443,metadata.name=x"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		cr_assert_eq(match(selector_parse_fields, yes[i]), 1, "%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		cr_assert_eq(match(selector_parse_fields, no[i]), 0, "%s", no[i]);
}

Test(selector, comparisons_know_numbers_quantities_and_times, .init = set_up, .fini = tear_down)
{
	static const char *const yes[] = {"a>2", "a>=3", "a<=3", "a<3.5", "a>2999m",
		"big>9007199254740992", "memory>1Gi", "memory<=1536Mi", "memory<2G", "memory>1000",
		"ports[*].port>400", "ports[*].port<100", "a > 2", "t>2020-11-21", "t<2020-11-23",
		"t>=2020-11-22T10:00:00+02:00", "t<=2020-11-22T08:00:00Z", "t>now-36500d", "age>1m",
		"age>=300d", "age < 36500d", "status.replicas<1"};
	static const char *const no[] = {"a>3", "a<3", "none>0", "none<1", "none<=0", "b>0", "b<1",
		"text>0", "null<1", "map>0", "big>9007199254740993", "memory>1.5Gi",
		"ports[*].port>443", "t>2020-11-22T08:00:00Z", "t>1", "a>2020-11-22", "t>now",
		"age<1m", "age>36500d"};

	put_document("{\"kind\":\"ReplicationController\",\"apiVersion\":\"v1\","
		     "\"metadata\":{\"creationTimestamp\":\"2020-11-22T08:00:00Z\"},\"a\":3,"
		     "\"b\":true,\"big\":9007199254740993,\"text\":\"x\",\"null\":null,\"map\":{},"
		     "\"memory\":\"1536Mi\",\"ports\":[{\"port\":80},{\"port\":443}],"
		     "\"t\":\"2020-11-22T08:00:00Z\"}");
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		cr_assert_eq(match(selector_parse_query, yes[i]), 1, "%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		cr_assert_eq(match(selector_parse_query, no[i]), 0, "%s", no[i]);
}

Test(selector, only_comparisons_with_the_present_are_relative)
{
	static const struct {
		const char *text;
		bool compares, relative;
	} rows[] = {{"a=now", false, false}, {"a>1", true, false}, {"a>2026-11-22", true, false},
		{"a<now", true, true}, {"b=1,a>now-1h", true, true}, {"age>1h", true, true}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct selector *selector;

		cr_assert_eq(selector_parse_query(rows[i].text, &selector), 0);
		cr_assert_eq(selector_compares(selector), rows[i].compares, "%s", rows[i].text);
		cr_assert_eq(selector_is_relative(selector), rows[i].relative, "%s", rows[i].text);
		selector_free(&selector);
	}
}

Test(selector, labels_that_the_server_fills_in_have_their_default, .init = set_up,
	.fini = tear_down)
{
	cr_assert_eq(match(selector_parse_fields, "spec.hostNetwork=false"), 1);
	cr_assert_eq(match(selector_parse_fields, "spec.hostNetwork="), 0);
	cr_assert_eq(match(selector_parse_fields, "spec.unschedulable!=true"), 1);
	cr_assert_eq(match(selector_parse_fields, "spec.unschedulable=false"), 1);
	cr_assert_eq(match(selector_parse_fields, "status.replicas=0"), 1);
	cr_assert_eq(match(selector_parse_fields, "status.successful=2"), 1);
	put_document("{\"spec\":{\"hostNetwork\":true,\"unschedulable\":true},\"status\":{"
		     "\"replicas\":2}}");
	cr_assert_eq(
		match(selector_parse_fields, "spec.hostNetwork=true,spec.unschedulable=true"), 1);
	cr_assert_eq(match(selector_parse_fields, "spec.hostNetwork=false"), 0);
	cr_assert_eq(match(selector_parse_fields, "status.replicas=2,status.successful=0"), 1);
}

Test(selector, damaged_documents_are_reported, .init = set_up, .fini = tear_down)
{
	size_t whole = document.size;

	for (document.size = 0; document.size < 40; document.size++)
		cr_assert_eq(
			match(selector_parse_labels, "size=1"), ERR_CORRUPT, "%zu", document.size);
	for (document.size = 0; document.size < whole; document.size++)
		cr_assert_eq(match(selector_parse_fields, "status.succeeded=2"), ERR_CORRUPT, "%zu",
			document.size);
}
