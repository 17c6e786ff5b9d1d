/* SPDX-License-Identifier: Apache-2.0 */
/* Services and Ingresses, with the endpoints from EndpointSlices. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "print/describe/describe_internal.h"

#define ENDPOINTS_SHOWN 3

/* ---- endpoints ---------------------------------------------------------- */

struct network_endpoints {
	/* the name of one; its endpoints are listed, or those of slices without ports */
	struct bytes port;
	size_t n;
	struct buf text;
	bool exists; /* there is a slice */
};

/* Adds the ready addresses of the slice d->here, with PORT, if it is not NULL. */
static void network_add_addresses(
	struct describe *d, struct network_endpoints *all, const struct value *port)
{
	struct value_iter iter = printer_items(&d->row, &d->here, "endpoints"), addresses;
	struct value endpoint, address;
	struct buf *out = &all->text;

	while (printer_next(&d->row, &iter, &endpoint)) {
		addresses = printer_items(&d->row, &endpoint, "addresses");
		if (printer_is(&d->row, &endpoint, "conditions.ready", "false") ||
			!printer_next(&d->row, &addresses, &address) || all->n++ >= ENDPOINTS_SHOWN)
			continue;
		bool is_v6 = port && address.text.size &&
			     memchr(address.text.data, ':', address.text.size);

		buf_printf(out, "%s%s", all->n > 1 ? "," : "", is_v6 ? "[" : "");
		buf_bytes_put(out, address.text);
		buf_str(out, is_v6 ? "]" : "");
		if (port)
			buf_printf(out, ":%" PRId64, printer_integer(&d->row, port, "port"));
	}
}

static void network_add_slice(struct describe *d, void *arg)
{
	struct network_endpoints *all = arg;
	struct value_iter iter = printer_items(&d->row, &d->here, "ports");
	struct value port;
	bool some = false;

	all->exists = true;
	for (; printer_next(&d->row, &iter, &port); some = true)
		if (bytes_equal(printer_text(&d->row, &port, "name"), all->port))
			network_add_addresses(d, all, &port);
	if (!some)
		network_add_addresses(d, all, NULL);
}

/* Appends the endpoints of the port PORT of the service named by row.key:
 * "10.0.0.1:80,10.0.0.2:80 + 5 more...". Returns false if EndpointSlices are not fed. */
static bool network_put_endpoints(struct describe *d, struct bytes port)
{
	struct network_endpoints all = {.port = port};
	bool known =
		describe_each_object(d, "endpointslices.discovery.k8s.io", "{metadata.namespace}",
			"kubernetes.io/service-name={@key}", "", network_add_slice, &all);

	if (known && !all.exists)
		buf_str(d->row.text, "<none>");
	buf_bytes_put(d->row.text, buf_bytes(&all.text));
	if (all.n > ENDPOINTS_SHOWN)
		buf_printf(d->row.text, " + %zu more...", all.n - ENDPOINTS_SHOWN);
	printer_note(&d->row, buf_error(&all.text));
	buf_release(&all.text);
	return known;
}

/* ---- services ----------------------------------------------------------- */

static const struct describe_line service_port_lines[] = {
	{.line = "Port:\t{name|<unset>}\t{port}/{protocol}"},
	{.line = "TargetPort:\t{targetPort|0}/{protocol}"},
	{.some = "AppProtocol:\t{appProtocol}"},
	{.when = "nodePort", .line = "NodePort:\t{name|<unset>}\t{nodePort}/{protocol}"},
	END_OF_LINES,
};

static void service_ports(struct describe *d)
{
	struct value here = d->here;
	struct value_iter iter = printer_items(&d->row, &here, "spec.ports");

	d->row.key = describe_get(d, "metadata.name");
	while (printer_next(&d->row, &iter, &d->here)) {
		describe_lines(d, service_port_lines);
		size_t line = d->row.text->size;
		buf_str(d->row.text, "Endpoints:\t");
		if (network_put_endpoints(d, describe_get(d, "name")))
			buf_byte(d->row.text, '\n');
		else
			buf_truncate(d->row.text, line);
	}
	d->here = here;
}

static const struct describe_line service_lines[] = {
	LINES_NAME,
	LINES_LABELS,
	{.line = "Selector:\t{spec.selector:map}"},
	{.line = "Type:\t{spec.type}"},
	{.some = "IP Family Policy:\t{spec.ipFamilyPolicy}"},
	{.line = "IP Families:\t{spec.ipFamilies:comma|<none>}"},
	{.line = "IP:\t{spec.clusterIP}"},
	{.line = "IPs:\t{spec.clusterIPs:comma|<none>}"},
	{.some = "External IPs:\t{spec.externalIPs:comma}"},
	{.some = "Desired LoadBalancer IP:\t{spec.loadBalancerIP}"},
	{.some = "External Name:\t{spec.externalName}"},
	{.when = "status.loadBalancer.ingress",
		.line = "LoadBalancer Ingress:\t",
		.list = "status.loadBalancer.ingress",
		.item = "[{ip}[ ({ipMode})]|{hostname}]",
		.between = ", "},
	{.fn = service_ports},
	{.line = "Session Affinity:\t{spec.sessionAffinity}"},
	{.some = "External Traffic Policy:\t{spec.externalTrafficPolicy}"},
	{.some = "Internal Traffic Policy:\t{spec.internalTrafficPolicy}"},
	{.some = "HealthCheck NodePort:\t{spec.healthCheckNodePort}"},
	{.some = "LoadBalancer Source Ranges:\t{spec.loadBalancerSourceRanges:comma}"},
	{.some = "Traffic Distribution:\t{spec.trafficDistribution}"},
	{.fn = describe_events},
	END_OF_LINES,
};

