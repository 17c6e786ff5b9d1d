/* SPDX-License-Identifier: Apache-2.0 */
/* Pods, and the pod templates of controllers. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "print/describe/describe_internal.h"

/* ---- containers --------------------------------------------------------- */

/* "Port:  80/TCP (http)", "Ports: ..." for several, of the member FIELD. */
static void container_put_ports(struct describe *d, const char *label, const char *field)
{
	struct describe_items ports;
	struct bytes name;

	describe_items_at(d, "ports", NULL, &ports);
	describe_indent(d, 0);
	buf_printf(
		d->row.text, "%s%s:\t%s", label, ports.n > 1 ? "s" : "", ports.n ? "" : "<none>");
	for (size_t i = 0; i < ports.n; i++) {
		const struct value *port = &ports.items[i].value;

		buf_printf(d->row.text, "%s%" PRId64 "/", i ? ", " : "",
			printer_integer(&d->row, port, field));
		describe_text(d, printer_text(&d->row, port, "protocol"));
		name = printer_text(&d->row, port, "name");
		if (!name.size)
			continue;
		buf_str(d->row.text, " (");
		describe_text(d, name);
		buf_byte(d->row.text, ')');
	}
	buf_byte(d->row.text, '\n');
	describe_items_release(&ports);
}

static void container_ports(struct describe *d)
{
	container_put_ports(d, "Port", "containerPort");
	container_put_ports(d, "Host Port", "hostPort");
}

static void container_word(struct describe *d)
{
	describe_text_lines(d, describe_get(d, "@"));
}

/* A state of a container: d->here is its state or lastState. */
static const struct describe_line container_running[] = {
	{.level = 1, .line = "Started:\t{startedAt:time}"}, END_OF_LINES};
static const struct describe_line container_waiting[] = {
	{.level = 1, .when = "reason", .line = "Reason:\t{reason}"}, END_OF_LINES};
static const struct describe_line container_terminated[] = {
	{.level = 1, .when = "reason", .line = "Reason:\t{reason}"},
	{.level = 1, .when = "message", .line = "Message:\t{message}"},
	{.level = 1, .line = "Exit Code:\t{exitCode|0}"},
	{.level = 1, .when = "signal", .line = "Signal:\t{signal}"},
	{.level = 1, .line = "Started:\t{startedAt:time}"},
	{.level = 1, .line = "Finished:\t{finishedAt:time}"},
	END_OF_LINES,
};

static void container_put_state(struct describe *d, const char *label, const char *path)
{
	static const struct {
		const char *member, *word;
		const struct describe_line *lines;
	} states[] = {{"running", "Running", container_running},
		{"waiting", "Waiting", container_waiting},
		{"terminated", "Terminated", container_terminated}};
	struct value here = d->here, state, part;
	size_t i = ARRAY_SIZE(states);

	if (describe_find(d, path, &state))
		for (i = 0; i < ARRAY_SIZE(states); i++)
			if (printer_find(&d->row, &state, states[i].member, &part))
				break;
	describe_indent(d, 0);
	buf_printf(d->row.text, "%s:\t%s\n", label,
		i < ARRAY_SIZE(states) ? states[i].word : "Waiting");
	if (i == ARRAY_SIZE(states))
		return;
	d->here = part;
	describe_lines(d, states[i].lines);
	d->here = here;
}

static void container_states(struct describe *d)
{
	struct value ended;

	if (!d->has_second)
		return;
	container_put_state(d, "State", "$state");
	if (describe_find(d, "$lastState.terminated", &ended))
		container_put_state(d, "Last State", "$lastState");
	describe_template(d, "Ready:\t{$ready:bool}");
	describe_template(d, "Restart Count:\t{$restartCount|0}");
}

/* ---- probes ------------------------------------------------------------- */

