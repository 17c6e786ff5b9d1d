/* SPDX-License-Identifier: Apache-2.0 */
/* Pods, and the pod templates of controllers. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "print/describe/describe_internal.h"

/* ---- containers --------------------------------------------------------- */

static void container_word(struct describe *d)
{
	describe_text_lines(d, describe_get(d, "@"));
}

/* A state of a container: d->here is its state or lastState. */
static const struct describe_line container_running[] = {
	{.level = 1, .line = "Started:\t{startedAt:time}"}, END_OF_LINES};
static const struct describe_line container_waiting[] = {
	{.level = 1, .some = "Reason:\t{reason}"}, END_OF_LINES};
static const struct describe_line container_terminated[] = {
	{.level = 1, .some = "Reason:\t{reason}"},
	{.level = 1, .some = "Message:\t{message}"},
	{.level = 1, .line = "Exit Code:\t{exitCode|0}"},
	{.level = 1, .some = "Signal:\t{signal}"},
	{.level = 1, .line = "Started:\t{startedAt:time}"},
	{.level = 1, .line = "Finished:\t{finishedAt:time}"},
	END_OF_LINES,
};

/* ---- probes ------------------------------------------------------------- */

static void probe_put_address(struct describe *d)
{
	struct bytes path = describe_get(d, "httpGet.path"), host = describe_get(d, "httpGet.host");
	bool is_v6 = host.size && memchr(host.data, ':', host.size);

	describe_words(d, "http-get [{httpGet.scheme:lower}:]//");
	buf_printf(d->row.text, is_v6 ? "[%.*s]:" : "%.*s:", BYTES_ARG(host));
	describe_words(d, "{httpGet.port}");
	if (path.size && *(const char *)path.data != '/')
		buf_byte(d->row.text, '/');
	for (size_t i = 0; i < path.size; i++) { /* Go's url.URL, of a path alone */
		unsigned char c = ((const unsigned char *)path.data)[i];
		bool plain = isalnum(c) || (c && strchr("-_.~$&+,/:;=@", c));

		buf_printf(d->row.text, plain ? "%c" : "%%%02X", c);
	}
}

/* "Liveness:  http-get http://:80/ delay=0s ...": d->here is the probe. */
static void probe_put(struct describe *d)
{
	static const char times[] = "delay={initialDelaySeconds|0}s timeout={timeoutSeconds|0}s "
				    "period={periodSeconds|0}s "
				    "successThreshold={successThreshold|0} "
				    "failureThreshold={failureThreshold|0}";
	struct value part;

	describe_indent(d, 0);
	buf_printf(d->row.text, "%s:\t", d->row.of);
	if (describe_find(d, "exec", &part)) {
		describe_words(d, "exec {exec.command:go} ");
	} else if (describe_find(d, "httpGet", &part)) {
		probe_put_address(d);
		buf_byte(d->row.text, ' ');
	} else if (describe_find(d, "tcpSocket", &part)) {
		describe_words(d, "tcp-socket {tcpSocket.host}:{tcpSocket.port} ");
	} else if (describe_find(d, "grpc", &part)) {
		describe_words(d, "grpc <pod>:{grpc.port} {grpc.service} ");
	} else {
		describe_words(d, "unknown ");
	}
	describe_words(d, times);
	buf_byte(d->row.text, '\n');
}

/* ---- environment -------------------------------------------------------- */

/* The value of a variable of several lines, each but the first without a name. */
static void container_plain_variable(struct describe *d)
{
	struct bytes text = describe_get(d, "value");
	const char *next = text.data, *end = next + text.size;
	bool first = true;

	do {
		const char *stop = next < end ? memchr(next, '\n', (size_t)(end - next)) : NULL;
		size_t size = (size_t)((stop ? stop : end) - next);

		describe_indent(d, 0);
		if (first)
			buf_bytes_put(d->row.text, describe_get(d, "name"));
		buf_str(d->row.text, first ? ":\t" : "\t");
		first = false;
		buf_bytes_put(d->row.text, BYTES(next, size));
		buf_byte(d->row.text, '\n');
		next += size + 1;
	} while (next <= end);
}

/* The text of the pod's field for a variable; nothing in a template. A path such as
 * metadata.labels['a'] is one of the project's grammar also. */
