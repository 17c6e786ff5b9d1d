/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of workloads: apps, batch, autoscaling, policy, scheduling. */
#include <ctype.h>
#include <inttypes.h>

#include "common/text/timestamp.h"
#include "print/table/printer_internal.h"

/* ---- apps --------------------------------------------------------------- */

static const struct printer_cell_row replica_cells[] = {
	CELL_NAME,
	CELL_INTEGER("Desired", "integer", "spec.replicas",
		"Replicas is the number of desired pods. This is a pointer to distinguish between "
		"explicit zero and unspecified. Defaults to 1. More info: "
		"https://kubernetes.io/docs/concepts/workloads/controllers/replicaset"),
	CELL_INTEGER("Current", "integer", "status.replicas",
		"Replicas is the most recently observed number of non-terminating pods. More info: "
		"https://kubernetes.io/docs/concepts/workloads/controllers/replicaset"),
	CELL_INTEGER("Ready", "integer", "status.readyReplicas",
		"The number of non-terminating pods targeted by this ReplicaSet with a Ready "
		"Condition."),
	CELL_AGE,
	CELL_CONTAINERS("spec.template"),
	CELL_SELECTOR("spec.selector",
		"Selector is a label query over pods that should match the replica count. Label "
		"keys and values that must match in order to be controlled by this replica set. It "
		"must match the pod template's labels. More info: https://kubernetes.io/docs/co"
		"ncepts/overview/working-with-objects/labels/#label-selectors"),
};

static const struct printer_cell_row controller_cells[] = {
	CELL_NAME,
	CELL_INTEGER("Desired", "integer", "spec.replicas",
		"Replicas is the number of desired replicas. This is a pointer to distinguish "
		"between explicit zero and unspecified. Defaults to 1. More info: https://kubernet"
		"es.io/docs/concepts/workloads/controllers/replicationcontroller#what-is-a-replica"
		"tioncontroller"),
	CELL_INTEGER("Current", "integer", "status.replicas",
		"Replicas is the most recently observed number of replicas. More info: https://kub"
		"ernetes.io/docs/concepts/workloads/controllers/replicationcontroller#what-is-a-re"
		"plicationcontroller"),
	CELL_INTEGER("Ready", "integer", "status.readyReplicas",
		"The number of ready replicas for this replication controller."),
	CELL_AGE,
	CELL_CONTAINERS("spec.template"),
	{{"Selector", "string", "", 1,
		 "Selector is a label query over pods that should match the Replicas count. If "
		 "Selector is empty, it is defaulted to the labels present on the Pod template. "
		 "Label keys and values that must match in order to be controlled by this "
		 "replication controller, if empty defaulted to labels on Pod template. More info: "
		 "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-s"
		 "electors"},
		HOW_LABELS, "spec.selector"},
};

static const struct printer_cell_row deployment_cells[] = {
	CELL_NAME,
	{{"Ready", "string", "", 0, "Number of the pod with ready state"}, HOW_RATIO,
		"status.readyReplicas", "spec.replicas"},
	CELL_INTEGER("Up-to-date", "string", "status.updatedReplicas",
		"Total number of non-terminating pods targeted by this deployment that have the "
		"desired template spec."),
	CELL_INTEGER("Available", "string", "status.availableReplicas",
		"Total number of available non-terminating pods (ready for at least "
		"minReadySeconds) targeted by this deployment."),
	CELL_AGE,
	CELL_CONTAINERS("spec.template"),
	CELL_SELECTOR("spec.selector",
		"Label selector for pods. Existing ReplicaSets whose pods are selected by this "
		"will be the ones affected by this deployment. It must match the pod template's "
		"labels."),
};

static const struct printer_cell_row statefulset_cells[] = {
	CELL_NAME,
	{{"Ready", "string", "", 0, "Number of the pod with ready state"}, HOW_RATIO,
		"status.readyReplicas", "spec.replicas"},
	CELL_AGE,
	CELL_CONTAINERS("spec.template"),
};

