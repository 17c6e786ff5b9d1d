/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of services, endpoints, ingresses and the other kinds of the network. */
#include <ctype.h>
#include <inttypes.h>

#include "print/table/printer_internal.h"

#define SHOWN_MAX 3 /* shown items of a list */

/* Appends " + N more..." if more items than SHOWN_MAX were counted. */
static enum printer_cell_type network_end_list(
	struct printer_row *row, size_t start, size_t count, const char *none)
{
	if (count > SHOWN_MAX)
		buf_printf(row->text, " + %zu more...", count - SHOWN_MAX);
	return printer_put(row, row->text->size == start ? none : "");
}

/* ---- services ----------------------------------------------------------- */

static enum printer_cell_type service_cluster_ip(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "spec.clusterIPs");
	struct value first;

	if (printer_next(row, &iter, &first))
		return printer_put_bytes(row, first.text);
	return printer_put(row, "<none>");
}

enum printer_cell_type printer_put_balancer(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "status.loadBalancer.ingress");
	size_t n = 0, start = row->text->size;
	struct bytes addresses[64];
	struct value ingress;

	while (n < ARRAY_SIZE(addresses) && printer_next(row, &iter, &ingress)) {
		struct bytes address = printer_text(row, &ingress, "ip");
		size_t at = 0;

		if (!address.size)
			address = printer_text(row, &ingress, "hostname");
		while (at < n && bytes_compare(addresses[at], address) < 0)
			at++;
		if (!address.size || (at < n && bytes_equal(addresses[at], address)))
			continue;
		memmove(addresses + at + 1, addresses + at, (n - at) * sizeof(*addresses));
		addresses[at] = address;
		n++;
	}
	for (size_t i = 0; i < n; i++)
		printer_put_more(row, start, addresses[i]);
	return PRINTER_STRING;
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
		(void)printer_put_balancer(row);
	else if (!printer_is(row, &row->object, "spec.type", "ClusterIP") &&
		 !printer_is(row, &row->object, "spec.type", "NodePort"))
		return printer_put(row, "<unknown>");
	while (printer_next(row, &iter, &ip))
		printer_put_more(row, start, ip.text);
	if (row->text->size == start)
		buf_str(row->text, is_balanced ? "<pending>" : "<none>");
	return PRINTER_STRING;
}

static enum printer_cell_type service_ports(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "spec.ports");
	size_t start = row->text->size;
	struct value port;

	while (printer_next(row, &iter, &port)) {
		int64_t node_port = printer_integer(row, &port, "nodePort");

		buf_str(row->text, row->text->size > start ? "," : "");
		buf_printf(row->text, "%" PRId64, printer_integer(row, &port, "port"));
		if (node_port > 0)
			buf_printf(row->text, ":%" PRId64, node_port);
		buf_byte(row->text, '/');
		buf_bytes_put(row->text, printer_text(row, &port, "protocol"));
	}
	return printer_put(row, row->text->size == start ? "<none>" : "");
}

