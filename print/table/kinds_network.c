/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of services, endpoints, ingresses and the other kinds of the network. */
#include <inttypes.h>

#include "print/table/printer_internal.h"

/* ---- services ----------------------------------------------------------- */

void printer_put_balancer(struct printer_row *row, const struct value *in, const char *path)
{
	struct value_iter iter = printer_items(row, in, path);
	struct bytes addresses[64];
	struct value ingress;
	size_t n = 0;

	while (n < ARRAY_SIZE(addresses) && printer_next(row, &iter, &ingress)) {
		bool has_ip = !printer_is_empty(row, &ingress, "ip");

		addresses[n] = printer_text(row, &ingress, has_ip ? "ip" : "hostname");
		n += addresses[n].size > 0;
	}
	printer_put_sorted(row, addresses, n);
}

static enum printer_cell_type service_external_ip(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "spec.externalIPs");
	bool is_balanced = printer_is(row, &row->object, "spec.type", "LoadBalancer");
	size_t start = row->text->size;
	struct value ip;

	if (printer_is(row, &row->object, "spec.type", "ExternalName"))
		return printer_put_bytes(row, printer_text(row, &row->object, "spec.externalName"));
	if (is_balanced)
		printer_put_balancer(row, &row->object, "status.loadBalancer.ingress");
	else if (!printer_is(row, &row->object, "spec.type", "ClusterIP") &&
		 !printer_is(row, &row->object, "spec.type", "NodePort"))
		return printer_put(row, "<unknown>");
	while (printer_next(row, &iter, &ip))
		printer_put_more(row, start, ip.text);
	if (row->text->size == start)
		buf_str(row->text, is_balanced ? "<pending>" : "<none>");
	return PRINTER_STRING;
}

/* ---- endpoints ---------------------------------------------------------- */

static void endpoints_add(struct printer_row *row, size_t start, size_t *count, struct bytes ip,
	const struct value *port)
{
	bool is_ipv6 = ip.size && memchr(ip.data, ':', ip.size);

	if (++*count > PRINTER_SHOWN)
		return;
	buf_str(row->text, row->text->size > start ? "," : "");
	buf_printf(row->text, port && is_ipv6 ? "[%.*s]" : "%.*s", BYTES_ARG(ip));
	if (port)
		buf_printf(row->text, ":%" PRId64, printer_integer(row, port, "port"));
}

static enum printer_cell_type endpoints_list(struct printer_row *row)
{
	struct value_iter subsets = printer_items(row, &row->object, "subsets");
	size_t start = row->text->size, count = 0, n_subsets = 0;
	struct value subset, port, address, list;

	for (; printer_next(row, &subsets, &subset); n_subsets++) {
		struct value_iter ports = printer_items(row, &subset, "ports");
		bool has_ports = printer_find(row, &subset, "ports", &list) && list.count;

		while (!has_ports || printer_next(row, &ports, &port)) {
			struct value_iter addresses = printer_items(row, &subset, "addresses");

			while (printer_next(row, &addresses, &address))
				endpoints_add(row, start, &count, printer_text(row, &address, "ip"),
					has_ports ? &port : NULL);
			if (!has_ports)
				break;
		}
	}
	return printer_put_rest(row, start, count, n_subsets ? "" : "<none>");
}

static enum printer_cell_type slice_endpoints(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "endpoints");
	size_t start = row->text->size, count = 0;
	struct value endpoint, address;

	while (printer_next(row, &iter, &endpoint)) {
		struct value_iter addresses = printer_items(row, &endpoint, "addresses");

		for (; printer_next(row, &addresses, &address); count++)
			if (count < PRINTER_SHOWN)
				printer_put_more(row, start, address.text);
	}
	return printer_put_rest(row, start, count, "<unset>");
}

/* ---- ingresses ---------------------------------------------------------- */

static enum printer_cell_type ingress_hosts(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "spec.rules");
	size_t start = row->text->size, rules = 0, shown = 0;
	bool more = false;
	struct value rule;

	for (; printer_next(row, &iter, &rule); rules++) {
		struct bytes host = printer_text(row, &rule, "host");

		more |= shown == PRINTER_SHOWN;
		if (more || !host.size)
			continue;
		printer_put_more(row, start, host);
		shown++;
	}
	if (more)
		buf_printf(row->text, " + %zu more...", rules - PRINTER_SHOWN);
	return printer_put(row, shown ? "" : "*");
}

/* ---- other kinds -------------------------------------------------------- */

static const struct printer_cell_row address_cells[] = {
	CELL_NAME,
	CELL_WORDS("ParentRef",
		"[{spec.parentRef:if}{spec.parentRef.resource:lower}[.{spec.parentRef.group:lower}]"
		"[/{spec.parentRef.namespace}]/{spec.parentRef.name}|<none>]"),
	CELL_AGE, /* a cell without a column, as the API server sends it */
};

const struct printer_kind_row printer_kinds_network[] = {
	KIND("", "services", CELL_NAME, CELL_TEXT("Type", "spec.type", NULL),
		CELL_WORDS("Cluster-IP", "{spec.clusterIPs[0]|<none>}"),
		CELL_FUNCTION("External-IP", "string", 0, service_external_ip),
		CELL("Port(s)", "string", 0, HOW_EACH, "spec.ports",
			"{port|0}[:{nodePort}]/{protocol}", .none = "<none>"),
		CELL_AGE, CELL_SELECTOR("spec.selector", "map")),
	KIND("", "endpoints", CELL_NAME, CELL_FUNCTION("Endpoints", "string", 0, endpoints_list),
		CELL_AGE),
	KIND("discovery.k8s.io", "endpointslices", CELL_NAME,
		CELL_TEXT("AddressType", "addressType", NULL),
		CELL("Ports", "string", 0, HOW_SOME, "ports", "[{port}|{name}|{[name=]:if}|*]",
			.none = "<unset>"),
		CELL_FUNCTION("Endpoints", "string", 0, slice_endpoints), CELL_AGE),
	KIND("networking.k8s.io", "ingresses", CELL_NAME,
		CELL_TEXT("Class", "spec.ingressClassName", "<none>"),
		CELL_FUNCTION("Hosts", "string", 0, ingress_hosts),
		CELL_WORDS("Address", "{status.loadBalancer.ingress:balancer}"),
		CELL_WORDS("Ports", "[{spec.tls:if}80, 443|80]"), CELL_AGE),
	KIND("networking.k8s.io", "ingressclasses",
		CELL_AS_NAME("Name", 0, HOW_WORDS,
			"{metadata.name}"
			"[{metadata.annotations[ingressclass.kubernetes.io/"
			"is-default-class=true]:if} "
			"(default)]"),
		CELL_TEXT("Controller", "spec.controller", NULL),
		CELL_WORDS("Parameters",
			"[{spec.parameters:if}{spec.parameters.kind}[.{spec.parameters.apiGroup}]/"
			"{spec.parameters.name}|<none>]"),
		CELL_AGE),
	KIND("networking.k8s.io", "networkpolicies", CELL_NAME,
		CELL_WORDS("Pod-Selector", "{spec.podSelector:selector}"), CELL_AGE),
	KIND("networking.k8s.io", "servicecidrs", CELL_NAME,
		CELL_WORDS("CIDRs", "{spec.cidrs:comma}"), CELL_AGE),
	{.group = "networking.k8s.io",
		.resource = "ipaddresses",
		.cells = address_cells,
		.n = 2,
		.n_extra = 1},
	{0},
};