static const struct printer_cell_row daemonset_cells[] = {
	CELL_NAME,
	CELL_INTEGER("Desired", "integer", "status.desiredNumberScheduled",
		"The total number of nodes that should be running the daemon pod (including nodes "
		"correctly running the daemon pod). More info: "
		"https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/"),
	CELL_INTEGER("Current", "integer", "status.currentNumberScheduled",
		"The number of nodes that are running at least 1 daemon pod and are supposed to "
		"run the daemon pod. More info: "
		"https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/"),
	CELL_INTEGER("Ready", "integer", "status.numberReady",
		"numberReady is the number of nodes that should be running the daemon pod and have "
		"one or more of the daemon pod running with a Ready Condition."),
	CELL_INTEGER("Up-to-date", "integer", "status.updatedNumberScheduled",
		"The total number of nodes that are running updated daemon pod"),
	CELL_INTEGER("Available", "integer", "status.numberAvailable",
		"The number of nodes that should be running the daemon pod and have one or more of "
		"the daemon pod running and available (ready for at least spec.minReadySeconds)"),
	{{"Node Selector", "string", "", 0,
		 "NodeSelector is a selector which must be true for the pod to fit on a node. "
		 "Selector which must match a node's labels for the pod to be scheduled on that "
		 "node. More info: "
		 "https://kubernetes.io/docs/concepts/configuration/assign-pod-node/"},
		HOW_LABELS, "spec.template.spec.nodeSelector"},
	CELL_AGE,
	CELL_CONTAINERS("spec.template"),
	CELL_SELECTOR("spec.selector",
		"A label query over pods that are managed by the daemon set. Must match in order "
		"to be controlled. It must match the pod template's labels. More info: https://kub"
		"ernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors"),
};

static void revision_put_lower(struct printer_row *row, struct bytes text)
{
	for (size_t i = 0; i < text.size; i++)
		buf_byte(row->text, (uint8_t)tolower(((const unsigned char *)text.data)[i]));
}

static enum printer_cell_type revision_controller(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "metadata.ownerReferences");
	struct value owner;

	while (printer_next(row, &iter, &owner)) {
		if (!printer_is(row, &owner, "controller", "true"))
			continue;
		struct bytes version = printer_text(row, &owner, "apiVersion");
		const char *slash = version.size ? memchr(version.data, '/', version.size) : NULL;

		revision_put_lower(row, printer_text(row, &owner, "kind"));
		if (slash) {
			buf_byte(row->text, '.');
			revision_put_lower(row,
				BYTES(version.data, (size_t)(slash - (const char *)version.data)));
		}
		buf_byte(row->text, '/');
		return printer_put_bytes(row, printer_text(row, &owner, "name"));
	}
	return printer_put(row, "<none>");
}

static const struct printer_cell_row revision_cells[] = {
	CELL_NAME,
	CELL_FUNCTION("Controller", "string", 0, revision_controller, "Controller of the object"),
	CELL_INTEGER("Revision", "string", "revision",
		"Revision indicates the revision of the state represented by Data."),
	CELL_AGE,
};

static const struct printer_cell_row template_cells[] = {
	CELL_NAME,
	{{"Containers", "string", "", 0, "Names of each container in the template."}, HOW_NAMES,
		"template.spec.containers", "name"},
	{{"Images", "string", "", 0, "Images referenced by each container in the template."},
		HOW_NAMES, "template.spec.containers", "image"},
	{{"Pod Labels", "string", "", 0, "The labels for the pod template."}, HOW_LABELS,
		"template.metadata.labels"},
};

/* ---- batch -------------------------------------------------------------- */

