/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of workloads: apps, batch, autoscaling, policy, scheduling. */
#include <inttypes.h>

#include "common/text/timestamp.h"
#include "print/table/printer_internal.h"

/* ---- apps --------------------------------------------------------------- */

static enum printer_cell_type revision_controller(struct printer_row *row)
{
	struct value owner;

	if (!printer_find(row, &row->object, "metadata.ownerReferences[controller=true]", &owner))
		return printer_put(row, "<none>");
	struct bytes version = printer_text(row, &owner, "apiVersion");
	const char *slash = version.size ? memchr(version.data, '/', version.size) : NULL;

	printer_put_words(row, &owner, "{kind:lower}");
	if (slash)
		buf_printf(row->text, ".%.*s", (int)(slash - (const char *)version.data),
			(const char *)version.data);
	printer_put_words(row, &owner, "/{name}");
	return PRINTER_STRING;
}

/* ---- batch -------------------------------------------------------------- */

static enum printer_cell_type job_completions(struct printer_row *row)
{
	int64_t succeeded = printer_integer(row, &row->object, "status.succeeded");
	int64_t parallelism = printer_integer(row, &row->object, "spec.parallelism");
	struct value completions;

	if (printer_find(row, &row->object, "spec.completions", &completions))
		buf_printf(row->text, "%" PRId64 "/%" PRId64, succeeded,
			printer_integer(row, &row->object, "spec.completions"));
	else if (parallelism > 1)
		buf_printf(row->text, "%" PRId64 "/1 of %" PRId64, succeeded, parallelism);
	else
		buf_printf(row->text, "%" PRId64 "/1", succeeded);
	return PRINTER_STRING;
}

static enum printer_cell_type job_duration(struct printer_row *row)
{
	struct bytes start = printer_text(row, &row->object, "status.startTime");
	struct bytes end = printer_text(row, &row->object, "status.completionTime");
	uint64_t until = row->now_ns;
	char age[AGE_SIZE];
	int64_t ns;

	if (!start.size)
		return PRINTER_STRING;
	if (end.size && timestamp_parse(end, &ns))
		until = (uint64_t)ns;
	age_between(start, until, "<unknown>", age);
	return printer_put(row, age);
}

/* ---- autoscaling -------------------------------------------------------- */

/* "CURRENT/TARGET" of a metric; $ is its status. */
static const char hpa_metric[] =
	"[{external.target.averageValue:if}{$external.current.averageValue|<unknown>}/"
	"{external.target.averageValue} (avg)|"
	"{external:if}[{$external.current.value}|{$external.current:if}<nil>|<unknown>]/"
	"{external.target.value|<nil>}|"
	"{pods:if}[{$pods.current.averageValue}|{$pods.current:if}<nil>|<unknown>]/"
	"{pods.target.averageValue|<nil>}|"
	"{object.target.averageValue:if}{$object.current.averageValue|<unknown>}/"
	"{object.target.averageValue} (avg)|"
	"{object:if}[{$object.current.value}|{$object.current:if}<nil>|<unknown>]/"
	"{object.target.value|<nil>}|"
	"{resource.target.averageValue:if}{resource.name}: "
	"[{$resource.current.averageValue}|{$resource.current:if}<nil>|<unknown>]/"
	"{resource.target.averageValue}|"
	"{resource:if}{resource.name}: [{$resource.current.averageUtilization}%|<unknown>]/"
	"[{resource.target.averageUtilization}%|<auto>]|"
	"{containerResource.target.averageValue:if}{containerResource.name}: "
	"[{$containerResource.current.averageValue}|{$containerResource.current:if}<nil>|"
	"<unknown>]/{containerResource.target.averageValue}|"
	"{containerResource:if}{containerResource.name}: "
	"[{$containerResource.current.averageUtilization}%|<unknown>]/"
	"[{containerResource.target.averageUtilization}%|<auto>]|<unknown type>]";