static void probe_put_address(struct describe *d)
{
	char scheme[16];
	struct bytes path = describe_get(d, "httpGet.path"), host = describe_get(d, "httpGet.host");

	describe_copy(d, "httpGet.scheme", scheme, sizeof(scheme));
	for (char *c = scheme; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	bool is_v6 = host.size && memchr(host.data, ':', host.size);
	buf_printf(d->row.text, "http-get %s%s//%s", scheme, *scheme ? ":" : "", is_v6 ? "[" : "");
	describe_text(d, host);
	buf_str(d->row.text, is_v6 ? "]:" : ":");
	describe_text(d, describe_get(d, "httpGet.port"));
	if (path.size && *(const char *)path.data != '/')
		buf_byte(d->row.text, '/');
	for (size_t i = 0; i < path.size; i++) { /* Go's url.URL, of a path alone */
		unsigned char c = ((const unsigned char *)path.data)[i];
		bool plain = isalnum(c) || (c && strchr("-_.~$&+,/:;=@", c));

		buf_printf(d->row.text, plain ? "%c" : "%%%02X", c);
	}
}

/* "Liveness:  http-get http://:80/ delay=0s ...": d->here is the probe. */
static void probe_put(struct describe *d, const char *label)
{
	static const char times[] = "delay={initialDelaySeconds|0}s timeout={timeoutSeconds|0}s "
				    "period={periodSeconds|0}s "
				    "successThreshold={successThreshold|0} "
				    "failureThreshold={failureThreshold|0}";
	struct value part;

	describe_indent(d, 0);
	buf_printf(d->row.text, "%s:\t", label);
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

static void probe_liveness(struct describe *d)
{
	probe_put(d, "Liveness");
}

static void probe_readiness(struct describe *d)
{
	probe_put(d, "Readiness");
}

static void probe_startup(struct describe *d)
{
	probe_put(d, "Startup");
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
			describe_text(d, describe_get(d, "name"));
		buf_str(d->row.text, first ? ":\t" : "\t");
		first = false;
		describe_text(d, BYTES(next, size));
		buf_byte(d->row.text, '\n');
		next += size + 1;
	} while (next <= end);
}

/* The text of the pod's field for a variable; nothing in a template. A path such as
 * metadata.labels['a'] is one of the project's grammar also. */
static void container_field_variable(struct describe *d)
{
	char path[256];
	const char *text = "";
	size_t size = 0;
	struct kinf_object pod = {
		.body = d->object->body.data, .body_size = (uint32_t)d->object->body.size};

	describe_copy(d, "valueFrom.fieldRef.fieldPath", path, sizeof(path));
	int r = *d->margin ? KINF_NOT_FOUND : kinf_object_path(&pod, path, &text, &size);
	if (r != KINF_FOUND)
		size = 0; /* an invalid path also has no value */
	if (r == -ENOMEM)
		describe_note(d, r);
	describe_indent(d, 0);
	describe_text(d, describe_get(d, "name"));
	buf_str(d->row.text, ":\t");
	describe_text(d, BYTES(text, size));
	buf_str(d->row.text, " (");
	describe_text(d, describe_get(d, "valueFrom.fieldRef.apiVersion"));
	buf_byte(d->row.text, ':');
	describe_text(d, bytes_str(path));
	buf_str(d->row.text, ")\n");
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
	(void)amount_parse(printer_text(&d->row, &d->container, path), &amount);
	int64_t n = amount.milli / divisor.milli + (amount.milli % divisor.milli > 0);
	describe_indent(d, 0);
	describe_text(d, describe_get(d, "name"));
	if (!n && (bytes_equal(resource, BYTES_LIT("limits.cpu")) ||
			  bytes_equal(resource, BYTES_LIT("limits.memory"))))
		buf_str(d->row.text, ":\tnode allocatable (");
	else
		buf_printf(d->row.text, ":\t%" PRId64 " (", n);
	describe_text(d, resource);
	buf_str(d->row.text, ")\n");
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
	{.when = "configMapRef",
		.unless = "prefix",
		.line = "{configMapRef.name}\tConfigMap\tOptional: {configMapRef.optional|false}"},
	{.when = "configMapRef",
		.lines =
			(const struct describe_line[]){
				{.when = "prefix",
					.line = "{configMapRef.name}\tConfigMap with prefix "
						"'{prefix}'\tOptional: "
						"{configMapRef.optional|false}"},
				END_OF_LINES}},
	{.when = "secretRef",
		.unless = "prefix",
		.line = "{secretRef.name}\tSecret\tOptional: {secretRef.optional|false}"},
	{.when = "secretRef",
		.lines =
			(const struct describe_line[]){
				{.when = "prefix",
					.line = "{secretRef.name}\tSecret with prefix "
						"'{prefix}'\tOptional: {secretRef.optional|false}"},
				END_OF_LINES}},
	END_OF_LINES,
};

/* ---- a container -------------------------------------------------------- */

static void container_mounts(struct describe *d)
{
	struct value here = d->here;
	struct describe_items all;

	describe_items_at(d, "volumeMounts", "mountPath", &all);
	for (size_t i = 0; i < all.n; i++) {
		d->here = all.items[i].value;
		bool read_only = bytes_equal(describe_get(d, "readOnly"), BYTES_LIT("true"));

		describe_template(d, describe_is_empty(d, "subPath")
					     ? (read_only ? "{mountPath} from {name} (ro)"
							  : "{mountPath} from {name} (rw)")
				     : read_only
					     ? "{mountPath} from {name} (ro,path=\"{subPath}\")"
					     : "{mountPath} from {name} (rw,path=\"{subPath}\")");
	}
	describe_items_release(&all);
	d->here = here;
}

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
	{.fn = container_ports},
	{.when = "securityContext.seccompProfile",
		.line = "SeccompProfile:\t{securityContext.seccompProfile.type}"},
	{.when = "securityContext.seccompProfile.localhostProfile",
		.level = 1,
		.line = "LocalhostProfile:\t{securityContext.seccompProfile.localhostProfile}"},
	{.when = "command", .line = "Command:"},
	{.each = "command", .level = 1, .fn = container_word},
	{.when = "args", .line = "Args:"},
	{.each = "args", .level = 1, .fn = container_word},
	{.fn = container_states},
	{.in = "resources", .lines = describe_resources},
	{.in = "livenessProbe", .fn = probe_liveness},
	{.in = "readinessProbe", .fn = probe_readiness},
	{.in = "startupProbe", .fn = probe_startup},
	{.when = "envFrom", .line = "Environment Variables from:"},
	{.each = "envFrom", .level = 1, .lines = container_source},
	{.unless = "env", .line = "Environment:\t<none>"},
	{.when = "env", .line = "Environment:"},
	{.each = "env", .level = 1, .lines = container_variable},
	{.unless = "volumeMounts", .line = "Mounts:\t<none>"},
	{.when = "volumeMounts", .line = "Mounts:"},
	{.level = 1, .fn = container_mounts},
	{.when = "volumeDevices", .line = "Devices:"},
	{.each = "volumeDevices", .level = 1, .line = "{devicePath} from {name}"},
	END_OF_LINES,
};