static enum printer_cell_type job_status(struct printer_row *row)
{
	static const struct {
		const char *condition, *shown;
	} states[] = {{"Complete", "Complete"}, {"Failed", "Failed"}, {NULL, "Terminating"},
		{"Suspended", "Suspended"}, {"FailureTarget", "FailureTarget"},
		{"SuccessCriteriaMet", "SuccessCriteriaMet"}};
	struct value condition;

	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		bool holds;

		if (!states[i].condition)
			holds = printer_text(row, &row->object, "metadata.deletionTimestamp").size;
		else
			holds = printer_condition(row, "status.conditions", states[i].condition,
					&condition) &&
				printer_is(row, &condition, "status", "True");
		if (holds)
			return printer_put(row, states[i].shown);
	}
	return printer_put(row, "Running");
}

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

static const struct printer_cell_row job_cells[] = {
	CELL_NAME,
	CELL_FUNCTION("Status", "string", 0, job_status, "Status of the job."),
	CELL_FUNCTION("Completions", "string", 0, job_completions,
		"The number of pods which reached phase Succeeded. The value increases "
		"monotonically for a given spec. However, it may decrease in reaction to scale "
		"down of elastic indexed jobs."),
	CELL_FUNCTION("Duration", "string", 0, job_duration, "Time required to complete the job."),
	CELL_AGE,
	CELL_CONTAINERS("spec.template"),
	CELL_SELECTOR("spec.selector",
		"A label query over pods that should match the pod count. Normally, the system "
		"sets this field for you. More info: https://kubernetes.io/docs/concepts/overview/"
		"working-with-objects/labels/#label-selectors"),
};

static enum printer_cell_type cronjob_suspend(struct printer_row *row)
{
	struct value suspend;

	if (!printer_find(row, &row->object, "spec.suspend", &suspend))
		return printer_put(row, "<unset>");
	return printer_put(row, suspend.type == VALUE_BOOL && suspend.u.b ? "True" : "False");
}

static const struct printer_cell_row cronjob_cells[] = {
	CELL_NAME,
	CELL_TEXT("Schedule", "spec.schedule", NULL,
		"The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron."),
	CELL_TEXT("Timezone", "spec.timeZone", "<none>",
		"The time zone name for the given schedule, see "
		"https://en.wikipedia.org/wiki/List_of_tz_database_time_zones. If not specified, "
		"this will default to the time zone of the kube-controller-manager process. The "
		"set of valid time zone names and the time zone offset is loaded from the "
		"system-wide time zone database by the API server during CronJob validation and "
		"the controller manager during execution. If no system-wide time zone database can "
		"be found a bundled version of the database is used instead. If the time zone name "
		"becomes invalid during the lifetime of a CronJob or due to a change in host "
		"configuration, the controller will stop creating new new Jobs and will create a "
		"system event with the reason UnknownTimeZone. More information can be found in "
		"https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#time-zones"),
	CELL_FUNCTION("Suspend", "boolean", 0, cronjob_suspend,
		"This flag tells the controller to suspend subsequent executions, it does not "
		"apply to already started executions.  Defaults to false."),
	CELL_COUNT("Active", "integer", "status.active", NULL,
		"A list of pointers to currently running jobs."),
	{{"Last Schedule", "string", "", 0,
		 "Information when was the last time the job was successfully scheduled."},
		HOW_AGE, "status.lastScheduleTime", .none = "<none>"},
	CELL_AGE,
	CELL_CONTAINERS("spec.jobTemplate.spec.template"),
	CELL_SELECTOR("spec.jobTemplate.spec.selector",
		"A label query over pods that should match the pod count. Normally, the system "
		"sets this field for you. More info: https://kubernetes.io/docs/concepts/overview/"
		"working-with-objects/labels/#label-selectors"),
};

/* ---- autoscaling -------------------------------------------------------- */

struct hpa_metric {
	struct value target,
		current; /* of the spec, of the status; type VALUE_NIL: there is none */
};

