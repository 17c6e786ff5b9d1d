/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the API server's cluster is the one that the journal mirrors: asked at the start, after lost
 * connections and every five minutes (identity.h, and witness.h where that leaves a doubt). Until it is
 * known for the first time nothing may be read into the journal.
 *
 *	cluster_new(&options, &cluster);
 *	cluster_begin(cluster, recorder);	(whenever the journal is another one)
 *	for (;;) {
 *		http_poll(...);
 *		cluster_work(cluster);
 *		if (cluster_is_another(cluster)) begin a new journal;
 *		else if (cluster_is_known(cluster)) read;
 *	}
 */
#ifndef REFLECTOR_CLUSTER_CLUSTER_H
#define REFLECTOR_CLUSTER_CLUSTER_H

#include "common/stats.h"
#include "reflector/record/record.h"
#include "reflector/wire/http.h"

struct cluster;

struct cluster_options {
	struct http *http;
	const struct kubeconfig *config;
	struct stats *stats; /* its error says why nothing is known */
	uint64_t pause_max_ns; /* after failures, 1 s and more, up to this, and as much again at random */
};

/* OPTIONS' pointers are borrowed until cluster_free. 0, -ENOMEM. */
int cluster_new(const struct cluster_options *options, struct cluster **ret_cluster);
void cluster_free(struct cluster **cluster);

/* Another pause_max_ns, from the next failure on. */
void cluster_set_pause(struct cluster *cluster, uint64_t max_ns);

/* RECORDER's journal is the one in question, and nothing is known yet. */
void cluster_begin(struct cluster *cluster, struct recorder *recorder);

/* Asks when it is time. 0, or an error of memory or of the journal. */
int cluster_work(struct cluster *cluster);
/* When that is (monotonic ns); UINT64_MAX: an answer is being waited for. */
uint64_t cluster_until(const struct cluster *cluster);

/* The way to the server was lost: whatever answers next may be another one. */
void cluster_doubt(struct cluster *cluster);
/* What was written is lost: drops a question under way, and asks again with the next work. */
void cluster_again(struct cluster *cluster);

bool cluster_is_known(const struct cluster *cluster);
bool cluster_is_another(const struct cluster *cluster);

#endif
