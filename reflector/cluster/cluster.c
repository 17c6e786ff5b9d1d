/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/cluster/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/net/pace.h"
#include "reflector/record/recorder.h"

#define CLUSTER_MAGIC 0x434c5553u
#define FIRST_PAUSE   SECOND_NS
#define AGAIN_PAUSE   (300 * SECOND_NS)
#define CHECK_PAUSE   (10 * SECOND_NS)
#define ANSWER_NS     (32 * SECOND_NS)
#define ANSWER_MAX    ((size_t)1 << 20)

struct cluster {
	uint32_t magic;
	bool known, another;
	struct cluster_options options;
	struct recorder *recorder;
	struct fetch *question;    /* NULL: none runs */
	uint64_t next_ns;          /* monotonic: when to ask again */
	uint64_t pause_ns;         /* after the last failure; 0: the last answer was good */
	char obstacle[STATS_TEXT]; /* that failure */
};

/* ---- results ------------------------------------------------------------ */

static void cluster_answered(struct cluster *cluster)
{
	cluster->pause_ns = 0;
	cluster->obstacle[0] = '\0';
	stats_set_error(cluster->options.stats, "");
}

/* Asks again later. Logs only the first failure in a row. */
static void cluster_fail(struct cluster *cluster, int result)
{
	if (!cluster->pause_ns)
		LOG(cluster_unreachable, .server = http_server(cluster->options.http),
			.error = err_text(result));
	(void)snprintf(cluster->obstacle, sizeof(cluster->obstacle), "%s", err_text(result));
	stats_set_error(cluster->options.stats, cluster->obstacle);
	cluster->pause_ns = cluster->pause_ns ? 2 * cluster->pause_ns : FIRST_PAUSE;
	if (cluster->pause_ns > cluster->options.pause_max_ns)
		cluster->pause_ns = cluster->options.pause_max_ns;
	cluster->next_ns = proc_monotonic_ns() + pace_jitter(cluster->pause_ns);
}

/* ---- asking ------------------------------------------------------------- */

static int cluster_check_identity(struct cluster *cluster, const char *text)
{
	struct journal *journal = recorder_journal(cluster->recorder);
	struct journal_meta meta;
	int r = recorder_begin(cluster->recorder);

	if (r >= 0)
		r = journal_meta(journal, journal_txn(journal), &meta);
	if (r < 0)
		return recorder_fail(cluster->recorder, r);
	cluster->another = identity_is_other(meta.cluster, text);
	if (cluster->another) {
		LOG(cluster_replaced, .was = meta.cluster, .is = text);
	} else if (strcmp(meta.cluster, text) != 0 && identity_is_better(meta.cluster, text)) {
		r = recorder_changed(cluster->recorder, journal_set_cluster(journal, text));
		if (r < 0)
			return r;
	}
	if (!cluster->another && !cluster->known)
		LOG(cluster_identified, .server = http_server(cluster->options.http),
			.identity = text);
	cluster->known |= !cluster->another;
	cluster_answered(cluster);
	return 0;
}

static void cluster_on_answer(void *arg, const struct fetch_answer *answer)
{
	struct cluster *cluster = arg;
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	const char *unused;

	cluster->question = NULL;
	int r = identity_read(cluster->options.config, answer, &text);
	if (r >= 0) {
		cluster->next_ns = proc_monotonic_ns() + pace_jitter(AGAIN_PAUSE);
		r = cluster_check_identity(cluster, buf_cstr(&text));
	}
	/* An error of the journal sticks in the recorder; the loop handles it. */
	if (r < 0 && !recorder_error(cluster->recorder, &unused))
		cluster_fail(cluster, r);
}

int cluster_work(struct cluster *cluster)
{
	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	if (cluster->question || proc_monotonic_ns() < cluster->next_ns)
		return 0;
	return fetch_start(cluster->options.http,
		&(struct fetch_request){
			.path = IDENTITY_PATH,
			.limit = ANSWER_MAX,
			.total_ns = ANSWER_NS,
			.done = cluster_on_answer,
			.arg = cluster,
		},
		&cluster->question);
}

uint64_t cluster_until(const struct cluster *cluster)
{
	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	return cluster->question ? UINT64_MAX : cluster->next_ns;
}

void cluster_check_soon(struct cluster *cluster)
{
	uint64_t now = proc_monotonic_ns();

	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	if (cluster->next_ns > now + CHECK_PAUSE)
		cluster->next_ns = now + pace_jitter(SECOND_NS);
}

void cluster_retry(struct cluster *cluster)
{
	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	if (cluster->pause_ns)
		cluster->next_ns = 0;
}

void cluster_restart(struct cluster *cluster)
{
	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	fetch_cancel(&cluster->question);
	cluster->next_ns = 0;
}

bool cluster_is_known(const struct cluster *cluster)
{
	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	return cluster->known;
}

const char *cluster_obstacle(const struct cluster *cluster)
{
	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	return cluster->obstacle;
}

bool cluster_is_another(const struct cluster *cluster)
{
	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	return cluster->another;
}

/* ---- life --------------------------------------------------------------- */

void cluster_begin(struct cluster *cluster, struct recorder *recorder)
{
	cluster_restart(cluster);
	cluster->recorder = recorder;
	cluster->known = cluster->another = false;
}

int cluster_new(const struct cluster_options *options, struct cluster **ret_cluster)
{
	struct cluster *cluster = calloc(1, sizeof(*cluster));

	if (!cluster)
		return err_set(-ENOMEM, "the cluster");
	*cluster = (struct cluster){.magic = CLUSTER_MAGIC, .options = *options};
	*ret_cluster = cluster;
	return 0;
}

void cluster_set_pause(struct cluster *cluster, uint64_t max_ns)
{
	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	cluster->options.pause_max_ns = max_ns;
}

void cluster_free(struct cluster **cluster)
{
	struct cluster *c = *cluster;

	*cluster = NULL;
	if (!c)
		return;
	CHECK_OBJ(c, CLUSTER_MAGIC);
	fetch_cancel(&c->question);
	c->magic = 0;
	free(c);
}