static void container_field_variable(struct describe *d)
{
	struct bytes path = describe_get(d, "valueFrom.fieldRef.fieldPath");
	char copy[256];
	const char *text = "";
	size_t size = 0;
	struct kinf_object pod = {
		.body = d->object->body.data, .body_size = (uint32_t)d->object->body.size};

	(void)snprintf(copy, sizeof(copy), "%.*s", BYTES_ARG(path));
	int r = strcmp(d->object->resource, "pods") ? KINF_NOT_FOUND
						    : kinf_object_path(&pod, copy, &text, &size);
	if (r != KINF_FOUND)
		size = 0; /* an invalid path also has no value */
	if (r == -ENOMEM)
		printer_note(&d->row, r);
	describe_indent(d, 0);
	describe_words(d, "{name}:\t");
	buf_put(d->row.text, text, size);
	describe_words(d, " ({valueFrom.fieldRef.apiVersion}:{valueFrom.fieldRef.fieldPath})\n");
}

/* The amount of the container's resource in units of the divisor, rounded up. */
static void container_resource_variable(struct describe *d)
{
	struct bytes resource = describe_get(d, "valueFrom.resourceFieldRef.resource"), text;
	struct amount amount, divisor;
	char path[256];

	text = describe_get(d, "valueFrom.resourceFieldRef.divisor");
	if (!amount_parse(text, &divisor) || divisor.milli <= 0)
		divisor.milli = 1000;
	(void)snprintf(path, sizeof(path), "resources.%.*s", BYTES_ARG(resource));
	(void)amount_parse(printer_text(&d->row, d->container, path), &amount);
	int64_t n = amount.milli / divisor.milli + (amount.milli % divisor.milli > 0);
	describe_indent(d, 0);
	describe_words(d, "{name}:\t");
	if (!n && (bytes_equal(resource, BYTES_LIT("limits.cpu")) ||
			  bytes_equal(resource, BYTES_LIT("limits.memory"))))
		buf_str(d->row.text, "node allocatable");
	else
		buf_printf(d->row.text, "%" PRId64, n);
	describe_words(d, " ({valueFrom.resourceFieldRef.resource})\n");
}

static const struct describe_line container_variable[] = {
	{.unless = "valueFrom", .fn = container_plain_variable},
	{.when = "valueFrom.fieldRef", .fn = container_field_variable},
	{.when = "valueFrom.resourceFieldRef", .fn = container_resource_variable},
	{.when = "valueFrom.secretKeyRef",
		.line = "{name}:\t<set to the key '{valueFrom.secretKeyRef.key}' in secret "
			"'{valueFrom.secretKeyRef.name}'>\tOptional: "
			"{valueFrom.secretKeyRef.optional|false}"},
	{.when = "valueFrom.configMapKeyRef",
		.line = "{name}:\t<set to the key '{valueFrom.configMapKeyRef.key}' of config map "
			"'{valueFrom.configMapKeyRef.name}'>\tOptional: "
			"{valueFrom.configMapKeyRef.optional|false}"},
	END_OF_LINES,
};

static const struct describe_line container_source[] = {
	{.some = "{configMapRef.name}\tConfigMap[ with prefix '{prefix}']\tOptional: "
		 "{configMapRef.optional|false}"},
	{.some = "{secretRef.name}\tSecret[ with prefix '{prefix}']\tOptional: "
		 "{secretRef.optional|false}"},
	END_OF_LINES,
};

/* ---- a container -------------------------------------------------------- */

const struct describe_line describe_resources[] = {
	{.when = "limits", .line = "Limits:"},
	{.each = "limits", .level = 1, .line = "{@key}:\t{@}"},
	{.when = "requests", .line = "Requests:"},
	{.each = "requests", .level = 1, .line = "{@key}:\t{@}"},
	END_OF_LINES,
};

