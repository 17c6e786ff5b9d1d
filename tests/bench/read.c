/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures reads of libkinf on one thread, per second of CPU, over a store of N synthetic pods: by
 * key, many keys in one call, by index, all in key order. Makes and shuffles keys and values
 * before, as the measurement of client-go does. Reads the first byte of each body to map its page.
 * "hold" reads everything once, prints "ready" and keeps its snapshot until stdin ends. The caller
 * measures its memory meanwhile. usage: read STORE N [hold]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/kinf.h"
#include "tests/bench/measure.h"
#include "tests/bench/pods.h"

#define SECONDS 1.5
#define RENEW   1000 /* gets from one snapshot */
#define FEED    "pods"

struct pod_key {
	char namespace_[POD_NAME_MAX], name[POD_NAME_MAX];
};

struct reading {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	struct pods pods;
	struct pod_key *keys;
	const char **joined; /* the same keys as "namespace/name" */
	uint64_t random;
	uint64_t sum; /* of the bytes read; keeps the compiler from dropping the reads */
};

static void check(struct reading *reading, int r, const char *what)
{
	if (r >= 0)
		return;
	(void)fprintf(stderr, "bench: %s: %s\n", what, kinf_error(reading->kinf));
	exit(1);
}

static void look(struct reading *reading, const struct kinf_object *object)
{
	reading->sum += *(const uint8_t *)object->body;
}

static void renew(struct reading *reading)
{
	check(reading, kinf_snapshot_renew(reading->snapshot), "snapshot");
}

static void make_keys(struct reading *reading)
{
	uint64_t n = reading->pods.n;

	reading->keys = calloc(n, sizeof(*reading->keys));
	must_true(reading->keys != NULL, "no memory for the keys");
	for (uint64_t i = 0; i < n; i++) {
		pod_namespace(&reading->pods, i, reading->keys[i].namespace_);
		pod_name(&reading->pods, i, reading->keys[i].name);
	}
	for (uint64_t i = n - 1; i > 0; i--) {
		uint64_t other = measure_random(&reading->random) % (i + 1);
		struct pod_key key = reading->keys[i];

		reading->keys[i] = reading->keys[other];
		reading->keys[other] = key;
	}
}

static void join_keys(struct reading *reading)
{
	uint64_t n = reading->pods.n;

	reading->joined = calloc(n, sizeof(*reading->joined));
	must_true(reading->joined != NULL, "no memory for the keys");
	for (uint64_t i = 0; i < n; i++) {
		char *key;

		must_true(asprintf(&key, "%s/%s", reading->keys[i].namespace_,
				  reading->keys[i].name) > 0,
			"no memory for the keys");
		reading->joined[i] = key;
	}
}

static int got(void *arg, size_t i, int result, const struct kinf_object *object)
{
	(void)i;
	must_true(result == KINF_FOUND, "get many: a pod is not there");
	look(arg, object);
	return 0;
}

/* Gets the RENEW keys from key FROM on in one call; returns the number of objects found. */
static uint64_t get_many(struct reading *reading, uint64_t from)
{
	uint64_t n = reading->pods.n, begin = from % n;
	uint64_t count = n - begin < RENEW ? n - begin : RENEW;

	check(reading,
		kinf_get_many(
			reading->snapshot, FEED, reading->joined + begin, count, got, reading),
		"get many");
	return count;
}

/* Makes COUNT gets from key FROM on; returns the number of objects found. */
static uint64_t get_some(struct reading *reading, uint64_t from, uint64_t count)
{
	struct kinf_object object;

	for (uint64_t i = 0; i < count; i++) {
		const struct pod_key *key = &reading->keys[(from + i) % reading->pods.n];
		int r = kinf_get(reading->snapshot, FEED, key->namespace_, key->name, &object);

		check(reading, r, "get");
		must_true(r == KINF_FOUND, "get: a pod is not there");
		look(reading, &object);
	}
	return count;
}

