/* SPDX-License-Identifier: Apache-2.0 */
/* The expected bytes are a kube-apiserver's (1.37.2). */
#include "serve/api/api_protobuf.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

#define PARTIAL_TYPE \
	"6b3873000a270a0e6d6574612e6b38732e696f2f763112155061727469616c4f626a6563744d657461646174" \
	"61"
#define LIST_TYPE \
	"6b3873000a2b0a0e6d6574612e6b38732e696f2f763112195061727469616c4f626a6563744d657461646174" \
	"614c697374"
#define CONFIG_MAP \
	"0a99010a02633112001a037765622200" \
	"2a2438383531333839342d613836652d343931322d616136382d363363393661646164666330" \
	"3203323036380042" \
	"0808cf8ca4d80610008a01520a0e6b75626563746c2d637265617465120655706461746" \
	"51a0276312208" \
	"08cf8ca4d806100032084669656c647356313a1e0a1c7b22663a64617461223a7b222e223a7b7d2c22663a61" \
	"223a7b7d7d7d4200"

static const char config_map[] =
	"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"c1\",\"namespace\":"
	"\"web\","
	"\"uid\":\"88513894-a86e-4912-aa68-63c96adadfc0\",\"resourceVersion\":\"206\","
	"\"creationTimestamp\":\"2026-11-27T04:25:51Z\","
	"\"managedFields\":[{\"manager\":\"kubectl-create\",\"operation\":\"Update\","
	"\"apiVersion\":\"v1\","
	"\"time\":\"2026-11-27T04:25:51Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{"
	"\".\":{},\"f:a\":{}}}}]},"
	"\"data\":{\"a\":\"b\"}}";

static void check(const struct buf *out, const char *hex)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;

	for (size_t i = 0; i < out->size; i++)
		buf_printf(&text, "%02x", out->data[i]);
	cr_assert_str_eq(buf_cstr(&text), hex);
}

Test(api_protobuf, an_object_is_its_metadata_in_an_envelope)
{
	CLEANUP(buf_release) struct buf body = body_of(config_map), out = BUF_INIT;

	cr_assert_eq(api_protobuf_object(buf_bytes(&body), BYTES_NONE, &out), 0);
	check(&out, PARTIAL_TYPE "129c01" CONFIG_MAP "1a002200");
}

Test(api_protobuf, a_list_begins_with_the_size_of_its_items)
{
	CLEANUP(buf_release) struct buf body = body_of(config_map), item = BUF_INIT, out = BUF_INIT;

	cr_assert_eq(api_protobuf_item(buf_bytes(&body), &item), 0);
	cr_assert_eq(api_protobuf_begin(&(struct api_page){"562", "", 0, item.size}, &out), 0);
	cr_assert_eq(api_protobuf_item(buf_bytes(&body), &out), 0);
	cr_assert_eq(api_protobuf_end(&out), 0);
	check(&out, LIST_TYPE "12aa01"
			      "0a090a0012033536321a00"
			      "129c01" CONFIG_MAP "1a002200");
}

Test(api_protobuf, events_are_frames_with_their_length)
{
	CLEANUP(buf_release) struct buf body = body_of(config_map), out = BUF_INIT;
	CLEANUP(buf_release)
	struct buf end =
		body_of("{\"metadata\":{\"resourceVersion\":\"628\",\"annotations\":{\"k8s."
			"io/initial-events-end\":\"true\"}}}");

	cr_assert_eq(api_protobuf_event("ADDED", buf_bytes(&body), BYTES_NONE, &out), 0);
	check(&out, "000000dd"
		    "0a054144444544"
		    "12d301"
		    "0ad001" PARTIAL_TYPE "129c01" CONFIG_MAP "1a002200");
	buf_reset(&out);
	cr_assert_eq(api_protobuf_event("BOOKMARK", buf_bytes(&end), BYTES_NONE, &out), 0);
	check(&out, "00000079"
		    "0a08424f4f4b4d41524b"
		    "126d"
		    "0a6b" PARTIAL_TYPE "1238"
		    "0a360a0012001a0022002a003203363238380042006221"
		    "0a196b38732e696f2f696e697469616c2d6576656e74732d656e64120474727565"
		    "1a002200");
	/* A deletion bears the version of the change. */
	buf_reset(&out);
	cr_assert_eq(api_protobuf_event("DELETED", buf_bytes(&end), BYTES_LIT("7"), &out), 0);
	cr_assert_neq(memmem(out.data, out.size, "2\0017", 3), NULL);
}

Test(api_protobuf, a_watch_that_is_gone_ends_with_a_status)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(api_status_release) struct api_status status = API_STATUS_INIT;

	(void)api_status_expired(&status, "too old resource version: 1 (252)");
	cr_assert_eq(api_protobuf_error(&status, &out), 0);
	check(&out, "00000063"
		    "0a054552524f52"
		    "125a"
		    "0a58"
		    "6b3873000a0c0a02763112065374617475731240"
		    "0a060a0012001a00"
		    "12074661696c757265"
		    "1a21746f6f206f6c64207265736f757263652076657273696f6e3a20312028323532292207"
		    "45787069726564309a03"
		    "1a002200");
	buf_reset(&out);
	(void)api_status_no_object(&status, "apps", "deployments", "d");
	status.retry_after = 1;
	cr_assert_eq(api_protobuf_error(&status, &out), 0);
	cr_assert_neq(memmem(out.data, out.size,
			      "\x2a\x1a\n\1d\x12\4apps\x1a\13deployments\x28\1\x32\0", 28),
		NULL);
}

Test(api_protobuf, what_is_absent_or_of_another_type_is_left_out)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(buf_release)
	struct buf body =
		body_of("{\"metadata\":{\"name\":7,\"generation\":\"x\","
			"\"creationTimestamp\":null,\"deletionTimestamp\":null,"
			"\"deletionGracePeriodSeconds\":0,\"labels\":{\"a\":1,\"b\":\"c\"}"
			",\"finalizers\":[\"f\",{}],"
			"\"ownerReferences\":[{\"kind\":\"K\",\"controller\":false},3],"
			"\"managedFields\":\"x\",\"unknown\":{\"a\":[]}}}");

	cr_assert_eq(api_protobuf_object(buf_bytes(&body), BYTES_NONE, &out), 0);
	check(&out, PARTIAL_TYPE "122c"
				 "0a2a"
				 "0a0012001a0022002a00320038004200"
				 "5000"
				 "5a060a0162120163"
				 "6a0b"
				 "0a014b1a0022002a00"
				 "3000"
				 "720166"
				 "1a002200");
	CLEANUP(buf_release) struct buf bare = body_of("{\"a\":1}");
	buf_reset(&out);
	cr_assert_eq(api_protobuf_object(buf_bytes(&bare), BYTES_NONE, &out), 0);
	check(&out, PARTIAL_TYPE "1212"
				 "0a10"
				 "0a0012001a0022002a00320038004200"
				 "1a002200");
}

Test(api_protobuf, damage_leaves_nothing)
{
	CLEANUP(buf_release) struct buf body = body_of(config_map), out = BUF_INIT;

	buf_str(&out, "before");
	for (size_t size = 1; size < body.size; size++) {
		int r = api_protobuf_event("ADDED", BYTES(body.data, size), BYTES_NONE, &out);

		cr_assert(r <= 0);
		if (r < 0)
			cr_assert_eq(out.size, 6, "%zu", size);
		else
			buf_truncate(&out, 6);
	}
}