static const struct printer_cell_row service_cells[] = {
	CELL_NAME,
	CELL_TEXT("Type", "spec.type", NULL,
		"type determines how the Service is exposed. Defaults to ClusterIP. Valid options "
		"are ExternalName, ClusterIP, NodePort, and LoadBalancer. \"ClusterIP\" allocates "
		"a cluster-internal IP address for load-balancing to endpoints. Endpoints are "
		"determined by the selector or if that is not specified, by manual construction of "
		"an Endpoints object or EndpointSlice objects. If clusterIP is \"None\", no "
		"virtual IP is allocated and the endpoints are published as a set of endpoints "
		"rather than a virtual IP. \"NodePort\" builds on ClusterIP and allocates a port "
		"on every node which routes to the same endpoints as the clusterIP. "
		"\"LoadBalancer\" builds on NodePort and creates an external load-balancer (if "
		"supported in the current cloud) which routes to the same endpoints as the "
		"clusterIP. \"ExternalName\" aliases this service to the specified externalName. "
		"Several other fields do not apply to ExternalName services. More info: https://ku"
		"bernetes.io/docs/concepts/services-networking/service/#publishing-services-servic"
		"e-types"),
	CELL_FUNCTION("Cluster-IP", "string", 0, service_cluster_ip,
		"clusterIP is the IP address of the service and is usually assigned randomly. If "
		"an address is specified manually, is in-range (as per system configuration), and "
		"is not in use, it will be allocated to the service; otherwise creation of the "
		"service will fail. This field may not be changed through updates unless the type "
		"field is also being changed to ExternalName (which requires this field to be "
		"blank) or the type field is being changed from ExternalName (in which case this "
		"field may optionally be specified, as describe above).  Valid values are "
		"\"None\", empty string (\"\"), or a valid IP address. Setting this to \"None\" "
		"makes a \"headless service\" (no virtual IP), which is useful when direct "
		"endpoint connections are preferred and proxying is not required.  Only applies to "
		"types ClusterIP, NodePort, and LoadBalancer. If this field is specified when "
		"creating a Service of type ExternalName, creation will fail. This field will be "
		"wiped when updating a Service to type ExternalName. More info: https://kubernetes"
		".io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies"),
	CELL_FUNCTION("External-IP", "string", 0, service_external_ip,
		"externalIPs is a list of IP addresses for which nodes in the cluster will also "
		"accept traffic for this service.  These IPs are not managed by Kubernetes.  The "
		"user is responsible for ensuring that traffic arrives at a node with this IP.  A "
		"common example is external load-balancers that are not part of the Kubernetes "
		"system."),
	CELL_FUNCTION("Port(s)", "string", 0, service_ports,
		"The list of ports that are exposed by this service. More info: https://kubernetes"
		".io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies"),
	CELL_AGE,
	{{"Selector", "string", "", 1,
		 "Route service traffic to pods with label keys and values matching this selector. "
		 "If empty or not present, the service is assumed to have an external process "
		 "managing its endpoints, which Kubernetes will not modify. Only applies to types "
		 "ClusterIP, NodePort, and LoadBalancer. Ignored if type is ExternalName. More "
		 "info: https://kubernetes.io/docs/concepts/services-networking/service/"},
		HOW_LABELS, "spec.selector"},
};

/* ---- endpoints ---------------------------------------------------------- */

static void endpoints_add(struct printer_row *row, size_t start, size_t *count, struct bytes ip,
	const struct value *port)
{
	bool is_ipv6 = ip.size && memchr(ip.data, ':', ip.size);

	if (++*count > SHOWN_MAX)
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
	return network_end_list(row, start, count, n_subsets ? "" : "<none>");
}

static const struct printer_cell_row endpoints_cells[] = {
	CELL_NAME,
	CELL_FUNCTION("Endpoints", "string", 0, endpoints_list,
		"The set of all endpoints is the union of all subsets. Addresses are placed into "
		"subsets according to the IPs they share. A single address with multiple ports, "
		"some of which are ready and some of which are not (because they come from "
		"different containers) will result in the address being displayed in different "
		"subsets for the different ports. No address will appear in both Addresses and "
		"NotReadyAddresses in the same subset. Sets of addresses and ports that comprise a "
		"service."),
	CELL_AGE,
};

static enum printer_cell_type slice_ports(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "ports");
	size_t start = row->text->size, count = 0;
	struct value port;

	for (; printer_next(row, &iter, &port); count++) {
		struct value found;
		struct bytes text = BYTES_LIT("*");

		if (printer_find(row, &port, "port", &found))
			text = printer_text(row, &port, "port");
		else if (printer_find(row, &port, "name", &found))
			text = found.text;
		if (count < SHOWN_MAX) {
			buf_str(row->text, count ? "," : "");
			buf_bytes_put(row->text, text);
		}
	}
	return network_end_list(row, start, count, "<unset>");
}

