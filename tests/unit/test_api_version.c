/* SPDX-License-Identifier: Apache-2.0 */
/* The resourceVersion in a forwarded answer, and whether its object is gone. */
#include <criterion/criterion.h>

#include "serve/api/api_version.h"

TestSuite(api_version, .timeout = 20);

/* Gives BODY in pieces of each size. */
static void reads(struct bytes body, bool protobuf, const char *rv, bool gone)
{
	const char *p = body.data;

	for (size_t step = 1; step <= body.size; step++) {
		struct api_version v = {.protobuf = protobuf};

		for (size_t i = 0; i < body.size; i += step)
			api_version_put(
				&v, BYTES(p + i, step < body.size - i ? step : body.size - i));
		cr_expect_str_eq(api_version_get(&v), rv, "%s, step %zu", p, step);
		cr_expect_eq(api_version_is_gone(&v), gone, "%s, step %zu", p, step);
		api_version_release(&v);
	}
}

static void json(const char *body, const char *rv, bool gone)
{
	reads(bytes_str(body), false, rv, gone);
}

#define GOING "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"deletionGracePeriodSeconds\":0"

Test(api_version, json_objects)
{
	json("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"12\"},\"spec\":{"
	     "}}",
		"12", false);
	json("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"12\"," GOING
	     "},\"spec\":{}}",
		"12", true);
	/* Custom resources have their members in the order of names. */
	json("{\"kind\":\"Odd\",\"metadata\":{" GOING
	     ",\"name\":\"a\",\"resourceVersion\":\"12\"}}",
		"12", true);
	json("{\"metadata\":{\"resourceVersion\":\"12\"," GOING ",\"finalizers\":[\"x/y\"]}}", "12",
		false);
	json("{\"metadata\":{" GOING ",\"finalizers\":[\"x/y\"],\"resourceVersion\":\"12\"}}", "12",
		false);
	/* A pod in its grace period still exists; a namespace has no such member. */
	json("{\"metadata\":{\"deletionTimestamp\":\"x\",\"deletionGracePeriodSeconds\":30,"
	     "\"resourceVersion\":\"12\"}}",
		"12", false);
	json("{\"metadata\":{\"deletionGracePeriodSeconds\": 0 "
	     ",\"deletionTimestamp\":\"x\",\"generation\":7,\"resourceVersion\":\"12\"}}",
		"12", true);
	json("{\"metadata\":{\"resourceVersion\":\"12\",\"deletionTimestamp\":\"x\"}}", "12", true);
	json("{\"metadata\":{\"deletionGracePeriodSeconds\":0,\"resourceVersion\":\"12\"}}", "12",
		false);
	json("{\"metadata\":{}}", "", false);
	json("{\"metadata\":{" GOING, "", false); /* finalizers may follow */
}

Test(api_version, json_that_only_looks_so)
{
	json("{\"spec\":{" GOING
	     ",\"resourceVersion\":\"1\"},\"metadata\":{\"resourceVersion\":\"12\"}}",
		"12", false);
	json("{\"metadata\":{\"labels\":{" GOING
	     "},\"annotations\":{\"finalizers\":\"x\",\"resourceVersion\":\"1\"},"
	     "\"resourceVersion\":\"12\"}}",
		"12", false);
	json("{\"metadata\":{\"ownerReferences\":[{" GOING
	     "}],\"name\":\"deletionTimestamp\",\"resourceVersion\":\"12\"}}",
		"12", false);
	json("{\"metadata\":{\"resourceVersion\":\"12\"},\"items\":[{\"metadata\":{"
	     "\"resourceVersion\":\"1\"," GOING "}}]}",
		"12", false);
	json("{\"metadata\":{\"annotations\":{\"finalizers\":\"x\"},\"resourceVersion\":"
	     "\"12\"," GOING "},\"status\":{\"finalizers\":[1]}}",
		"12", true);
}

Test(api_version, protobuf)
{
	/* Unknown{TypeMeta{v1, ConfigMap}, raw ConfigMap{ObjectMeta}} */
	reads(BYTES_LIT("k8s\0\x0a\x0f\x0a\x02v1\x12\x09"
			"ConfigMap\x12\x09\x0a\x07\x0a\x01"
			"a2\x02"
			"12"),
		true, "12", false);
	/* with a deletionTimestamp (9) and deletionGracePeriodSeconds (10), finalizers (14) */
	reads(BYTES_LIT("k8s\0\x0a\x0f\x0a\x02v1\x12\x09"
			"ConfigMap\x12\x0f\x0a\x0d\x0a\x01"
			"a2\x02"
			"12J\x02\x08\x01P\0"),
		true, "12", true);
	reads(BYTES_LIT("k8s\0\x0a\x0f\x0a\x02v1\x12\x09"
			"ConfigMap\x12\x0f\x0a\x0d\x0a\x01"
			"a2\x02"
			"12J\x02\x08\x01P\x1e"),
		true, "12", false);
	reads(BYTES_LIT("k8s\0\x0a\x0f\x0a\x02v1\x12\x09"
			"ConfigMap\x12\x12\x0a\x10\x0a\x01"
			"a2\x02"
			"12J\x02\x08\x01P\0r\x01x"),
		true, "12", false);
	/* A list's metadata has its version where an object has its generateName. */
	reads(BYTES_LIT("k8s\0\x0a\x13\x0a\x02v1\x12\x0d"
			"ConfigMapList\x12\x06\x0a\x04\x12\x02"
			"12"),
		true, "12", false);
}
