/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of descriptions; whole ones are compared with kubectl's in
 * tests/scenario/test_describe.py. */
#include "common/bytes.h"
#include "print/describe/describe_internal.h"
#include "print/describe/describe.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

static void expect_aligned(const char *text, const char *wanted)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;

	cr_assert_eq(tabstops_put(bytes_str(text), &out), 0);
	cr_assert_str_eq(buf_cstr(&out), wanted);
}

Test(describe, cells_in_consecutive_lines_have_one_width)
{
	expect_aligned("", "");
	expect_aligned("a\n", "a\n");
	expect_aligned("a\tb\nlonger\tc\n", "a       b\nlonger  c\n");
	expect_aligned("a\tb\nplain\nlonger\tc\n", "a  b\nplain\nlonger  c\n");
	expect_aligned("a\t\n\tb\n", "a  \n   b\n");
	expect_aligned("a\tbb\tc\nd\te\n", "a  bb  c\nd  e\n");
	expect_aligned("a\tb\tc\nd\teee\nf\tg\th\n", "a  b  c\nd  eee\nf  g  h\n");
	expect_aligned("\xc3\xa4\tb\ncc\td\n", "\xc3\xa4   b\ncc  d\n");
	expect_aligned("no end\tx", "no end  x\n");
	expect_aligned("\x1b[2J\tx\n", "^[[2J  x\n");
}

Test(describe, more_tabs_than_columns_do_no_harm)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	CLEANUP(buf_release) struct buf out = BUF_INIT;

	for (int i = 0; i < 100; i++)
		buf_str(&text, "x\t");
	buf_str(&text, "\ny\t\n");
	cr_assert_eq(tabstops_put(buf_bytes(&text), &out), 0);
	cr_assert_eq(strncmp(buf_cstr(&out), "x  x  x", 7), 0);
}

static const char *sum_of(const char *const *texts, size_t n, struct buf *out)
{
	struct amount sum = {0}, one;

	for (size_t i = 0; i < n; i++) {
		cr_assert(amount_parse(bytes_str(texts[i]), &one), "%s", texts[i]);
		amount_add(&sum, &one);
	}
	buf_reset(out);
	amount_put(&sum, out);
	return buf_cstr(out);
}

Test(describe, sums_of_quantities_have_the_form_of_the_first)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	static const struct {
		const char *texts[3];
		size_t n;
		const char *sum;
	} tries[] = {
		{{"100m", "250m"}, 2, "350m"},
		{{"500m", "0.5"}, 2, "1"},
		{{"0", "1Gi"}, 2, "1Gi"},
		{{"1Gi", "512Mi"}, 2, "1536Mi"},
		{{"1Gi", "1000"}, 2, "1073742824"},
		{{"1M", "24k"}, 2, "1024k"},
		{{"1e3", "1"}, 2, "1001"},
		{{"2Ki", "100m"}, 2, "2048100m"},
		{{"1", "2", "3"}, 3, "6"},
		{{"0"}, 1, "0"},
		{{"1n"}, 1, "1m"},
		{{"8E", "8E"}, 2, "9223372036854775807m"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(tries); i++)
		cr_assert_str_eq(sum_of(tries[i].texts, tries[i].n, &out), tries[i].sum, "%s",
			tries[i].texts[0]);
	struct amount one;
	cr_assert_not(amount_parse(BYTES_LIT("much"), &one));
	cr_assert_not(amount_parse(BYTES_LIT(""), &one));
}

Test(describe, shares_are_whole_hundredths)
{
	struct amount part = {.milli = 1999}, whole = {.milli = 100000}, none = {0};

	cr_assert_eq(amount_percent(&part, &whole), 1);
	cr_assert_eq(amount_percent(&part, &none), 0);
	amount_max(&part, &whole);
	cr_assert_eq(amount_percent(&part, &whole), 100);
}

/* Describes JSON as an object of RESOURCE. */
static const char *describe_json(const char *resource, const char *json, struct buf *out)
{
	CLEANUP(buf_release) struct buf body = body_of(json);
	const struct describe_object object = {.resource = resource,
		.body = buf_bytes(&body),
		.now_ns = 1767323045ull * 1000000000};
	buf_reset(out);
	cr_assert_eq(describe_put(&object, out), 0);
	return buf_cstr(out);
}