/* ---- ingresses ---------------------------------------------------------- */

struct ingress_port {
	char path[160];  /* of the name of the service's port */
	char found[128]; /* that name */
	bool exists;
};

static void ingress_find_port(struct describe *d, void *arg)
{
	struct ingress_port *port = arg;

	port->exists = true;
	(void)snprintf(
		port->found, sizeof(port->found), "%.*s", BYTES_ARG(describe_get(d, port->path)));
}

/* Appends the backend d->here of an ingress: "web:80 (10.0.0.1:8080)". */
static void ingress_put_backend(struct describe *d)
{
	struct ingress_port port = {.exists = false};
	struct bytes number = describe_get(d, "service.port.number");
	struct bytes name = describe_get(d, "service.port.name");

	if (describe_is_empty(d, "service")) {
		if (!describe_is_empty(d, "resource"))
			describe_words(d, "APIGroup: {resource.apiGroup|<none>}, "
					  "Kind: {resource.kind}, Name: {resource.name}");
		return;
	}
	describe_words(d, "{service.name}:[{service.port.number}|{service.port.name}]");
	(void)snprintf(port.path, sizeof(port.path), "spec.ports[%s=%.*s].name",
		number.size ? "port" : "name", BYTES_ARG(number.size ? number : name));
	d->row.key = describe_get(d, "service.name");
	if (!describe_each_object(d, "services", "{metadata.namespace}", "",
		    "metadata.name={@key:value}", ingress_find_port, &port))
		return;
	buf_str(d->row.text, " (");
	if (!port.exists)
		describe_words(d, "<error: services \"{service.name}\" not found>");
	else
		(void)network_put_endpoints(d, bytes_str(port.found));
	buf_byte(d->row.text, ')');
}

static void ingress_put_default(struct describe *d)
{
	struct value here = d->here, backend;

	if (!describe_find(d, "spec.defaultBackend", &backend)) {
		buf_str(d->row.text, "<default>");
		return;
	}
	d->here = backend;
	ingress_put_backend(d);
	d->here = here;
}

/* Appends the rules of d->here. Returns how many there are. */
static size_t ingress_put_rules(struct describe *d)
{
	struct value here = d->here, rule, path, http;
	struct value_iter rules = printer_items(&d->row, &here, "spec.rules"), paths;
	size_t n = 0;

	while (printer_next(&d->row, &rules, &rule)) {
		if (!printer_find(&d->row, &rule, "http", &http))
			continue;
		n++;
		d->here = rule;
		describe_template(d, "  {host|*}\t");
		paths = printer_items(&d->row, &rule, "http.paths");
		while (printer_next(&d->row, &paths, &path)) {
			printer_put_words(&d->row, &path, "    \t{path} \t");
			if (printer_find(&d->row, &path, "backend", &d->here))
				ingress_put_backend(d);
			buf_byte(d->row.text, '\n');
		}
	}
	d->here = here;
	return n;
}

static void ingress_backends(struct describe *d)
{
	buf_str(d->row.text, "Default backend:\t");
	ingress_put_default(d);
	buf_byte(d->row.text, '\n');
	describe_lines(
		d, LINES{{.when = "spec.tls", .line = "TLS:"},
			   {.each = "spec.tls",
				   .level = 1,
				   .line = "[{secretName} terminates|SNI routes] {hosts:comma}"},
			   {.line = "Rules:\n  Host\tPath\tBackends\n  ----\t----\t--------"},
			   END_OF_LINES});
	if (!ingress_put_rules(d)) {
		buf_str(d->row.text, "  *\t*\t");
		ingress_put_default(d);
		buf_byte(d->row.text, '\n');
	}
}

static const struct describe_line ingress_lines[] = {
	{.line = "Name:\t{metadata.name}"},
	{.line = "Labels:\t{metadata.labels:labels}"},
	{.line = "Namespace:\t{metadata.namespace}"},
	{.line = "Address:\t{status.loadBalancer.ingress:balancer}"},
	{.line = "Ingress Class:\t{spec.ingressClassName|<none>}"},
	{.fn = ingress_backends},
	{.line = "Annotations:\t{metadata.annotations:annotations}"},
	{.fn = describe_events},
	END_OF_LINES,
};

const struct describe_kind describe_kinds_network[] = {
	{"services", service_lines}, {"ingresses.networking.k8s.io", ingress_lines}, {0}};