/* Finds the status of the container NAME in the list at STATUSES. */
static bool container_find_status(
	struct describe *d, const char *statuses, struct bytes name, struct value *ret_status)
{
	struct value_iter iter = printer_items(&d->row, &d->here, statuses);

	while (printer_next(&d->row, &iter, ret_status))
		if (bytes_equal(printer_text(&d->row, ret_status, "name"), name))
			return true;
	return false;
}

/* Appends the containers at PATH of the pod, or template, d->here. STATUSES NULL: they have
 * none. */
static void container_list(
	struct describe *d, const char *label, const char *path, const char *statuses)
{
	struct value pod = d->here;
	struct describe_items all;

	describe_items_at(d, path, NULL, &all);
	buf_printf(d->row.text, "%s%s:%s\n", *d->margin ? "  " : "", label, all.n ? "" : " <none>");
	for (size_t i = 0; i < all.n; i++) {
		struct bytes name = printer_text(&d->row, &all.items[i].value, "name");

		d->here = pod;
		d->has_second = statuses && container_find_status(d, statuses, name, &d->second);
		d->here = d->container = all.items[i].value;
		buf_printf(d->row.text, "  %s", d->margin);
		describe_template(d, "{name}:");
		d->level += 2;
		describe_lines(d, container_lines);
		d->level -= 2;
	}
	describe_items_release(&all);
	d->has_second = false;
	d->here = pod;
}

static void pod_init_containers(struct describe *d)
{
	container_list(d, "Init Containers", "spec.initContainers", "status.initContainerStatuses");
}

static void pod_containers(struct describe *d)
{
	container_list(d, "Containers", "spec.containers", "status.containerStatuses");
}

static void pod_ephemeral_containers(struct describe *d)
{
	container_list(d, "Ephemeral Containers", "spec.ephemeralContainers",
		"status.ephemeralContainerStatuses");
}

static void template_init_containers(struct describe *d)
{
	container_list(d, "Init Containers", "spec.initContainers", NULL);
}

static void template_containers(struct describe *d)
{
	container_list(d, "Containers", "spec.containers", NULL);
}

/* ---- pods --------------------------------------------------------------- */

static void pod_volumes(struct describe *d)
{
	struct value pod = d->here;
	struct describe_items all;

	describe_items_at(d, "spec.volumes", NULL, &all);
	buf_printf(d->row.text, "%sVolumes:%s\n", *d->margin ? "  " : "", all.n ? "" : "\t<none>");
	for (size_t i = 0; i < all.n; i++) {
		d->here = all.items[i].value;
		buf_printf(d->row.text, "  %s", d->margin);
		describe_template(d, "{name}:");
		describe_volume_source(d);
	}
	describe_items_release(&all);
	d->here = pod;
}