static const struct describe_line container_lines[] = {
	{.when = "$name", .line = "Container ID:\t{$containerID}"},
	{.line = "Image:\t{image}"},
	{.when = "$name", .line = "Image ID:\t{$imageID}"},
	{.line = "Port[{ports[1]:if}s]:\t",
		.list = "ports",
		.item = "{containerPort|0}/{protocol}[ ({name})]",
		.between = ", ",
		.none = "<none>"},
	{.line = "Host Port[{ports[1]:if}s]:\t",
		.list = "ports",
		.item = "{hostPort|0}/{protocol}[ ({name})]",
		.between = ", ",
		.none = "<none>"},
	{.when = "securityContext.seccompProfile",
		.line = "SeccompProfile:\t{securityContext.seccompProfile.type}"},
	{.level = 1,
		.some = "LocalhostProfile:\t{securityContext.seccompProfile.localhostProfile}"},
	{.when = "command", .line = "Command:"},
	{.each = "command", .level = 1, .fn = container_word},
	{.when = "args", .line = "Args:"},
	{.each = "args", .level = 1, .fn = container_word},
	{.when = "$name",
		.line = "State:\t[{$state.running:if}Running|{$state.terminated:if}Terminated|"
			"Waiting]"},
	{.in = "$state.running", .lines = container_running},
	{.in = "$state.waiting", .lines = container_waiting},
	{.in = "$state.terminated", .lines = container_terminated},
	{.when = "$lastState.terminated", .line = "Last State:\tTerminated"},
	{.in = "$lastState.terminated", .lines = container_terminated},
	{.when = "$name", .line = "Ready:\t{$ready:bool}"},
	{.when = "$name", .line = "Restart Count:\t{$restartCount|0}"},
	{.in = "resources", .lines = describe_resources},
	{.in = "livenessProbe", .fn = probe_put, .of = "Liveness"},
	{.in = "readinessProbe", .fn = probe_put, .of = "Readiness"},
	{.in = "startupProbe", .fn = probe_put, .of = "Startup"},
	{.when = "envFrom", .line = "Environment Variables from:"},
	{.each = "envFrom", .level = 1, .lines = container_source},
	{.unless = "env", .line = "Environment:\t<none>"},
	{.when = "env", .line = "Environment:"},
	{.each = "env", .level = 1, .lines = container_variable},
	{.unless = "volumeMounts", .line = "Mounts:\t<none>"},
	{.when = "volumeMounts", .line = "Mounts:"},
	{.each = "volumeMounts",
		.order = "mountPath",
		.level = 1,
		.line = "{mountPath} from {name} ({readOnly:access}[,path=\"{subPath}\"])"},
	{.when = "volumeDevices", .line = "Devices:"},
	{.each = "volumeDevices", .level = 1, .line = "{devicePath} from {name}"},
	END_OF_LINES,
};

/* Describes the container d->here of a pod, with its status in the list OF, or of a template. */
static void container_put(struct describe *d)
{
	const struct value container = d->here;
	int level = d->level;
	struct value status;

	d->row.key = describe_get(d, "name");
	if (printer_find(&d->row, &d->row.object, d->row.of, &status))
		d->row.second = &status;
	d->container = &container;
	buf_blanks(d->row.text, (size_t)level + 2);
	describe_words(d, "{name}:\n");
	d->level = 2;
	describe_lines(d, container_lines);
	d->level = level;
	d->row.second = NULL;
}

#define CONTAINERS \
	{.when = "spec.initContainers", .line = "Init Containers:"}, \
		{.each = "spec.initContainers", \
			.fn = container_put, \
			.of = "status.initContainerStatuses[name=@key]"}, \
		{.line = "Containers:[{spec.containers:if}| <none>]"}, \
	{ \
		.each = "spec.containers", .fn = container_put, \
		.of = "status.containerStatuses[name=@key]" \
	}

/* ---- pods --------------------------------------------------------------- */

static void volume_put(struct describe *d)
{
	int level = d->level;

	buf_blanks(d->row.text, (size_t)level + 2);
	describe_words(d, "{name}:\n");
	d->level = 0;
	describe_volume_source(d);
	d->level = level;
}

#define VOLUMES \
	{.line = "Volumes:[{spec.volumes:if}|\t<none>]"}, \
	{ \
		.each = "spec.volumes", .fn = volume_put \
	}

/* "node.kubernetes.io/x=v:NoExecute op=Exists for 300s" */
#define TOLERATIONS \
	{ \
		.line = "Tolerations:\t", .list = "spec.tolerations", .order = "key", \
		.item = "{key}[={value}][:{effect}]" \
			"[{value:if}|{[operator=Exists]:if}[{key:if} |{effect:if} ]op=Exists]" \
			"[ for {tolerationSeconds}s]", \
		.between = "\n\t", .none = "<none>" \
	}

static void pod_spread(struct describe *d)
{
	struct value pod = d->here, selector;
	struct printer_list all;

	describe_items_at(d, "spec.topologySpreadConstraints", "topologyKey", &all);
	for (size_t i = 0; i < all.n; i++) {
		d->here = all.items[i].value;
		describe_indent(d, 0);
		buf_str(d->row.text, i ? "\t" : "Topology Spread Constraints:\t");
		describe_words(
			d, "{topologyKey}:{whenUnsatisfiable} when max skew {maxSkew} is exceeded");
		if (describe_find(d, "labelSelector", &selector))
			describe_words(d, " for selector {labelSelector:selector}");
		buf_byte(d->row.text, '\n');
	}
	printer_list_release(&all);
	d->here = pod;
}