Test(describe, an_object_without_a_layout_is_described_field_by_field)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	const char *text = describe_json("widgets.example.com",
		"{\"kind\":\"W\",\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"u\","
		"\"managedFields\":[1]},\"spec\":{\"podCIDR\":\"x\",\"apiURL\":null,\"hostIP\":"
		"\"1\",\"a_b\":[1,{\"c\":"
		"true}],\"lastTransitionTime\":2.5,"
		"\"l\":[[1,2],[]],\"podCIDRs\":0,\"HTTPCode\":0,\"kubeAPIServer\":0}}",
		&out);

	cr_assert_str_eq(text,
		"Name:         a\nNamespace:    b\nLabels:       <none>\nAnnotations:  "
		"<none>\nKind:         W\n"
		"Metadata:\n  UID:  u\nSpec:\n  HTTPCode:  0\n  a_b:\n    1\n    C:             "
		"true\n"
		"  API URL:         <nil>\n  Host IP:         1\n  Kube APIServer:  0\n  L:\n"
		"    [1 2]\n    []\n"
		"  Last Transition Time:  2.5\n  Pod CIDR:              x\n"
		"  Pod CIDRs:             0\n");
}

static void expect_lines(const char *resource, const char *json, const char *lines)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	const char *text = describe_json(resource, json, &out);

	cr_assert(strstr(text, lines), "%s", text);
}

Test(describe, variables_have_the_amounts_of_the_container)
{
#define REF(name, ref) \
	"{\"name\":\"" name "\",\"valueFrom\":{\"resourceFieldRef\":{\"resource\":" ref "}}}"
	expect_lines("pods",
		"{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{\"memory\":"
		"\"1Gi\"},\"requests\":{\"cpu\":\"1500m\",\"memory\":\"1500Ki\"}},\"env\":[" REF(
			"CPUS", "\"limits.cpu\"") "," REF("MEMORY",
			"\"limits.memory\"") "," REF("UP",
			"\"requests.cpu\",\"divisor\":\"0\"") "," REF("MILLI",
			"\"requests.cpu\",\"divisor\":\"1m\"") "," REF("MI",
			"\"requests.memory\",\"divisor\":\"1Mi\"") "," REF("NONE",
			"\"limits.ephemeral-storage\"") "]}]}}",
		"      CPUS:      node allocatable (limits.cpu)\n"
		"      MEMORY:    1073741824 (limits.memory)\n"
		"      UP:        2 (requests.cpu)\n"
		"      MILLI:     1500 (requests.cpu)\n"
		"      MI:        2 (requests.memory)\n"
		"      NONE:      0 (limits.ephemeral-storage)\n");
#undef REF
}

Test(describe, the_path_of_a_probe_is_escaped_as_kubectls)
{
	expect_lines("pods",
		"{\"spec\":{\"containers\":[{\"name\":\"a\",\"livenessProbe\":{\"httpGet\":{"
		"\"path\":\"/a b?c=1&d%\",\"port\":80,\"scheme\":\"HTTP\"}}}]}}",
		" http-get http://:80/a%20b%3Fc=1&d%25 ");
}

/* The first map of the spec was the source: the capacity. */
Test(describe, volumes_have_their_source)
{
	expect_lines("persistentvolumes",
		"{\"spec\":{\"capacity\":{\"storage\":\"1Gi\"},\"claimRef\":{\"name\":\"c\"},"
		"\"nodeAffinity\":{},\"flexVolume\":{\"driver\":\"d\"}}}",
		"Source:\n    Type:    flexVolume\n    Driver:  d\n");
	expect_lines("persistentvolumes",
		"{\"spec\":{\"capacity\":{\"storage\":\"1Gi\"},\"iscsi\":{\"targetPortal\":"
		"\"1.2.3.4:3260\",\"iqn\":\"iqn.2001-04.com:x\",\"iscsiInterface\":\"default\","
		"\"portals\":[\"1.2.3.5:3260\"]}}}",
		"    TargetPortal:       1.2.3.4:3260\n"
		"    IQN:                iqn.2001-04.com:x\n"
		"    Lun:                0\n"
		"    ISCSIInterface      default\n"
		"    FSType:             \n"
		"    ReadOnly:           false\n"
		"    Portals:            [1.2.3.5:3260]\n"
		"    DiscoveryCHAPAuth:  false\n"
		"    SessionCHAPAuth:    false\n"
		"    SecretRef:          <nil>\n"
		"    InitiatorName:      <none>\n");
	expect_lines("statefulsets.apps",
		"{\"spec\":{\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"v\","
		"\"annotations\":{"
		"\"volume.beta.kubernetes.io/storage-class\":\"slow\"}}}]}}",
		"  StorageClass:  slow\n");
}
