/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of pods and their evictions. A pod's status is a summary of all its containers. */
#include <inttypes.h>

#include "print/table/printer_internal.h"

static void pod_keep_latest(struct bytes *latest, struct bytes time)
{
	/* RFC 3339 texts of one form: their order is the order of time. */
	if (bytes_compare(time, *latest) > 0)
		*latest = time;
}

static struct bytes pod_last_end(struct printer_row *row, const struct value *status)
{
	return printer_text(row, status, "lastState.terminated.finishedAt");
}

/* Sets the reason of a container's end. */
static void pod_set_ended(struct printer_row *row, struct pod_summary *pod,
	const struct value *ended, const char *prefix)
{
	int64_t killed_by = printer_integer(row, ended, "signal");

	pod->prefix = prefix;
	pod->reason = printer_text(row, ended, "reason");
	if (pod->reason.size)
		return;
	pod->reason = killed_by ? BYTES_LIT("Signal:") : BYTES_LIT("ExitCode:");
	pod->number = killed_by ? killed_by : printer_integer(row, ended, "exitCode");
}

/* Returns true if NAME is an init container beside the others. */
static bool pod_is_sidecar(struct printer_row *row, struct bytes name)
{
	struct value_iter iter = printer_items(row, &row->object, "spec.initContainers");
	struct value container;
	bool sidecar = false;

	while (printer_next(row, &iter, &container)) /* the last of one name counts */
		if (bytes_equal(printer_text(row, &container, "name"), name))
			sidecar = printer_is(row, &container, "restartPolicy", "Always");
	return sidecar;
}

/* Examines an init container. Returns whether the pod waits for it. */
static bool pod_add_init(struct printer_row *row, struct pod_summary *pod,
	const struct value *status, int64_t number)
{
	struct value ended, waiting;
	bool has_ended = printer_find(row, status, "state.terminated", &ended);

	if (has_ended && printer_integer(row, &ended, "exitCode") == 0)
		return false;
	if (pod_is_sidecar(row, printer_text(row, status, "name")) &&
		printer_is_true(row, status, "started")) {
		pod->ready += printer_is_true(row, status, "ready");
		return false;
	}
	if (has_ended) {
		pod_set_ended(row, pod, &ended, "Init:");
		return true;
	}
	pod->prefix = "Init:";
	if (printer_find(row, status, "state.waiting", &waiting)) {
		pod->reason = printer_text(row, &waiting, "reason");
		if (pod->reason.size && !bytes_equal(pod->reason, BYTES_LIT("PodInitializing")))
			return true;
	}
	pod->reason = BYTES_NONE;
	pod->progress = true;
	pod->done = number;
	return true;
}

static bool pod_add_inits(struct printer_row *row, struct pod_summary *pod)
{
	struct value_iter iter = printer_items(row, &row->object, "status.initContainerStatuses");
	int64_t number = 0, sidecar_restarts = 0;
	struct bytes sidecar_restarted = BYTES_NONE;
	struct value status;
	bool waits = false;

	for (; !waits && printer_next(row, &iter, &status); number++) {
		int64_t restarts = printer_integer(row, &status, "restartCount");

		pod->restarts += restarts;
		pod_keep_latest(&pod->restarted, pod_last_end(row, &status));
		if (pod_is_sidecar(row, printer_text(row, &status, "name"))) {
			sidecar_restarts += restarts;
			pod_keep_latest(&sidecar_restarted, pod_last_end(row, &status));
		}
		waits = pod_add_init(row, pod, &status, number);
	}
	if (waits && printer_is_empty(
			     row, &row->object, "status.conditions[type=Initialized][status=True]"))
		return true;
	pod->restarts = sidecar_restarts;
	pod->restarted = sidecar_restarted;
	return false;
}

/* The state of one container, as it replaces the pod's reason. */
static void pod_add_container(struct printer_row *row, struct pod_summary *pod,
	const struct value *status, struct pod_summary *failed, bool *running)
{
	struct value ended, state;

	pod->restarts += printer_integer(row, status, "restartCount");
	pod_keep_latest(&pod->restarted, pod_last_end(row, status));
	struct bytes waiting = printer_text(row, status, "state.waiting.reason");
	if (waiting.size) {
		pod->reason = waiting;
		pod->prefix = "";
		pod->progress = false;
	} else if (printer_find(row, status, "state.terminated", &ended)) {
		pod_set_ended(row, pod, &ended, "");
		pod->progress = false;
		if (printer_integer(row, &ended, "exitCode") != 0)
			*failed = *pod;
	} else if (printer_is_true(row, status, "ready") &&
		   printer_find(row, status, "state.running", &state)) {
		*running = true;
		pod->ready++;
	}
}