/* The status of a readiness gate's condition: d->here is the gate. */
static void pod_gate(struct describe *d)
{
	d->row.second = &d->row.object;
	d->row.key = describe_get(d, "conditionType");
	describe_template(d, "{conditionType} \t{$status.conditions[type=@key].status|<none>} ");
	d->row.second = NULL;
}

static const struct describe_line scheduling_group_lines[] = {
	{.line = "PodGroupName:\t{podGroupName}"},
	END_OF_LINES,
};

static const struct describe_line pod_lines[] = {
	LINES_NAME,
	{.some = "Priority:\t{spec.priority}"},
	{.some = "Priority Class Name:\t{spec.priorityClassName}"},
	{.some = "Runtime Class Name:\t{spec.runtimeClassName}"},
	{.some = "Service Account:\t{spec.serviceAccountName}"},
	{.unless = "spec.nodeName", .line = "Node:\t<none>"},
	{.some = "Node:\t{spec.nodeName}/{status.hostIP}"},
	{.some = "Start Time:\t{status.startTime:time}"},
	LINES_LABELS,
	{.line = "Status:\t[{metadata.deletionTimestamp:if}"
		 "[{status[phase=Failed].phase}|{status[phase=Succeeded].phase}|"
		 "Terminating (lasts {metadata.deletionTimestamp:since})\n"
		 "Termination Grace Period:\t{metadata.deletionGracePeriodSeconds|0}s]|"
		 "{status.phase}]"},
	{.some = "Reason:\t{status.reason}"},
	{.some = "Message:\t{status.message}"},
	{.when = "spec.securityContext.seccompProfile",
		.line = "SeccompProfile:\t{spec.securityContext.seccompProfile.type}"},
	{.some = "LocalhostProfile:\t{spec.securityContext.seccompProfile.localhostProfile}"},
	{.line = "IP:\t{status.podIP}"},
	{.unless = "status.podIPs", .line = "IPs:\t<none>"},
	{.when = "status.podIPs", .line = "IPs:"},
	{.each = "status.podIPs", .level = 1, .line = "IP:\t{ip}"},
	LINE_CONTROLLER,
	{.some = "NominatedNodeName:\t{status.nominatedNodeName}"},
	{.when = "spec.resources", .line = "Resources:"},
	{.in = "spec.resources", .level = 1, .lines = describe_resources},
	CONTAINERS,
	{.when = "spec.ephemeralContainers", .line = "Ephemeral Containers:"},
	{.each = "spec.ephemeralContainers",
		.fn = container_put,
		.of = "status.ephemeralContainerStatuses[name=@key]"},
	{.when = "spec.readinessGates", .line = "Readiness Gates:\n  Type\tStatus"},
	{.each = "spec.readinessGates", .level = 1, .fn = pod_gate},
	{.when = "status.conditions", .line = "Conditions:\n  Type\tStatus"},
	{.each = "status.conditions", .level = 1, .line = "{type} \t{status} "},
	VOLUMES,
	{.line = "QoS Class:\t{status.qosClass}"}, /* by the API server */
	{.line = "Node-Selectors:\t{spec.nodeSelector:labels}"},
	TOLERATIONS,
	{.fn = pod_spread},
	{.when = "spec.schedulingGroup", .line = "SchedulingGroup:"},
	{.in = "spec.schedulingGroup", .level = 1, .lines = scheduling_group_lines},
	{.fn = describe_events},
	END_OF_LINES,
};

static const struct describe_line template_lines[] = {
	{.line = "Labels:\t{metadata.labels:labels}"},
	{.some = "Annotations:\t{metadata.annotations:annotations}"},
	{.some = "Service Account:\t{spec.serviceAccountName}"},
	CONTAINERS,
	VOLUMES,
	{.fn = pod_spread},
	{.some = "Priority Class Name:\t{spec.priorityClassName}"},
	{.line = "Node-Selectors:\t{spec.nodeSelector:labels}"},
	TOLERATIONS,
	{.when = "spec.schedulingGroup", .line = "SchedulingGroup:"},
	{.in = "spec.schedulingGroup", .lines = scheduling_group_lines},
	END_OF_LINES,
};

const struct describe_line describe_pod_template[] = {
	{.line = "Pod Template:"},
	{.in = "template", .level = 1, .lines = template_lines},
	END_OF_LINES,
};

const struct describe_kind describe_kinds_pods[] = {{"pods", pod_lines}, {0}};