static enum printer_cell_type hpa_targets(struct printer_row *row)
{
	struct value_iter specs = printer_items(row, &row->object, "spec.metrics");
	struct value_iter statuses = printer_items(row, &row->object, "status.currentMetrics");
	struct value spec, status;
	int n = 0;

	if (printer_is(row, &row->object, "apiVersion", "autoscaling/v1")) { /* the CPU alone */
		printer_put_words(row, &row->object,
			printer_is_empty(row, &row->object, "spec.targetCPUUtilizationPercentage")
				? "<none>"
				: "cpu: [{status.currentCPUUtilizationPercentage}%|<unknown>]/"
				  "{spec.targetCPUUtilizationPercentage}%");
		return PRINTER_STRING;
	}
	for (; printer_next(row, &specs, &spec); n++) {
		bool has_status = printer_next(row, &statuses, &status);

		if (n >= 2)
			continue;
		buf_str(row->text, n ? ", " : "");
		row->second = has_status ? &status : NULL;
		printer_put_words(row, &spec, hpa_metric);
	}
	row->second = NULL;
	if (n > 2)
		buf_printf(row->text, " + %d more...", n - 2);
	return printer_put(row, n ? "" : "<none>");
}

const struct printer_kind_row printer_kinds_work[] = {
	KIND("apps", "deployments", CELL_NAME,
		CELL_WORDS("Ready", "{status.readyReplicas|0}/{spec.replicas|0}"),
		CELL_INTEGER("Up-to-date", "string", "status.updatedReplicas"),
		CELL_INTEGER("Available", "string", "status.availableReplicas"), CELL_AGE,
		CELL_CONTAINERS(1, "spec.template"), CELL_SELECTOR("spec.selector", "selector")),
	KIND("apps", "replicasets", CELL_NAME, CELL_INTEGER("Desired", "integer", "spec.replicas"),
		CELL_INTEGER("Current", "integer", "status.replicas"),
		CELL_INTEGER("Ready", "integer", "status.readyReplicas"), CELL_AGE,
		CELL_CONTAINERS(1, "spec.template"), CELL_SELECTOR("spec.selector", "selector")),
	KIND("apps", "statefulsets", CELL_NAME,
		CELL_WORDS("Ready", "{status.readyReplicas|0}/{spec.replicas|0}"), CELL_AGE,
		CELL_CONTAINERS(1, "spec.template")),
	KIND("apps", "daemonsets", CELL_NAME,
		CELL_INTEGER("Desired", "integer", "status.desiredNumberScheduled"),
		CELL_INTEGER("Current", "integer", "status.currentNumberScheduled"),
		CELL_INTEGER("Ready", "integer", "status.numberReady"),
		CELL_INTEGER("Up-to-date", "integer", "status.updatedNumberScheduled"),
		CELL_INTEGER("Available", "integer", "status.numberAvailable"),
		CELL_WORDS("Node Selector", "{spec.template.spec.nodeSelector:map}"), CELL_AGE,
		CELL_CONTAINERS(1, "spec.template"), CELL_SELECTOR("spec.selector", "selector")),
	KIND("apps", "controllerrevisions", CELL_NAME,
		CELL_FUNCTION("Controller", "string", 0, revision_controller),
		CELL_INTEGER("Revision", "string", "revision"), CELL_AGE),
	KIND("", "replicationcontrollers", CELL_NAME,
		CELL_INTEGER("Desired", "integer", "spec.replicas"),
		CELL_INTEGER("Current", "integer", "status.replicas"),
		CELL_INTEGER("Ready", "integer", "status.readyReplicas"), CELL_AGE,
		CELL_CONTAINERS(1, "spec.template"), CELL_SELECTOR("spec.selector", "map")),
	KIND("", "podtemplates", CELL_NAME, CELL_CONTAINERS(0, "template"),
		CELL_WORDS("Pod Labels", "{template.metadata.labels:map}")),
	KIND("batch", "jobs", CELL_NAME,
		CELL_WORDS("Status",
			"[{status.conditions[type=Complete][status=True].type}|"
			"{status.conditions[type=Failed][status=True].type}|"
			"{metadata.deletionTimestamp:if}Terminating|"
			"{status.conditions[type=Suspended][status=True].type}|"
			"{status.conditions[type=FailureTarget][status=True].type}|"
			"{status.conditions[type=SuccessCriteriaMet][status=True].type}|Running]"),
		CELL_FUNCTION("Completions", "string", 0, job_completions),
		CELL_FUNCTION("Duration", "string", 0, job_duration), CELL_AGE,
		CELL_CONTAINERS(1, "spec.template"), CELL_SELECTOR("spec.selector", "selector")),
	KIND("batch", "cronjobs", CELL_NAME, CELL_TEXT("Schedule", "spec.schedule", NULL),
		CELL_TEXT("Timezone", "spec.timeZone", "<none>"),
		CELL("Suspend", "boolean", 0, HOW_WORDS, "{spec.suspend:bool|<unset>}"),
		CELL_COUNT("Active", "integer", "status.active", NULL),
		CELL("Last Schedule", "string", 0, HOW_AGE, "status.lastScheduleTime",
			.none = "<none>"),
		CELL_AGE, CELL_CONTAINERS(1, "spec.jobTemplate.spec.template"),
		CELL_SELECTOR("spec.jobTemplate.spec.selector", "selector")),
	KIND("autoscaling", "horizontalpodautoscalers", CELL_NAME,
		CELL_WORDS("Reference", "{spec.scaleTargetRef.kind}/{spec.scaleTargetRef.name}"),
		CELL_FUNCTION("Targets", "string", 0, hpa_targets),
		CELL_TEXT("MinPods", "spec.minReplicas", "<unset>"),
		CELL_INTEGER("MaxPods", "string", "spec.maxReplicas"),
		CELL_INTEGER("Replicas", "string", "status.currentReplicas"), CELL_AGE),
	KIND("policy", "poddisruptionbudgets", CELL_NAME,
		CELL_TEXT("Min Available", "spec.minAvailable", "N/A"),
		CELL_TEXT("Max Unavailable", "spec.maxUnavailable", "N/A"),
		CELL_INTEGER("Allowed Disruptions", "integer", "status.disruptionsAllowed"),
		CELL_AGE),
	KIND("scheduling.k8s.io", "priorityclasses", CELL_NAME,
		CELL_INTEGER("Value", "integer", "value"),
		CELL_BOOLEAN("Global-Default", "globalDefault", "false"), CELL_AGE,
		CELL_TEXT("PreemptionPolicy", "preemptionPolicy", NULL)),
	KIND("scheduling.k8s.io", "workloads", CELL_NAME, CELL_AGE),
	KIND("scheduling.k8s.io", "podgroups", CELL_NAME,
		CELL_WORDS("Policy", "[{spec.schedulingPolicy.gang:if}Gang|Basic]"),
		/* The second one is that of 1.36. */
		CELL_WORDS("Workload", "[{spec.workloadRef.workloadName}|"
				       "{spec.podGroupTemplateRef.workload.workloadName}|<none>]"),
		/* The second condition is that of 1.36. */
		CELL_WORDS("Status",
			"[{status.conditions[type=DisruptionTarget].reason}|"
			"{status.conditions[type=PodGroupInitiallyScheduled][status=True]:if}"
			"Scheduled|"
			"{status.conditions[type=PodGroupInitiallyScheduled]:if}Unschedulable|"
			"{status.conditions[type=PodGroupScheduled][status=True]:if}Scheduled|"
			"{status.conditions[type=PodGroupScheduled]:if}Unschedulable|Pending]"),
		CELL_AGE),
	KIND("scheduling.k8s.io", "compositepodgroups", CELL_NAME,
		CELL_WORDS("Policy", "[{spec.schedulingPolicy.gang:if}Gang|Basic]"),
		CELL_TEXT("Workload", "spec.workloadRef.workloadName", "<none>"), CELL_AGE),
	{0},
};