static void pod_add_containers(struct printer_row *row, struct pod_summary *pod)
{
	struct pod_summary failed = {.reason = BYTES_NONE};
	struct value statuses, status;
	struct value_iter iter;
	bool running = false;
	uint32_t n = 0;

	if (printer_find(row, &row->object, "status.containerStatuses", &statuses))
		n = statuses.count;
	for (uint32_t i = n; i-- > 0;) { /* from the last to the first, the one to count */
		iter = printer_items(row, &row->object, "status.containerStatuses");
		for (uint32_t k = 0; k <= i; k++)
			if (!printer_next(row, &iter, &status))
				return;
		pod_add_container(row, pod, &status, &failed, &running);
	}
	if (*pod->prefix || !bytes_equal(pod->reason, BYTES_LIT("Completed")))
		return;
	/* The pod as a whole runs while a container still does. */
	if (running && !printer_is_empty(
			       row, &row->object, "status.conditions[type=Ready][status=True]")) {
		pod->reason = BYTES_LIT("Running");
	} else if (failed.reason.size) {
		pod->reason = failed.reason;
		pod->number = failed.number;
	} else if (running) {
		pod->reason = BYTES_LIT("NotReady");
	}
}

/* Three cells need the summary, made once. */
static const struct pod_summary *pod_summarize(struct printer_row *row)
{
	struct pod_summary *pod = &row->pod;
	struct value containers, container;

	if (pod->made)
		return pod;
	*pod = (struct pod_summary){.made = true, .prefix = "", .restarted = BYTES_NONE};
	struct value_iter iter = printer_items(row, &row->object, "spec.initContainers");
	struct bytes reason = printer_text(row, &row->object, "status.reason");
	pod->reason = reason.size ? reason : printer_text(row, &row->object, "status.phase");
	if (!printer_is_empty(row, &row->object,
		    "status.conditions[type=PodScheduled][reason=SchedulingGated]"))
		pod->reason = BYTES_LIT("SchedulingGated");
	if (printer_find(row, &row->object, "spec.containers", &containers))
		pod->total = containers.count;
	for (; printer_next(row, &iter, &container); pod->init_total++)
		pod->total += printer_is(row, &container, "restartPolicy", "Always");
	if (!pod_add_inits(row, pod))
		pod_add_containers(row, pod);
	if (!printer_text(row, &row->object, "metadata.deletionTimestamp").size)
		return pod;
	struct bytes phase = printer_text(row, &row->object, "status.phase");
	bool is_over = bytes_equal(phase, BYTES_LIT("Succeeded")) ||
		       bytes_equal(phase, BYTES_LIT("Failed"));
	bool is_lost = printer_is(row, &row->object, "status.reason", "NodeLost");
	if (is_lost || !is_over) {
		pod->reason = is_lost ? BYTES_LIT("Unknown") : BYTES_LIT("Terminating");
		pod->prefix = "";
		pod->progress = false;
	}
	return pod;
}

static enum printer_cell_type pod_ready(struct printer_row *row)
{
	const struct pod_summary *pod = pod_summarize(row);

	buf_printf(row->text, "%" PRId64 "/%" PRId64, pod->ready, pod->total);
	return PRINTER_STRING;
}

static enum printer_cell_type pod_status(struct printer_row *row)
{
	const struct pod_summary *pod = pod_summarize(row);
	const char *reason = pod->reason.data;

	buf_str(row->text, pod->prefix);
	buf_bytes_put(row->text, pod->reason);
	if (pod->progress)
		buf_printf(row->text, "%" PRId64 "/%" PRId64, pod->done, pod->init_total);
	else if (pod->reason.size && reason[pod->reason.size - 1] == ':')
		buf_printf(row->text, "%" PRId64, pod->number);
	return PRINTER_STRING;
}

static enum printer_cell_type pod_restarts(struct printer_row *row)
{
	const struct pod_summary *pod = pod_summarize(row);
	char age[AGE_SIZE];

	buf_printf(row->text, "%" PRId64, pod->restarts);
	if (!pod->restarts || !pod->restarted.size)
		return PRINTER_STRING;
	age_between(pod->restarted, row->now_ns, "<unknown>", age);
	buf_printf(row->text, " (%s ago)", age);
	return PRINTER_STRING;
}

static enum printer_cell_type pod_gates(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "spec.readinessGates");
	int open = 0, all = 0;
	struct value gate;

	for (; printer_next(row, &iter, &gate); all++) {
		row->key = printer_text(row, &gate, "conditionType");
		open += printer_is(
			row, &row->object, "status.conditions[type=@key].status", "True");
	}
	if (!all)
		return printer_put(row, "<none>");
	buf_printf(row->text, "%d/%d", open, all);
	return PRINTER_STRING;
}

/* ---- evictions ---------------------------------------------------------- */

#define EVICTION_TARGET \
	CELL_TEXT("Target", "spec.target.pod.name", "<unset>"), \
		CELL_WORDS("Target Type", "[{spec.target.pod:if}Pod|<unset>]"), \
		CELL_WORDS("Status", "[{status.conditions[type=TargetEvicted][status=True].type} " \
				     "({status.conditions[type=TargetEvicted].reason})|" \
				     "{status.conditions[type=Failed][status=True].type} " \
				     "({status.conditions[type=Failed].reason})|" \
				     "{status.observedGeneration:if}Progressing|Pending]")