static enum printer_cell_type slice_endpoints(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "endpoints");
	size_t start = row->text->size, count = 0;
	struct value endpoint, address;

	while (printer_next(row, &iter, &endpoint)) {
		struct value_iter addresses = printer_items(row, &endpoint, "addresses");

		for (; printer_next(row, &addresses, &address); count++)
			if (count < SHOWN_MAX)
				printer_put_more(row, start, address.text);
	}
	return network_end_list(row, start, count, "<unset>");
}

static const struct printer_cell_row slice_cells[] = {
	CELL_NAME,
	CELL_TEXT("AddressType", "addressType", NULL,
		"addressType specifies the type of address carried by this EndpointSlice. All "
		"addresses in this slice must be the same type. This field is immutable after "
		"creation. The following address types are currently supported: * IPv4: Represents "
		"an IPv4 Address. * IPv6: Represents an IPv6 Address. * FQDN: Represents a Fully "
		"Qualified Domain Name. (Deprecated) The EndpointSlice controller only generates, "
		"and kube-proxy only processes, slices of addressType "
		"\"IPv4\" and \"IPv6\". No semantics are defined for the \"FQDN\" type."),
	CELL_FUNCTION("Ports", "string", 0, slice_ports,
		"ports specifies the list of network ports exposed by each endpoint in this slice. "
		"Each port must have a unique name. Each slice may include a maximum of 100 ports. "
		"Services always have at least 1 port, so EndpointSlices generated by the "
		"EndpointSlice controller will likewise always have at least 1 port. "
		"EndpointSlices used for other purposes may have an empty ports list."),
	CELL_FUNCTION("Endpoints", "string", 0, slice_endpoints,
		"endpoints is a list of unique endpoints in this slice. Each slice may include a "
		"maximum of 1000 endpoints."),
	CELL_AGE,
};

/* ---- ingresses ---------------------------------------------------------- */

static enum printer_cell_type ingress_hosts(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "spec.rules");
	size_t start = row->text->size, rules = 0, shown = 0;
	bool more = false;
	struct value rule;

	for (; printer_next(row, &iter, &rule); rules++) {
		struct bytes host = printer_text(row, &rule, "host");

		more |= shown == SHOWN_MAX;
		if (more || !host.size)
			continue;
		printer_put_more(row, start, host);
		shown++;
	}
	if (more)
		buf_printf(row->text, " + %zu more...", rules - SHOWN_MAX);
	return printer_put(row, shown ? "" : "*");
}

static enum printer_cell_type ingress_ports(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "spec.tls");
	struct value tls;

	return printer_put(row, printer_next(row, &iter, &tls) ? "80, 443" : "80");
}

static const struct printer_cell_row ingress_cells[] = {
	CELL_NAME,
	CELL_TEXT("Class", "spec.ingressClassName", "<none>",
		"The name of the IngressClass resource that should be used for additional "
		"configuration"),
	CELL_FUNCTION("Hosts", "string", 0, ingress_hosts,
		"Hosts that incoming requests are matched against before the ingress rule"),
	CELL_FUNCTION("Address", "string", 0, printer_put_balancer,
		"Address is a list containing ingress points for the load-balancer"),
	CELL_FUNCTION("Ports", "string", 0, ingress_ports, "Ports of TLS configurations that open"),
	CELL_AGE,
};

static enum printer_cell_type class_name(struct printer_row *row)
{
	struct value value;

	(void)printer_put_bytes(row, printer_text(row, &row->object, "metadata.name"));
	if (printer_find_annotation(row, "ingressclass.kubernetes.io/is-default-class", &value) &&
		bytes_equal(value.text, BYTES_LIT("true")))
		buf_str(row->text, " (default)");
	return PRINTER_STRING;
}

static enum printer_cell_type class_parameters(struct printer_row *row)
{
	struct value parameters, group;