/* "node.kubernetes.io/x=v:NoExecute op=Exists for 300s" of d->here. */
static void toleration_put(struct describe *d)
{
	struct bytes key = describe_get(d, "key"), value = describe_get(d, "value"),
		     effect = describe_get(d, "effect");
	struct buf *out = d->row.text;

	describe_text(d, key);
	buf_str(out, value.size ? "=" : "");
	describe_text(d, value);
	buf_str(out, effect.size ? ":" : "");
	describe_text(d, effect);
	if (!value.size && bytes_equal(describe_get(d, "operator"), BYTES_LIT("Exists")))
		buf_str(out, key.size || effect.size ? " op=Exists" : "op=Exists");
	if (!describe_is_empty(d, "tolerationSeconds")) {
		buf_str(out, " for ");
		describe_text(d, describe_get(d, "tolerationSeconds"));
		buf_byte(out, 's');
	}
}

static void pod_tolerations(struct describe *d)
{
	struct value pod = d->here;
	struct describe_items all;

	describe_items_at(d, "spec.tolerations", "key", &all);
	buf_printf(
		d->row.text, "%sTolerations:\t%s", *d->margin ? "  " : "", all.n ? "" : "<none>");
	for (size_t i = 0; i < all.n; i++) {
		buf_str(d->row.text, i ? "\n\t" : "");
		d->here = all.items[i].value;
		toleration_put(d);
	}
	buf_byte(d->row.text, '\n');
	describe_items_release(&all);
	d->here = pod;
}

static void pod_spread(struct describe *d)
{
	struct value pod = d->here, selector;
	struct describe_items all;

	describe_items_at(d, "spec.topologySpreadConstraints", "topologyKey", &all);
	for (size_t i = 0; i < all.n; i++) {
		d->here = all.items[i].value;
		buf_str(d->row.text, *d->margin ? "  " : "");
		buf_str(d->row.text, i ? "\t" : "Topology Spread Constraints:\t");
		describe_text(d, describe_get(d, "topologyKey"));
		buf_byte(d->row.text, ':');
		describe_text(d, describe_get(d, "whenUnsatisfiable"));
		buf_str(d->row.text, " when max skew ");
		describe_text(d, describe_get(d, "maxSkew"));
		buf_str(d->row.text, " is exceeded");
		if (describe_find(d, "labelSelector", &selector)) {
			buf_str(d->row.text, " for selector ");
			printer_put_selector(&d->row, &selector);
		}
		buf_byte(d->row.text, '\n');
	}
	describe_items_release(&all);
	d->here = pod;
}

static void pod_status(struct describe *d)
{
	struct bytes phase = describe_get(d, "status.phase");

	if (describe_is_empty(d, "metadata.deletionTimestamp") ||
		bytes_equal(phase, BYTES_LIT("Failed")) ||
		bytes_equal(phase, BYTES_LIT("Succeeded"))) {
		describe_template(d, "Status:\t{status.phase}");
		return;
	}
	describe_template(d, "Status:\tTerminating (lasts {metadata.deletionTimestamp:since})");
	describe_template(d, "Termination Grace Period:\t{metadata.deletionGracePeriodSeconds|0}s");
}

/* The status of a readiness gate's condition: d->here is the gate. */
static void pod_gate(struct describe *d)
{
	struct bytes type = describe_get(d, "conditionType"), status = BYTES_LIT("<none>");
	struct value_iter iter = printer_items(&d->row, &d->row.object, "status.conditions");
	struct value condition;

	while (printer_next(&d->row, &iter, &condition))
		if (bytes_equal(printer_text(&d->row, &condition, "type"), type)) {
			status = printer_text(&d->row, &condition, "status");
			break;
		}
	describe_indent(d, 0);
	describe_text(d, type);
	buf_str(d->row.text, " \t");
	describe_text(d, status);
	buf_str(d->row.text, " \n");
}

static void pod_controller(struct describe *d)
{
	struct value here = d->here;
	struct value_iter iter = printer_items(&d->row, &here, "metadata.ownerReferences");

	while (printer_next(&d->row, &iter, &d->here))
		if (printer_is_true(&d->row, &d->here, "controller")) {
			describe_template(d, "Controlled By:\t{kind}/{name}");
			break;
		}
	d->here = here;
}