/* Finds the responder at work, else the one that ended last; of type VALUE_NIL: none has begun. */
static void eviction_find(
	struct printer_row *row, struct value *ret_target, unsigned *ret_begun, unsigned *ret_all)
{
	static const char *const ends[] = {"Canceled", "Interrupted", "Completed"};
	struct value_iter iter = printer_items(row, &row->object, "status.targetResponders");
	bool some_active = false;
	struct value target;

	*ret_target = (struct value){.type = VALUE_NIL};
	*ret_begun = *ret_all = 0;
	for (; printer_next(row, &iter, &target); ++*ret_all) {
		bool is_active = printer_is(row, &target, "state", "Active"), begun = is_active;

		for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
			begun |= printer_is(row, &target, "state", ends[i]);
		*ret_begun += begun;
		if (is_active || (begun && !some_active))
			*ret_target = target;
		some_active |= is_active;
	}
}

static enum printer_cell_type eviction_active(struct printer_row *row)
{
	unsigned begun, all;
	struct value target;

	eviction_find(row, &target, &begun, &all);
	printer_put_words(row, &target, "{name|<unset>}");
	buf_printf(row->text, " (%u/%u)", begun, all);
	return PRINTER_STRING;
}

/* Appends the template OF for the status of the responder; $ is the responder. */
static enum printer_cell_type eviction_put(struct printer_row *row)
{
	struct value target, status;
	unsigned begun, all;

	eviction_find(row, &target, &begun, &all);
	row->key = printer_text(row, &target, "name");
	if (!printer_find(row, &row->object, "status.responders[name=@key]", &status))
		status.type = VALUE_NIL;
	row->second = &target;
	printer_put_words(row, &status, row->of);
	row->second = NULL;
	return PRINTER_STRING;
}

/* The first name of those that have not withdrawn, and how many there are. */
static enum printer_cell_type eviction_requesters(struct printer_row *row)
{
	struct bytes first = BYTES_NONE;
	struct printer_list all;
	size_t n = 0;

	printer_list_at(row, &row->object, "status.requesters", "name", &all);
	for (size_t i = 0; i < all.n; i++)
		if (!printer_is(row, &all.items[i].value, "intent", "Withdrawn") && !n++)
			first = all.items[i].key;
	if (n)
		buf_bytes_put(row->text, first);
	else
		buf_str(row->text, all.n ? "<withdrawn>" : "<none>");
	if (n > 1)
		buf_printf(row->text, " + %zu more...", n - 1);
	printer_list_release(&all);
	return PRINTER_STRING;
}

const struct printer_kind_row printer_kinds_pods[] = {
	KIND("", "pods", CELL_NAME, CELL_FUNCTION("Ready", "string", 0, pod_ready),
		CELL_FUNCTION("Status", "string", 0, pod_status),
		CELL_FUNCTION("Restarts", "string", 0, pod_restarts), CELL_AGE,
		CELL_WIDE("IP", "status.podIPs[0].ip", "<none>"),
		CELL_WIDE("Node", "spec.nodeName", "<none>"),
		CELL_WIDE("Nominated Node", "status.nominatedNodeName", "<none>"),
		CELL_FUNCTION("Readiness Gates", "string", 1, pod_gates)),
	KIND("lifecycle.k8s.io", "evictions", CELL_NAME, EVICTION_TARGET,
		CELL_FUNCTION("Active Responder", "string", 0, eviction_active),
		CELL_FUNCTION_OF("Responder Status", 0, eviction_put,
			"[{name:if}[{$[state=Active]:if}[{startTime:if}Started ({startTime:since} "
			"ago)|Active]|"
			"{$[state=Completed]:if}Completed[ ({completionTime:since} "
			"ago)]|{$state}]|<unset>]"),
		CELL_FUNCTION_OF("Responder Expected Finish", 0, eviction_put,
			"[{name:if}[{$[state=Active]:if}"
			"[{startTime:if}{expectedCompletionTime:until|<unknown>}|<unknown>]|-]|<"
			"unknown>]"),
		CELL_FUNCTION("Requesters", "string", 0, eviction_requesters), CELL_AGE,
		CELL_FUNCTION_OF("Responder Heartbeat", 1, eviction_put,
			"[{heartbeatTime:since} ago|<unset>]"),
		CELL_FUNCTION_OF(
			"Responder Status Message", 1, eviction_put, "[{message:trim}|<unset>]")),
	KIND("lifecycle.k8s.io", "evictionrequests", CELL_NAME, EVICTION_TARGET,
		CELL_TEXT("Requester", "spec.requester", NULL),
		CELL_TEXT("Intent", "spec.intent", NULL), CELL_AGE),
	{0},
};