/* Appends "current/target" of the quantity FIELD. ABSENT replaces a missing field. */
static void hpa_put_quantity(struct printer_row *row, const struct hpa_metric *metric,
	const char *field, const char *absent, const char *after)
{
	struct bytes current = printer_text(row, &metric->current, field);
	struct bytes target = printer_text(row, &metric->target, field);

	if (metric->current.type == VALUE_NIL)
		absent = "<unknown>";
	buf_bytes_put(row->text, current.size ? current : bytes_str(absent));
	buf_byte(row->text, '/');
	buf_bytes_put(row->text, target.size ? target : BYTES_LIT("<nil>"));
	buf_str(row->text, after);
}

static void hpa_put_utilization(struct printer_row *row, const struct hpa_metric *metric)
{
	static const char field[] = "averageUtilization";
	struct bytes current = printer_text(row, &metric->current, field);
	struct bytes target = printer_text(row, &metric->target, field);

	buf_printf(row->text, current.size ? "%.*s%%/" : "<unknown>%.*s/", BYTES_ARG(current));
	buf_printf(row->text, target.size ? "%.*s%%" : "<auto>%.*s", BYTES_ARG(target));
}

static void hpa_put_metric(
	struct printer_row *row, const struct value *spec, const struct value *status)
{
	static const struct {
		const char *type, *field;
	} sources[] = {{"External", "external"}, {"Pods", "pods"}, {"Object", "object"},
		{"Resource", "resource"}, {"ContainerResource", "containerResource"}};
	struct hpa_metric metric = {{.type = VALUE_NIL}, {.type = VALUE_NIL}};
	struct value source, of_status;
	size_t i = 0;

	while (i < ARRAY_SIZE(sources) && !printer_is(row, spec, "type", sources[i].type))
		i++;
	if (i == ARRAY_SIZE(sources) || !printer_find(row, spec, sources[i].field, &source)) {
		buf_str(row->text, "<unknown type>");
		return;
	}
	(void)printer_find(row, &source, "target", &metric.target);
	if (status && printer_find(row, status, sources[i].field, &of_status))
		(void)printer_find(row, &of_status, "current", &metric.current);
	bool is_average = printer_text(row, &metric.target, "averageValue").size;
	if (i >= 3)
		buf_printf(row->text, "%.*s: ", BYTES_ARG(printer_text(row, &source, "name")));
	if (i >= 3 && !is_average)
		hpa_put_utilization(row, &metric);
	else if (i >= 3 || i == 1)
		hpa_put_quantity(row, &metric, "averageValue", "<nil>", "");
	else if (is_average)
		hpa_put_quantity(row, &metric, "averageValue", "<unknown>", " (avg)");
	else
		hpa_put_quantity(row, &metric, "value", "<nil>", "");
}

static enum printer_cell_type hpa_targets(struct printer_row *row)
{
	struct value_iter specs = printer_items(row, &row->object, "spec.metrics");
	struct value_iter statuses = printer_items(row, &row->object, "status.currentMetrics");
	struct value spec, status;
	int n = 0;

	for (; printer_next(row, &specs, &spec); n++) {
		bool has_status = printer_next(row, &statuses, &status);

		if (n >= 2)
			continue;
		buf_str(row->text, n ? ", " : "");
		hpa_put_metric(row, &spec, has_status ? &status : NULL);
	}
	if (n > 2)
		buf_printf(row->text, " + %d more...", n - 2);
	return printer_put(row, n ? "" : "<none>");
}

/* autoscaling/v1 knows the use of the CPU only. */
static enum printer_cell_type hpa_targets_v1(struct printer_row *row)
{
	struct bytes target =
		printer_text(row, &row->object, "spec.targetCPUUtilizationPercentage");
	struct bytes current =
		printer_text(row, &row->object, "status.currentCPUUtilizationPercentage");

