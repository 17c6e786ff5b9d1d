/* SPDX-License-Identifier: Apache-2.0 */
/* Controllers of pods. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/text/timestamp.h"
#include "print/describe/describe_internal.h"

/* First or last lines of several kinds. */
#define CREATED \
	{ \
		.line = "CreationTimestamp:\t{metadata.creationTimestamp:time}" \
	}
#define TEMPLATE \
	{ \
		.in = "spec", .lines = describe_pod_template \
	}
#define CONDITIONS \
	{.when = "status.conditions", \
		.line = "Conditions:\n  Type\tStatus\tReason\n  ----\t------\t------"}, \
	{ \
		.each = "status.conditions", .level = 1, .line = "{type} \t{status}\t{reason}" \
	}

/* ---- pods of a controller ----------------------------------------------- */

struct work_pods {
	struct bytes uid;
	unsigned phases[4];
};

/* Returns whether d->here is controlled by the object with the uid. */
static bool work_is_controlled(struct describe *d, struct bytes uid)
{
	return bytes_equal(describe_get(d, "metadata.ownerReferences[controller=true].uid"), uid);
}

static void work_count_pod(struct describe *d, void *arg)
{
	static const char *const phases[] = {"Running", "Pending", "Succeeded", "Failed"};
	struct work_pods *pods = arg;

	if (!work_is_controlled(d, pods->uid))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(phases); i++)
		pods->phases[i] +=
			bytes_equal(describe_get(d, "status.phase"), bytes_str(phases[i]));
}

static void describe_pods_status(struct describe *d)
{
	struct work_pods pods = {.uid = describe_get(d, "metadata.uid")};

	if (describe_each_object(d, "pods", "{metadata.namespace}",
		    "[{spec.selector:selector}|<none>]", "", work_count_pod, &pods))
		buf_printf(d->row.text,
			"Pods Status:\t%u Running / %u Waiting / %u Succeeded / %u Failed\n",
			pods.phases[0], pods.phases[1], pods.phases[2], pods.phases[3]);
}

/* ---- deployments -------------------------------------------------------- */

#define REVISION "metadata.annotations[deployment.kubernetes.io/revision]"

struct work_sets {
	struct bytes uid, revision;
	struct buf old, new;
};

static void work_add_set(struct describe *d, void *arg)
{
	struct work_sets *sets = arg;

	if (!work_is_controlled(d, sets->uid))
		return;
	struct buf *text = d->row.text;
	bool is_new = sets->revision.size && bytes_equal(describe_get(d, REVISION), sets->revision);
	struct buf *out = is_new ? &sets->new : &sets->old;

	d->row.text = out;
	buf_str(out, out->size ? ", " : "");
	describe_words(
		d, "{metadata.name} ({status.replicas|0}/{spec.replicas|1} replicas created)");
	d->row.text = text;
}

/* The ReplicaSet of the deployment's revision is the new one. kubectl compares the templates. */
static void work_replica_sets(struct describe *d)
{
	struct work_sets sets = {
		.uid = describe_get(d, "metadata.uid"), .revision = describe_get(d, REVISION)};

	if (describe_each_object(d, "replicasets.apps", "{metadata.namespace}",
		    "[{spec.selector:selector}|<none>]", "", work_add_set, &sets) &&
		(sets.old.size || sets.new.size))
		buf_printf(d->row.text, "OldReplicaSets:\t%s\nNewReplicaSet:\t%s\n",
			sets.old.size ? buf_cstr(&sets.old) : "<none>",
			sets.new.size ? buf_cstr(&sets.new) : "<none>");
	printer_note(&d->row, buf_error(&sets.old));
	printer_note(&d->row, buf_error(&sets.new));
	buf_release(&sets.old);
	buf_release(&sets.new);
}

