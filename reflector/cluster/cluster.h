/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that the API server's cluster is the journal's: at the start, after lost connections and
 * every five minutes. Before the first result nothing may be read into the journal.
 *
 *	cluster_new(&options, &cluster);
 *	cluster_begin(cluster, recorder);	(for each new journal)
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
#include "reflector/net/fetch.h"
#include "reflector/record/record.h"

struct cluster;

struct cluster_options {
	struct http *http;
	const struct kubeconfig *config;
	struct stats *stats;   /* gets the error while the cluster can't be identified */
	uint64_t pause_max_ns; /* longest pause after failures; as much again is added at random */
};

/* Borrows OPTIONS' pointers until cluster_free. Returns: 0, -ENOMEM. */
int cluster_new(const struct cluster_options *options, struct cluster **ret_cluster);
void cluster_free(struct cluster **cluster);

/* Sets pause_max_ns, from the next failure on. */
void cluster_set_pause(struct cluster *cluster, uint64_t max_ns);

/* Makes RECORDER's journal the one to compare with; the cluster is unknown again. */
void cluster_begin(struct cluster *cluster, struct recorder *recorder);

/* Asks the server when it is time to. Returns: 0, -ENOMEM, ERR_UNSUPPORTED. */
int cluster_work(struct cluster *cluster);
/* Returns: when it is time to (monotonic ns); UINT64_MAX while a request runs. */
uint64_t cluster_until(const struct cluster *cluster);

/* Makes the next check come soon: a connection was lost, and another server may answer next. */
void cluster_check_soon(struct cluster *cluster);
/* Ends the pause after a failed check: the server answers again. */
void cluster_retry(struct cluster *cluster);
/* Drops a running check and begins again with the next cluster_work: a failed commit lost its
 * result. */
void cluster_restart(struct cluster *cluster);

bool cluster_is_known(const struct cluster *cluster);
/* Returns why the last question failed, "" if it did not. */
const char *cluster_obstacle(const struct cluster *cluster);
bool cluster_is_another(const struct cluster *cluster);

/* ---- identity.c --------------------------------------------------------- */

/*
 * The identity of the API server's cluster, to notice another cluster at the same URL: "uid:<uid of
 * the namespace kube-system>" if the reflector may read it, else "server:<url> ca:<hash of the
 * CA>". Any other answer (unreachable, 5xx, 429) is an error: an identity is never guessed, since
 * another one discards the journal.
 *
 * Two uids tell two clusters apart, and so do two addresses or CAs: of an account without the right
 * to read the namespace, a rotated CA begins a new journal. A uid and an address can't be compared.
 * They count as one cluster, since a starting API server refuses the namespace for a moment.
 */
#define IDENTITY_PATH "/api/v1/namespaces/kube-system"

/* Appends the identity to TEXT as ANSWER to IDENTITY_PATH has it, of the server of CONFIG. Returns:
 * 0; an error with its sentence. */
int identity_read(
	const struct kubeconfig *config, const struct fetch_answer *answer, struct buf *text);

/* Returns: whether IS is of another cluster than the journal's identity WAS; "": there is none. */
bool identity_is_other(const char *was, const char *is);

/* Returns: whether the journal is to keep IS instead of WAS, both of one cluster: an address never
 * replaces a uid. */
bool identity_is_better(const char *was, const char *is);

#endif
