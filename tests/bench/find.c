/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the time of libkinf's queries over a store of N synthetic pods: all pods of a node by
 * index, a list with a label selector, and pages of 100 in the order of a field, with an index of
 * the field and without. Each query uses a renewed snapshot and is timed from the call to the last
 * object. usage: find STORE N
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/proc.h"
#include "reader/kinf.h"
#include "tests/bench/measure.h"
#include "tests/bench/pods.h"

#define SECONDS     1.5
#define SAMPLES_MAX 20000
#define FEED        "pods"
#define PAGE        100

struct finding {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	struct pods pods;
	uint64_t random, sum;
	uint64_t samples[SAMPLES_MAX];
	char *token; /* continue token of the sorted walk; NULL: the first page is next */
};

static void check(struct finding *finding, int r, const char *what)
{
	if (r == 0)
		return;
	(void)fprintf(stderr, "bench: %s: %s\n", what,
		r < 0 ? kinf_error(finding->kinf) : kinf_strerror(r));
	exit(1);
}

/* Lists, reads each object, and keeps the token of the next page. */
static uint64_t drain(struct finding *finding, const struct kinf_query *query)
{
	struct kinf_object object;
	struct kinf_listing *list;
	uint64_t n = 0;
	int r;

	check(finding, kinf_list(finding->snapshot, query, &list), "list");
	while ((r = kinf_list_next(list, &object)) == KINF_FOUND) {
		finding->sum += *(const uint8_t *)object.body;
		n++;
	}
	must_true(r == KINF_END, "list: it broke off");
	const char *token = kinf_list_continue(list);
	char *copy = token ? strdup(token) : NULL;
	must_true(!token || copy, "no memory");
	free(finding->token);
	finding->token = copy;
	kinf_list_close(&list);
	return n;
}

static uint64_t by_index(struct finding *finding)
{
	char value[32];
	struct kinf_term term = {"node", value};
	struct kinf_query query = {
		.size = sizeof(query), .feed = FEED, .terms = &term, .n_terms = 1};

	(void)snprintf(value, sizeof(value), "node-%05" PRIu64,
		measure_random(&finding->random) % pods_nodes(&finding->pods));
	return drain(finding, &query);
}

static uint64_t by_selector(struct finding *finding)
{
	char selector[64];
	struct kinf_query query = {.size = sizeof(query), .feed = FEED, .label_selector = selector};

	(void)snprintf(selector, sizeof(selector),
		"app=shop-%" PRIu64 ",tier in (frontend,backend)",
		measure_random(&finding->random) % finding->pods.n / PODS_PER_APP);
	return drain(finding, &query);
}

/* Reads the next page of a walk, and begins again after its end. */
static uint64_t sorted_page(struct finding *finding, const char *path)
{
	struct kinf_query query = {.size = sizeof(query),
		.feed = FEED,
		.limit = PAGE,
		.sort_by = path,
		.continue_token = finding->token};

	return drain(finding, &query);
}

static uint64_t by_order(struct finding *finding)
{
	return sorted_page(finding, "spec.nodeName");
}

static uint64_t by_scan(struct finding *finding)
{
	return sorted_page(finding, "metadata.name");
}

static void measure_calls(struct finding *finding, const char *name, uint64_t most,
	uint64_t (*call)(struct finding *finding))
{
	struct measure measure;
	uint64_t n = 0, objects = 0;
	char text[64];

	free(finding->token);
	finding->token = NULL;
	measure_begin(&measure);
	while (n < most && (n < 10 || measure_wall(&measure) < SECONDS)) {
		uint64_t begin = proc_monotonic_ns();

		check(finding, kinf_snapshot_renew(finding->snapshot), "snapshot");
		objects += call(finding);
		finding->samples[n++] = proc_monotonic_ns() - begin;
	}
	must_true(objects > 0, name);
	result_samples(name, finding->samples, n);
	(void)snprintf(text, sizeof(text), "%s_objects", name);
	result_number(text, (double)objects / (double)n);
}

int main(int argc, char **argv)
{
	static struct finding finding = {.random = 4711};

	if (argc < 3) {
		(void)fputs("usage: find STORE N\n", stderr);
		return 2;
	}
	finding.pods.n = must_number(argv[2], 2 * PAGE, "N");
	check(&finding, kinf_open(argv[1], &finding.kinf), argv[1]);
	check(&finding, kinf_snapshot_open(finding.kinf, &finding.snapshot), "snapshot");
	struct kinf_query all = {.size = sizeof(all), .feed = FEED};
	must_true(
		drain(&finding, &all) == finding.pods.n, "list: not all pods are there"); /* warm */

	result_begin();
	measure_calls(&finding, "by_index", SAMPLES_MAX, by_index);
	measure_calls(&finding, "selector", SAMPLES_MAX, by_selector);
	measure_calls(&finding, "sorted_page", SAMPLES_MAX, by_order);
	measure_calls(&finding, "sorted_scan", 20, by_scan);
	result_number("looked", (double)(finding.sum % 256));
	result_end();
	free(finding.token);
	kinf_snapshot_close(&finding.snapshot);
	kinf_close(&finding.kinf);
	return 0;
}