static const struct describe_line deployment_lines[] = {
	LINES_NAME,
	CREATED,
	LINES_LABELS,
	{.line = "Selector:\t{spec.selector:selector}"},
	{.line = "Replicas:\t{spec.replicas|1} desired | {status.updatedReplicas|0} updated | "
		 "{status.replicas|0} total | {status.availableReplicas|0} available | "
		 "{status.unavailableReplicas|0} unavailable"},
	{.line = "StrategyType:\t{spec.strategy.type}"},
	{.line = "MinReadySeconds:\t{spec.minReadySeconds|0}"},
	{.when = "spec.strategy.rollingUpdate",
		.line = "RollingUpdateStrategy:\t{spec.strategy.rollingUpdate.maxUnavailable} max "
			"unavailable, {spec.strategy.rollingUpdate.maxSurge} max surge"},
	TEMPLATE,
	CONDITIONS,
	{.fn = work_replica_sets},
	{.fn = describe_events},
	END_OF_LINES,
};

/* ---- the other sets ----------------------------------------------------- */

static const struct describe_line replica_set_lines[] = {
	LINES_NAME,
	{.line = "Selector:\t{spec.selector:selector}"},
	LINES_LABELS,
	LINE_CONTROLLER,
	{.line = "Replicas:\t{status.replicas|0} current / {spec.replicas|1} desired"},
	{.fn = describe_pods_status},
	TEMPLATE,
	CONDITIONS,
	{.fn = describe_events},
	END_OF_LINES,
};

static const struct describe_line daemon_set_lines[] = {
	LINES_NAME,
	{.line = "Selector:\t{spec.selector:selector}"},
	{.line = "Node-Selector:\t{spec.template.spec.nodeSelector:map}"},
	LINES_LABELS,
	{.line = "Desired Number of Nodes Scheduled: {status.desiredNumberScheduled|0}"},
	{.line = "Current Number of Nodes Scheduled: {status.currentNumberScheduled|0}"},
	{.line = "Number of Nodes Scheduled with Up-to-date Pods: "
		 "{status.updatedNumberScheduled|0}"},
	{.line = "Number of Nodes Scheduled with Available Pods: {status.numberAvailable|0}"},
	{.line = "Number of Nodes Misscheduled: {status.numberMisscheduled|0}"},
	{.fn = describe_pods_status},
	TEMPLATE,
	{.fn = describe_events},
	END_OF_LINES,
};

static const struct describe_line stateful_set_claim[] = {
	{.level = 1, .line = "Name:\t{metadata.name}"},
	{.level = 1, .line = "StorageClass:\t" STORAGE_CLASS},
	{.line = "  Labels:\t{metadata.labels:labels}"},
	{.line = "  Annotations:\t{metadata.annotations:labels}"}, /* as kubectl's */
	{.level = 1, .line = "Capacity:\t{spec.resources.requests.storage|<default>}"},
	{.level = 1, .line = "Access Modes:\t{spec.accessModes:go}"},
	END_OF_LINES,
};

static const struct describe_line stateful_set_retention[] = {
	{.line = "Persistent Volume Claim Retention Policy:"},
	{.level = 1, .line = "WhenDeleted:\t{whenDeleted}"},
	{.level = 1, .line = "WhenScaled:\t{whenScaled}"},
	END_OF_LINES,
};

static const struct describe_line stateful_set_lines[] = {
	LINES_NAME,
	CREATED,
	{.line = "Selector:\t{spec.selector:selector}"},
	LINES_LABELS,
	{.some = "Service Name:\t{spec.serviceName}"},
	{.some = "Pod Management Policy:\t{spec.podManagementPolicy}"},
	{.line = "Replicas:\t{spec.replicas|1} desired | {status.replicas|0} total"},
	{.line = "Update Strategy:\t{spec.updateStrategy.type}"},
	{.when = "spec.updateStrategy.rollingUpdate.partition",
		.in = "spec.updateStrategy.rollingUpdate",
		.level = 1,
		.lines = LINES{{.line = "Partition:\t{partition}"},
			{.some = "MaxUnavailable:\t{maxUnavailable}"}, END_OF_LINES}},
	{.in = "spec.persistentVolumeClaimRetentionPolicy", .lines = stateful_set_retention},
	{.fn = describe_pods_status},
	TEMPLATE,
	{.unless = "spec.volumeClaimTemplates", .line = "Volume Claims:\t<none>"},
	{.when = "spec.volumeClaimTemplates", .line = "Volume Claims:"},
	{.each = "spec.volumeClaimTemplates", .lines = stateful_set_claim},
	{.fn = describe_events},
	END_OF_LINES,
};

/* ---- jobs --------------------------------------------------------------- */