const struct describe_line describe_controller[] = {{.fn = pod_controller}, END_OF_LINES};

static const struct describe_line scheduling_group_lines[] = {
	{.line = "PodGroupName:\t{podGroupName}"},
	END_OF_LINES,
};

static const struct describe_line pod_lines[] = {
	LINES_NAME,
	{.when = "spec.priority", .line = "Priority:\t{spec.priority}"},
	{.when = "spec.priorityClassName",
		.line = "Priority Class Name:\t{spec.priorityClassName}"},
	{.when = "spec.runtimeClassName", .line = "Runtime Class Name:\t{spec.runtimeClassName}"},
	{.when = "spec.serviceAccountName", .line = "Service Account:\t{spec.serviceAccountName}"},
	{.unless = "spec.nodeName", .line = "Node:\t<none>"},
	{.when = "spec.nodeName", .line = "Node:\t{spec.nodeName}/{status.hostIP}"},
	{.when = "status.startTime", .line = "Start Time:\t{status.startTime:time}"},
	LINES_LABELS,
	{.fn = pod_status},
	{.when = "status.reason", .line = "Reason:\t{status.reason}"},
	{.when = "status.message", .line = "Message:\t{status.message}"},
	{.when = "spec.securityContext.seccompProfile",
		.line = "SeccompProfile:\t{spec.securityContext.seccompProfile.type}"},
	{.when = "spec.securityContext.seccompProfile.localhostProfile",
		.line = "LocalhostProfile:\t{spec.securityContext.seccompProfile."
			"localhostProfile}"},
	{.line = "IP:\t{status.podIP}"},
	{.unless = "status.podIPs", .line = "IPs:\t<none>"},
	{.when = "status.podIPs", .line = "IPs:"},
	{.each = "status.podIPs", .level = 1, .line = "IP:\t{ip}"},
	{.fn = pod_controller},
	{.when = "status.nominatedNodeName",
		.line = "NominatedNodeName:\t{status.nominatedNodeName}"},
	{.when = "spec.resources", .line = "Resources:"},
	{.in = "spec.resources", .level = 1, .lines = describe_resources},
	{.when = "spec.initContainers", .fn = pod_init_containers},
	{.fn = pod_containers},
	{.when = "spec.ephemeralContainers", .fn = pod_ephemeral_containers},
	{.when = "spec.readinessGates", .line = "Readiness Gates:\n  Type\tStatus"},
	{.each = "spec.readinessGates", .level = 1, .fn = pod_gate},
	{.when = "status.conditions", .line = "Conditions:\n  Type\tStatus"},
	{.each = "status.conditions", .level = 1, .line = "{type} \t{status} "},
	{.fn = pod_volumes},
	{.line = "QoS Class:\t{status.qosClass}"}, /* by the API server */
	{.line = "Node-Selectors:\t{spec.nodeSelector:labels}"},
	{.fn = pod_tolerations},
	{.fn = pod_spread},
	{.when = "spec.schedulingGroup", .line = "SchedulingGroup:"},
	{.in = "spec.schedulingGroup", .level = 1, .lines = scheduling_group_lines},
	{.fn = describe_events},
	END_OF_LINES,
};

static const struct describe_line template_lines[] = {
	{.line = "  Labels:\t{metadata.labels:labels}"},
	{.when = "metadata.annotations",
		.line = "  Annotations:\t{metadata.annotations:annotations}"},
	{.when = "spec.serviceAccountName",
		.level = 1,
		.line = "Service Account:\t{spec.serviceAccountName}"},
	{.when = "spec.initContainers", .fn = template_init_containers},
	{.fn = template_containers},
	{.fn = pod_volumes},
	{.fn = pod_spread},
	{.when = "spec.priorityClassName",
		.level = 1,
		.line = "Priority Class Name:\t{spec.priorityClassName}"},
	{.line = "  Node-Selectors:\t{spec.nodeSelector:labels}"},
	{.fn = pod_tolerations},
	{.when = "spec.schedulingGroup", .line = "  SchedulingGroup:"},
	{.in = "spec.schedulingGroup", .level = 1, .lines = scheduling_group_lines},
	END_OF_LINES,
};

static void template_put(struct describe *d)
{
	d->margin = " ";
	describe_lines(d, template_lines);
	d->margin = "";
}

const struct describe_line describe_pod_template[] = {
	{.line = "Pod Template:", .in = "template", .fn = template_put},
	END_OF_LINES,
};

const struct describe_kind describe_kinds_pods[] = {{"pods", pod_lines}, {0}};