	if (!target.size)
		return printer_put(row, "<none>");
	buf_printf(row->text, current.size ? "cpu: %.*s%%/" : "cpu: <unknown>%.*s/",
		BYTES_ARG(current));
	buf_printf(row->text, "%.*s%%", BYTES_ARG(target));
	return PRINTER_STRING;
}

static enum printer_cell_type hpa_reference(struct printer_row *row)
{
	(void)printer_put_bytes(row, printer_text(row, &row->object, "spec.scaleTargetRef.kind"));
	buf_byte(row->text, '/');
	return printer_put_bytes(row, printer_text(row, &row->object, "spec.scaleTargetRef.name"));
}

#define HPA_CELLS(targets_) \
	{ \
		CELL_NAME, \
			CELL_FUNCTION("Reference", "string", 0, hpa_reference, \
				"scaleTargetRef points to the target resource to scale, and is " \
				"used to the pods for which metrics should be collected, as well " \
				"as to actually change the replica count."), \
			CELL_FUNCTION("Targets", "string", 0, targets_, \
				"metrics contains the specifications for which to use to " \
				"calculate the desired replica count (the maximum replica count " \
				"across all metrics will be used).  The desired replica count is " \
				"calculated multiplying the ratio between the target value and " \
				"the current value by the current number of pods.  Ergo, metrics " \
				"used must decrease as the pod count is increased, and " \
				"vice-versa.  See the individual metric source types for more " \
				"information about how each type of metric must respond. If not " \
				"set, the default metric will be set to 80% average CPU " \
				"utilization."), \
			CELL_TEXT("MinPods", "spec.minReplicas", "<unset>", \
				"minReplicas is the lower limit for the number of replicas to " \
				"which the autoscaler can scale down.  It defaults to 1 pod.  " \
				"minReplicas is allowed to be 0 if the alpha feature gate " \
				"HPAScaleToZero is enabled and at least one Object or External " \
				"metric is configured.  Scaling is active as long as at least " \
				"one metric value is available."), \
			CELL_INTEGER("MaxPods", "string", "spec.maxReplicas", \
				"maxReplicas is the upper limit for the number of replicas to " \
				"which the autoscaler can scale up. It cannot be less that " \
				"minReplicas."), \
			CELL_INTEGER("Replicas", "string", "status.currentReplicas", \
				"currentReplicas is current number of replicas of pods managed " \
				"by this autoscaler, as last seen by the autoscaler."), \
			CELL_AGE \
	}

static const struct printer_cell_row hpa_cells[] = HPA_CELLS(hpa_targets);
static const struct printer_cell_row hpa_v1_cells[] = HPA_CELLS(hpa_targets_v1);

/* ---- policy, scheduling ------------------------------------------------- */

static const struct printer_cell_row budget_cells[] = {
	CELL_NAME,
	CELL_TEXT("Min Available", "spec.minAvailable", "N/A",
		"The minimum number of pods that must be available."),
	CELL_TEXT("Max Unavailable", "spec.maxUnavailable", "N/A",
		"The maximum number of pods that may be unavailable."),
	CELL_INTEGER("Allowed Disruptions", "integer", "status.disruptionsAllowed",
		"Calculated number of pods that may be disrupted at this time."),
	CELL_AGE,
};

static const struct printer_cell_row priority_cells[] = {
	CELL_NAME,
	CELL_INTEGER("Value", "integer", "value",
		"value represents the integer value of this priority class. This is the actual "
		"priority that pods receive when they have the name of this class in their pod "
		"spec."),
	CELL_BOOLEAN("Global-Default", "globalDefault", "false",
		"globalDefault specifies whether this PriorityClass should be considered as the "
		"default priority for pods that do not have any priority class. Only one "
		"PriorityClass can be marked as `globalDefault`. However, if more than one "
		"PriorityClasses exists with their `globalDefault` field set to true, the smallest "
		"value of such global default PriorityClasses will be used as the default "
		"priority."),
	CELL_AGE,
	CELL_TEXT("PreemptionPolicy", "preemptionPolicy", NULL,
		"preemptionPolicy is the Policy for preempting pods with lower priority. One of "
		"Never, PreemptLowerPriority. Defaults to PreemptLowerPriority if unset."),
};

