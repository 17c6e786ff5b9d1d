/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic pods, as an API server would send them. The text of a pod depends only on its number,
 * in every run and program. With PODS_INDEXES each pod has 15 index entries: namespace, two for
 * each of five labels, node, owner, two images.
 */
#ifndef TESTS_BENCH_PODS_H
#define TESTS_BENCH_PODS_H

#include "common/buf.h"

#define PODS_INDEXES \
	"      node: spec.nodeName\n" \
	"      owner: metadata.ownerReferences[*].uid\n" \
	"      image: spec.containers[*].image\n"
#define PODS_ENTRIES  15  /* of each pod */
#define PODS_PER_NODE 112 /* on average: client-go was measured with 100 to 125 a value */
#define PODS_PER_APP  10  /* pods of one owner, with the same labels */

struct pods {
	uint64_t n;
	bool small;  /* about 1.2 kB of JSON instead of about 6 kB */
	bool moving; /* a new version has other values in 4 of the 15 entries; else in none */
};

#define POD_NAME_MAX 64

/* Ascending numbers are in key order. */
void pod_namespace(const struct pods *pods, uint64_t number, char name[POD_NAME_MAX]);
void pod_name(const struct pods *pods, uint64_t number, char name[POD_NAME_MAX]);
uint64_t pods_nodes(const struct pods *pods);

/* Appends pod NUMBER in its state VERSION (from 1), also its resourceVersion. MARK: an annotation's
 * text, NULL: none. */
void pod_json(const struct pods *pods, uint64_t number, uint64_t version, const char *mark,
	struct buf *out);

#endif
