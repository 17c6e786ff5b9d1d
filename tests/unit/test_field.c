/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/field.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

static struct bytes texts[8];
static size_t n_texts;
static char kept[8][64];

static int keep(void *arg, struct bytes text)
{
	(void)arg;
	cr_assert_lt(n_texts, 8);
	cr_assert_lt(text.size, sizeof(kept[0]));
	if (text.size)
		memcpy(kept[n_texts], text.data, text.size);
	texts[n_texts] = BYTES(kept[n_texts], text.size);
	n_texts++;
	return 0;
}

/* The field's texts, joined by '|'. */
static const char *read_of(const char *json, const char *name)
{
	static char joined[256];
	CLEANUP(buf_release) struct buf document = body_of(json);
	CLEANUP(field_free) struct field *field = NULL;
	size_t size = 0;

	cr_assert_eq(field_parse(bytes_str(name), &field), 0);
	n_texts = 0;
	cr_assert_eq(field_read(field, buf_bytes(&document), keep, NULL), 0);
	for (size_t i = 0; i < n_texts; i++)
		size += (size_t)snprintf(joined + size, sizeof(joined) - size, "%s%.*s",
			i ? "|" : "", BYTES_ARG(texts[i]));
	field_free(&field);
	return joined;
}

#define POD   "{\"kind\":\"Pod\",\"apiVersion\":\"v1\","
#define EVENT "{\"kind\":\"Event\",\"apiVersion\":\"v1\","

static void assert_reads(const char *json, const char *name, const char *wanted)
{
	cr_assert_str_eq(
		read_of(json, name), wanted, "%s of %s: %s", name, json, read_of(json, name));
	cr_assert_gt(n_texts, 0);
}

Test(field, any_path_is_one_and_absence_is_empty)
{
	const char *pod = POD "\"spec\":{\"a\":[{\"b\":1},{\"b\":\"x\"}],\"c\":\"\",\"d\":true}}";

	assert_reads(pod, "spec.a[*].b", "1|x");
	assert_reads(pod, "spec.a[1].b", "x");
	assert_reads(pod, "spec.c", "");
	assert_reads(pod, "spec.d", "true");
	assert_reads(pod, "spec.a", "");
	assert_reads(pod, "spec.nothing[*].b", "");
	assert_reads(pod, "metadata.labels['app.io/x']", "");
}

Test(field, labels_have_the_default_of_their_kind)
{
	assert_reads(POD "\"spec\":{}}", "spec.hostNetwork", "false");
	assert_reads(POD "\"spec\":{\"hostNetwork\":true}}", "spec.hostNetwork", "true");
	assert_reads("{\"kind\":\"Node\",\"apiVersion\":\"v1\"}", "spec.unschedulable", "false");
	assert_reads("{\"kind\":\"ReplicationController\",\"apiVersion\":\"v1\"}",
		"status.replicas", "0");
	assert_reads("{\"kind\":\"Job\",\"apiVersion\":\"batch/v1\",\"status\":{\"succeeded\":2}}",
		"status.successful", "2");
	assert_reads("{\"kind\":\"Job\",\"apiVersion\":\"batch/v1\"}", "status.successful", "0");
}

Test(field, labels_are_other_names)
{
	assert_reads(POD "\"spec\":{\"nodeName\":\"n1\"}}", "spec.host", "n1");
	assert_reads(POD "\"spec\":{}}", "spec.host", "");
	assert_reads(EVENT "\"source\":{\"component\":\"kubelet\"},"
			   "\"reportingComponent\":\"other\"}",
		"source", "kubelet");
	assert_reads(EVENT "\"source\":{\"component\":\"\"},\"reportingComponent\":\"other\"}",
		"source", "other");
	assert_reads(EVENT "\"source\":{}}", "source", "");
	assert_reads("{\"kind\":\"Event\",\"apiVersion\":\"events.k8s.io/v1\","
		     "\"deprecatedSource\":{},\"reportingController\":\"c\"}",
		"source", "c");
}

Test(field, labels_are_those_of_their_kind_only)
{
	const char *other = "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\","
			    "\"source\":\"s\",\"spec\":{\"host\":\"h\"}}";

	assert_reads(other, "spec.hostNetwork", "");
	assert_reads(other, "status.replicas", "");
	assert_reads(other, "spec.host", "h");
	assert_reads(other, "source", "s");
	assert_reads(
		"{\"kind\":\"Job\",\"apiVersion\":\"example.com/v1\"}", "status.successful", "");
	assert_reads("{\"kind\":\"Pod\"}", "spec.hostNetwork", "");
	/* Items of a list have no kind: the list has. */
	assert_reads("{\"spec\":{\"nodeName\":\"n1\"}}", "spec.host", "n1");
}

Test(field, damage_and_bad_names_are_told)
{
	CLEANUP(field_free) struct field *field = NULL;

	cr_assert_eq(field_parse(BYTES_LIT("a[[b"), &field), ERR_SYNTAX);
	cr_assert(strstr(err_text(ERR_SYNTAX), "field path 'a[[b', character 3"));
	cr_assert_null(field);
	cr_assert_eq(field_parse(BYTES_LIT("source"), &field), 0);
	cr_assert(field_is_label(field));
	cr_assert_eq(field_read(field, BYTES("\x82\xa4kin", 5), keep, NULL), ERR_CORRUPT);
	field_free(&field);
	cr_assert_eq(field_parse(BYTES_LIT("spec.nodeName"), &field), 0);
	cr_assert_not(field_is_label(field));
}