static const struct printer_cell_row workload_cells[] = {CELL_NAME, CELL_AGE};

static enum printer_cell_type podgroup_policy(struct printer_row *row)
{
	struct value gang;

	return printer_put(row, printer_find(row, &row->object, "spec.schedulingPolicy.gang", &gang)
					? "Gang"
					: "Basic");
}

static enum printer_cell_type podgroup_status(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "status.conditions");
	struct bytes status = BYTES_LIT("Pending"), disrupted = BYTES_NONE;
	struct value condition;

	while (printer_next(row, &iter, &condition)) {
		if (printer_is(row, &condition, "type", "PodGroupInitiallyScheduled") ||
			printer_is(row, &condition, "type", "PodGroupScheduled")) /* 1.36 */
			status = printer_is(row, &condition, "status", "True")
					 ? BYTES_LIT("Scheduled")
					 : BYTES_LIT("Unschedulable");
		if (printer_is(row, &condition, "type", "DisruptionTarget"))
			disrupted = printer_text(row, &condition, "reason");
	}
	return printer_put_bytes(row, disrupted.data ? disrupted : status);
}

static const struct printer_cell_row podgroup_cells[] = {
	CELL_NAME,
	CELL_FUNCTION("Policy", "string", 0, podgroup_policy,
		"schedulingPolicy defines the scheduling policy for this instance of the PodGroup. "
		"Controllers are expected to fill this field by copying it from a "
		"PodGroupTemplate."),
	/* The second one is that of 1.36. */
	{{"Workload", "string", "", 0, "Name of the referenced Workload object"}, HOW_TEXT,
		"spec.workloadRef.workloadName", "spec.podGroupTemplateRef.workload.workloadName",
		.none = "<none>"},
	CELL_FUNCTION("Status", "string", 0, podgroup_status, "Status of the PodGroup"),
	CELL_AGE,
};

static const struct printer_cell_row compositepodgroup_cells[] = {
	CELL_NAME,
	CELL_FUNCTION("Policy", "string", 0, podgroup_policy,
		"schedulingPolicy defines the scheduling policy for this instance of the "
		"CompositePodGroup. Controllers are expected to fill this field by copying it from "
		"a CompositePodGroupTemplate. This field is immutable."),
	CELL_TEXT("Workload", "spec.workloadRef.workloadName", "<none>",
		"Name of the referenced Workload object"),
	CELL_AGE,
};

const struct printer_kind_row printer_kinds_work[] = {
	KIND("apps", "deployments", deployment_cells),
	KIND("apps", "replicasets", replica_cells),
	KIND("apps", "statefulsets", statefulset_cells),
	KIND("apps", "daemonsets", daemonset_cells),
	KIND("apps", "controllerrevisions", revision_cells),
	KIND("", "replicationcontrollers", controller_cells),
	KIND("", "podtemplates", template_cells),
	KIND("batch", "jobs", job_cells),
	KIND("batch", "cronjobs", cronjob_cells),
	{.group = "autoscaling",
		.resource = "horizontalpodautoscalers",
		.version = "v1",
		.cells = hpa_v1_cells,
		.n = ARRAY_SIZE(hpa_v1_cells)},
	KIND("autoscaling", "horizontalpodautoscalers", hpa_cells),
	KIND("policy", "poddisruptionbudgets", budget_cells),
	KIND("scheduling.k8s.io", "priorityclasses", priority_cells),
	KIND("scheduling.k8s.io", "workloads", workload_cells),
	KIND("scheduling.k8s.io", "podgroups", podgroup_cells),
	KIND("scheduling.k8s.io", "compositepodgroups", compositepodgroup_cells),
	{0},
};
