/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/cluster/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/record/batch.h"
#include "reflector/cluster/identity.h"
#include "reflector/wire/pace.h"
#include "reflector/cluster/witness.h"

#define CLUSTER_MAGIC 0x434c5553u
#define SECOND        1000000000ull
#define FIRST_PAUSE   SECOND
#define AGAIN_PAUSE   (300 * SECOND)
#define DOUBT_PAUSE   (10 * SECOND)

struct cluster {
	uint32_t magic;
	bool known, another;
	struct cluster_options options;
	struct recorder *recorder;
	struct identity *identity;
	struct witness *witness;
	char text[sizeof(((struct journal_meta *)0)->cluster)]; /* while the witness is asked */
	enum identity_relation doubt;                           /* what it is asked about */
	uint64_t next_ns, pause_ns; /* no pause: the last answer was one */
};

/* ---- what is found ---- */

static int note(struct cluster *cluster, const char *text)
{
	int r = journal_set_cluster(recorder_journal(cluster->recorder), text);

	if (r < 0)
		return recorder_fail(cluster->recorder, r);
	recorder_changed(cluster->recorder);
	return 0;
}

/* The question is answered, whatever it took: nothing was in the way. */
static void answered(struct cluster *cluster)
{
	cluster->pause_ns = 0;
	stats_set_error(cluster->options.stats, "");
}

static int is_ours(struct cluster *cluster, const char *was, const char *text)
{
	int r = strcmp(was, text) != 0 && identity_is_better(was, text) ? note(cluster, text) : 0;

	if (r < 0)
		return r;
	if (!cluster->known)
		LOG(cluster_identified, .server = http_server(cluster->options.http), .identity = text);
	cluster->known = true;
	answered(cluster);
	return 0;
}

static void is_another(struct cluster *cluster, const char *was, const char *text)
{
	LOG(cluster_replaced, .was = was, .is = text);
	cluster->another = true;
	answered(cluster);
}

static uint64_t longer_pause(const struct cluster *cluster)
{
	uint64_t pause = cluster->pause_ns ? 2 * cluster->pause_ns : FIRST_PAUSE;
	uint64_t most = cluster->options.pause_max_ns;

	return pause < most ? pause : most;
}

/* Asked later again; only the first failure of a row is said. */
static void not_now(struct cluster *cluster, int result)
{
	if (!cluster->pause_ns)
		LOG(cluster_unreachable, .server = http_server(cluster->options.http),
			.error = err_text(result));
	stats_set_error(cluster->options.stats, err_text(result));
	cluster->pause_ns = longer_pause(cluster);
	cluster->next_ns = proc_monotonic_ns() + pace_jitter(cluster->pause_ns);
}

/* The identity that the journal has, in an open transaction. */
static int read_meta(struct cluster *cluster, struct journal_meta *ret_meta)
{
	struct journal *journal = recorder_journal(cluster->recorder);
	int r = recorder_begin(cluster->recorder);

	if (r >= 0)
		r = journal_meta(journal, journal_txn(journal), ret_meta);
	return r < 0 ? recorder_fail(cluster->recorder, r) : 0;
}

/* ---- a doubt ---- */

static const char *words(enum witness_outcome outcome)
{
	return outcome == WITNESS_SAME ? "another address or CA, but objects that are known"
				       : "another CA, and nothing that speaks against it";
}

/* Nothing to compare: another address of unknown objects is another cluster, another CA is not. */
static int resolve(struct cluster *cluster, enum witness_outcome outcome)
{
	struct journal_meta meta;
	int r = read_meta(cluster, &meta);

	if (r < 0)
		return r;
	if (outcome == WITNESS_OTHER ||
		(outcome == WITNESS_NONE && cluster->doubt == IDENTITY_RENAMED)) {
		is_another(cluster, meta.cluster, cluster->text);
		return 0;
	}
	if (cluster->doubt != IDENTITY_INCOMPARABLE)
		LOG(cluster_confirmed, .was = meta.cluster, .is = cluster->text,
			.because = words(outcome));
	return is_ours(cluster, meta.cluster, cluster->text);
}

static void on_witness(void *arg, int result, enum witness_outcome outcome)
{
	struct cluster *cluster = arg;

	cluster->witness = NULL;
	if (result < 0)
		not_now(cluster, result);
	else
		(void)resolve(cluster, outcome); /* a failure is the batch's, which the loop sees */
}

static int ask_witness(struct cluster *cluster, const char *text, enum identity_relation doubt)
{
	int r = witness_start(cluster->options.http, recorder_journal(cluster->recorder), on_witness,
		cluster, &cluster->witness);

	(void)snprintf(cluster->text, sizeof(cluster->text), "%s", text);
	cluster->doubt = doubt;
	return r == NOT_FOUND ? resolve(cluster, WITNESS_NONE) : r;
}

/* ---- the question ---- */

static int take_identity(struct cluster *cluster, const char *text)
{
	struct journal_meta meta;
	int r = read_meta(cluster, &meta);

	if (r < 0)
		return r;
	enum identity_relation relation = identity_compare(meta.cluster, text);

	switch (relation) {
	case IDENTITY_SAME:
	case IDENTITY_FIRST:
		return is_ours(cluster, meta.cluster, text);
	case IDENTITY_OTHER:
		is_another(cluster, meta.cluster, text);
		return 0;
	default:
		return ask_witness(cluster, text, relation);
	}
}

static void on_identity(void *arg, int result, const char *text)
{
	struct cluster *cluster = arg;
	const char *unused;

	cluster->identity = NULL;
	if (result >= 0) {
		cluster->next_ns = proc_monotonic_ns() + pace_jitter(AGAIN_PAUSE);
		result = take_identity(cluster, text);
	}
	/* One of the journal is the batch's, which the loop sees. */
	if (result < 0 && !recorder_error(cluster->recorder, &unused))
		not_now(cluster, result);
}

int cluster_work(struct cluster *cluster)
{
	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	if (cluster->identity || cluster->witness || proc_monotonic_ns() < cluster->next_ns)
		return 0;
	return identity_start(cluster->options.http, cluster->options.config, on_identity, cluster,
		&cluster->identity);
}

uint64_t cluster_until(const struct cluster *cluster)
{
	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	return cluster->identity || cluster->witness ? UINT64_MAX : cluster->next_ns;
}

void cluster_doubt(struct cluster *cluster)
{
	uint64_t now = proc_monotonic_ns();

	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	if (cluster->next_ns > now + DOUBT_PAUSE)
		cluster->next_ns = now + pace_jitter(SECOND);
}

void cluster_again(struct cluster *cluster)
{
	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	identity_cancel(&cluster->identity);
	witness_cancel(&cluster->witness);
	cluster->next_ns = 0;
}

bool cluster_is_known(const struct cluster *cluster)
{
	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	return cluster->known;
}

bool cluster_is_another(const struct cluster *cluster)
{
	CHECK_OBJ(cluster, CLUSTER_MAGIC);
	return cluster->another;
}

/* ---- the whole ---- */

void cluster_begin(struct cluster *cluster, struct recorder *recorder)
{
	cluster_again(cluster);
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
	identity_cancel(&c->identity);
	witness_cancel(&c->witness);
	c->magic = 0;
	free(c);
}