static uint64_t drain(struct reading *reading, struct kinf_listing *list)
{
	struct kinf_object object;
	uint64_t n = 0;
	int r;

	while ((r = kinf_list_next(list, &object)) == KINF_FOUND) {
		look(reading, &object);
		n++;
	}
	check(reading, r, "list");
	kinf_list_close(&list);
	return n;
}

static uint64_t by_index(struct reading *reading)
{
	struct kinf_listing *list;
	char value[32];

	(void)snprintf(value, sizeof(value), "node-%05" PRIu64,
		measure_random(&reading->random) % pods_nodes(&reading->pods));
	check(reading, kinf_by_index(reading->snapshot, FEED, "node", value, &list), "by index");
	return drain(reading, list);
}

static uint64_t list_all(struct reading *reading)
{
	struct kinf_query query = {.size = sizeof(query), .feed = FEED};
	struct kinf_listing *list;

	check(reading, kinf_list(reading->snapshot, &query, &list), "list");
	return drain(reading, list);
}

/* ---- the figures -------------------------------------------------------- */

static void measure_get(struct reading *reading, const char *name, uint64_t per_snapshot)
{
	struct measure measure;
	uint64_t n = 0;

	measure_begin(&measure);
	while (measure_cpu(&measure) < SECONDS)
		for (uint64_t i = 0; i < RENEW; i += per_snapshot) {
			renew(reading);
			n += get_some(reading, n, per_snapshot);
		}
	result_number(name, (double)n / measure_cpu(&measure));
}

static void measure_get_many(struct reading *reading)
{
	struct measure measure;
	uint64_t n = 0;

	measure_begin(&measure);
	while (measure_cpu(&measure) < SECONDS) {
		renew(reading);
		n += get_many(reading, n);
	}
	result_number("get_many_per_s", (double)n / measure_cpu(&measure));
}

static void measure_index(struct reading *reading)
{
	struct measure measure;
	uint64_t n = 0, calls = 0;

	measure_begin(&measure);
	for (; measure_cpu(&measure) < SECONDS; calls++) {
		renew(reading);
		n += by_index(reading);
	}
	must_true(n > calls, "by index: the index is empty");
	result_number("index_objects_per_s", (double)n / measure_cpu(&measure));
	result_number("index_objects_per_value", (double)n / (double)calls);
}

static void measure_list(struct reading *reading)
{
	struct measure measure;
	uint64_t n = 0;

	measure_begin(&measure);
	while (measure_cpu(&measure) < SECONDS) {
		renew(reading);
		uint64_t listed = list_all(reading);

		must_true(listed == reading->pods.n, "list: not all pods are there");
		n += listed;
	}
	result_number("list_objects_per_s", (double)n / measure_cpu(&measure));
}

static void hold(struct reading *reading)
{
	must_true(list_all(reading) == reading->pods.n, "list: not all pods are there");
	(void)puts("ready");
	must_true(fflush(stdout) == 0, "stdout");
	while (getchar() != EOF)
		continue;
}

int main(int argc, char **argv)
{
	struct reading reading = {.random = 4711};

	if (argc < 3) {
		(void)fputs("usage: read STORE N [hold]\n", stderr);
		return 2;
	}
	reading.pods.n = must_number(argv[2], 2, "N");
	check(&reading, kinf_open(argv[1], &reading.kinf), argv[1]);
	int r = kinf_snapshot_open(reading.kinf, &reading.snapshot);
	check(&reading, r, "snapshot");
	must_true(r == 0, "there is no index yet");
	if (argc > 3 && !strcmp(argv[3], "hold")) {
		hold(&reading);
	} else {
		make_keys(&reading);
		join_keys(&reading);
		(void)list_all(&reading); /* warm */
		(void)get_some(&reading, 0, reading.pods.n);
		result_begin();
		measure_get(&reading, "get_per_s", RENEW);
		measure_get(&reading, "get_renewed_per_s", 1);
		measure_get_many(&reading);
		measure_index(&reading);
		measure_list(&reading);
		result_number("looked", (double)(reading.sum % 256));
		result_end();
	}
	free(reading.keys);
	kinf_snapshot_close(&reading.snapshot);
	kinf_close(&reading.kinf);
	return 0;
}