static void job_duration(struct describe *d)
{
	int64_t end;
	char text[AGE_SIZE];

	if (!timestamp_parse(describe_get(d, "status.completionTime"), &end) || end < 0)
		return;
	age_between(describe_get(d, "status.startTime"), (uint64_t)end, "<unknown>", text);
	buf_printf(d->row.text, "Duration:\t%s\n", text);
}

/* The list of indexes, cut at a comma after 50 characters. */
static void job_indexes(struct describe *d)
{
	struct bytes all = describe_get(d, "status.completedIndexes");
	const char *comma =
		all.size > 50 ? memchr((const char *)all.data + 50, ',', all.size - 50) : NULL;

	if (!bytes_equal(describe_get(d, "spec.completionMode"), BYTES_LIT("Indexed")))
		return;
	buf_str(d->row.text, "Completed Indexes:\t");
	buf_bytes_put(
		d->row.text, !all.size ? BYTES_LIT("<none>")
			     : comma ? BYTES(all.data, (size_t)(comma + 1 - (const char *)all.data))
				     : all);
	buf_str(d->row.text, comma ? "...\n" : "\n");
}

static const struct describe_line job_lines[] = {
	LINES_NAME,
	{.line = "Selector:\t{spec.selector:selector}"},
	LINES_LABELS,
	LINE_CONTROLLER,
	{.some = "Parallelism:\t{spec.parallelism}"},
	{.line = "Completions:\t{spec.completions|<unset>}"},
	{.some = "Completion Mode:\t{spec.completionMode}"},
	{.some = "Suspend:\t{spec.suspend}"},
	{.some = "Backoff Limit:\t{spec.backoffLimit}"},
	{.some = "TTL Seconds After Finished:\t{spec.ttlSecondsAfterFinished}"},
	{.some = "Start Time:\t{status.startTime:time}"},
	{.some = "Completed At:\t{status.completionTime:time}"},
	{.when = "status.completionTime", .fn = job_duration},
	{.some = "Active Deadline Seconds:\t{spec.activeDeadlineSeconds}s"},
	{.line = "Pods Statuses:\t{status.active|0} Active[ ({status.ready} Ready)] / "
		 "{status.succeeded|0} Succeeded / {status.failed|0} Failed"},
	{.fn = job_indexes},
	TEMPLATE,
	{.fn = describe_events},
	END_OF_LINES,
};

static const struct describe_line job_template_lines[] = {
	{.line = "Selector:\t{selector:selector|<unset>}"},
	{.line = "Parallelism:\t{parallelism|<unset>}"},
	{.line = "Completions:\t{completions|<unset>}"},
	{.some = "Active Deadline Seconds:\t{activeDeadlineSeconds}s"},
	{.lines = describe_pod_template},
	END_OF_LINES,
};

static const struct describe_line cron_job_lines[] = {
	LINES_NAME,
	LINES_LABELS,
	{.line = "Schedule:\t{spec.schedule}"},
	{.line = "Concurrency Policy:\t{spec.concurrencyPolicy}"},
	{.line = "Suspend:\t{spec.suspend:bool|<unset>}"},
	{.line = "Time Zone:\t{spec.timeZone|<unset>}"},
	{.line = "Successful Job History Limit:\t{spec.successfulJobsHistoryLimit|<unset>}"},
	{.line = "Failed Job History Limit:\t{spec.failedJobsHistoryLimit|<unset>}"},
	{.line = "Starting Deadline Seconds:\t[{spec.startingDeadlineSeconds}s|<unset>]"},
	{.in = "spec.jobTemplate.spec", .lines = job_template_lines},
	{.line = "Last Schedule Time:\t{status.lastScheduleTime:time|<unset>}"},
	{.line = "Active Jobs:\t",
		.list = "status.active",
		.item = "{name}",
		.between = ", ",
		.none = "<none>"},
	{.fn = describe_events},
	END_OF_LINES,
};

const struct describe_kind describe_kinds_work[] = {
	{"deployments.apps", deployment_lines},
	{"replicasets.apps", replica_set_lines},
	{"daemonsets.apps", daemon_set_lines},
	{"statefulsets.apps", stateful_set_lines},
	{"jobs.batch", job_lines},
	{"cronjobs.batch", cron_job_lines},
	{0},
};