	if (!printer_find(row, &row->object, "spec.parameters", &parameters))
		return printer_put(row, "<none>");
	(void)printer_put_bytes(row, printer_text(row, &parameters, "kind"));
	if (printer_find(row, &parameters, "apiGroup", &group))
		buf_printf(row->text, ".%.*s", BYTES_ARG(group.text));
	buf_byte(row->text, '/');
	return printer_put_bytes(row, printer_text(row, &parameters, "name"));
}

static const struct printer_cell_row class_cells[] = {
	{{"Name", "string", "name", 0, ABOUT_NAME}, HOW_FUNCTION, .fn = class_name},
	CELL_TEXT("Controller", "spec.controller", NULL,
		"Controller that is responsible for handling this class"),
	CELL_FUNCTION("Parameters", "string", 0, class_parameters,
		"A reference to a resource with additional parameters"),
	CELL_AGE,
};

/* ---- other kinds -------------------------------------------------------- */

static const struct printer_cell_row policy_cells[] = {
	CELL_NAME,
	{{"Pod-Selector", "string", "", 0,
		 "podSelector selects the pods to which this NetworkPolicy object applies. The "
		 "array of rules is applied to any pods selected by this field. An empty selector "
		 "matches all pods in the policy's namespace. Multiple network policies can select "
		 "the same set of pods. In this case, the ingress rules for each are combined "
		 "additively. This field is optional. If it is not specified, it defaults to an "
		 "empty selector."},
		HOW_SELECTOR, "spec.podSelector"},
	CELL_AGE,
};

static const struct printer_cell_row cidr_cells[] = {
	CELL_NAME,
	{{"CIDRs", "string", "", 0,
		 "cidrs defines the IP blocks in CIDR notation (e.g. \"192.168.0.0/24\" or "
		 "\"2001:db8::/64\") from which to assign service cluster IPs. Max of two CIDRs is "
		 "allowed, one of each IP family. This field is immutable."},
		HOW_LIST, "spec.cidrs"},
	CELL_AGE,
};

static enum printer_cell_type address_parent(struct printer_row *row)
{
	struct value parent;

	if (!printer_find(row, &row->object, "spec.parentRef", &parent))
		return printer_put(row, "<none>");
	struct bytes group = printer_text(row, &parent, "group");
	struct bytes namespace_ = printer_text(row, &parent, "namespace");
	size_t start = row->text->size;
	(void)printer_put_bytes(row, printer_text(row, &parent, "resource"));
	if (group.size)
		buf_printf(row->text, ".%.*s", BYTES_ARG(group));
	for (size_t i = start; i < row->text->size; i++)
		row->text->data[i] = (uint8_t)tolower(row->text->data[i]);
	if (namespace_.size)
		buf_printf(row->text, "/%.*s", BYTES_ARG(namespace_));
	buf_byte(row->text, '/');
	return printer_put_bytes(row, printer_text(row, &parent, "name"));
}

static const struct printer_cell_row address_cells[] = {
	CELL_NAME,
	CELL_FUNCTION("ParentRef", "string", 0, address_parent,
		"parentRef references the resource that an IPAddress is attached to. An IPAddress "
		"must reference a parent object."),
	CELL_AGE, /* a cell without a column, as the API server sends it */
};

const struct printer_kind_row printer_kinds_network[] = {
	KIND("", "services", service_cells),
	KIND("", "endpoints", endpoints_cells),
	KIND("discovery.k8s.io", "endpointslices", slice_cells),
	KIND("networking.k8s.io", "ingresses", ingress_cells),
	KIND("networking.k8s.io", "ingressclasses", class_cells),
	KIND("networking.k8s.io", "networkpolicies", policy_cells),
	KIND("networking.k8s.io", "servicecidrs", cidr_cells),
	{.group = "networking.k8s.io",
		.resource = "ipaddresses",
		.cells = address_cells,
		.n = 2,
		.n_extra = 1},
	{0},
};
