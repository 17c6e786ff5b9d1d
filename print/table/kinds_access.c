/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of rights, certificates and admission. */
#include "print/table/printer_internal.h"

/* ---- rights ------------------------------------------------------------- */

static enum printer_cell_type binding_role(struct printer_row *row)
{
	(void)printer_put_bytes(row, printer_text(row, &row->object, "roleRef.kind"));
	buf_byte(row->text, '/');
	return printer_put_bytes(row, printer_text(row, &row->object, "roleRef.name"));
}

static enum printer_cell_type binding_subjects(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "subjects");
	bool more = false;
	struct value subject;

	while (printer_next(row, &iter, &subject)) {
		if (!printer_is(row, &subject, "kind", row->of))
			continue;
		buf_str(row->text, more ? ", " : "");
		more = true;
		if (strcmp(row->of, "ServiceAccount") == 0) {
			(void)printer_put_bytes(row, printer_text(row, &subject, "namespace"));
			buf_byte(row->text, '/');
		}
		(void)printer_put_bytes(row, printer_text(row, &subject, "name"));
	}
	return PRINTER_STRING;
}

/* KIND is the binding's. */
#define BINDING_CELLS(role, kind) \
	CELL_NAME, CELL_FUNCTION("Role", "string", 0, binding_role, role), CELL_AGE, \
		CELL_FUNCTION_OF("Users", 1, binding_subjects, "User", "Users in the " kind), \
		CELL_FUNCTION_OF("Groups", 1, binding_subjects, "Group", "Groups in the " kind), \
		CELL_FUNCTION_OF("ServiceAccounts", 1, binding_subjects, "ServiceAccount", \
			"ServiceAccounts in the " kind)

static const struct printer_cell_row binding_cells[] = {BINDING_CELLS(
	"roleRef can reference a Role in the current namespace or a ClusterRole in the global "
	"namespace. If the RoleRef cannot be resolved, the Authorizer must return an error.",
	"roleBinding")};

static const struct printer_cell_row clusterbinding_cells[] = {
	BINDING_CELLS("roleRef can only reference a ClusterRole in the global namespace. If the "
		      "RoleRef cannot be resolved, the Authorizer must return an error.",
		"clusterRoleBinding")};

static const struct printer_cell_row role_cells[] = {CELL_NAME, CELL_CREATED};

/* ---- certificates ------------------------------------------------------- */

static enum printer_cell_type request_duration(struct printer_row *row)
{
	int64_t seconds = printer_integer(row, &row->object, "spec.expirationSeconds");
	char age[AGE_SIZE];
	struct value value;

	if (!printer_find(row, &row->object, "spec.expirationSeconds", &value))
		return printer_put(row, "<none>");
	age_from_seconds(seconds < 0 ? 0 : (uint64_t)seconds, age);
	return printer_put(row, age);
}

static enum printer_cell_type request_condition(struct printer_row *row)
{
	struct value condition;
	bool denied = printer_condition(row, "status.conditions", "Denied", &condition);
	bool approved = printer_condition(row, "status.conditions", "Approved", &condition);
	bool failed = printer_condition(row, "status.conditions", "Failed", &condition);

	(void)printer_put(row, denied ? "Denied" : approved ? "Approved" : "Pending");
	(void)printer_put(row, failed ? ",Failed" : "");
	return printer_put(
		row, printer_text(row, &row->object, "status.certificate").size ? ",Issued" : "");
}

static const struct printer_cell_row request_cells[] = {
	CELL_NAME,
	CELL_AGE,
	CELL_TEXT("SignerName", "spec.signerName", "<none>",
		"Requested signer for the request. It is a qualified name in the form: "
		"`scope-hostname.io/name`. If empty, it will be defaulted:\n 1. If it's a kubelet "
		"client certificate, it is assigned\n    "
		"\"kubernetes.io/kube-apiserver-client-kubelet\".\n 2. If it's a kubelet serving "
		"certificate, it is assigned\n    \"kubernetes.io/kubelet-serving\".\n 3. "
		"Otherwise, it is assigned \"kubernetes.io/legacy-unknown\".\nDistribution of "
		"trust for signers happens out of band. You can select on this field using "
		"`spec.signerName`."),
	CELL_TEXT("Requestor", "spec.username", NULL, "Base64-encoded PKCS#10 CSR data"),
	CELL_FUNCTION("RequestedDuration", "string", 0, request_duration,
		"expirationSeconds is the requested duration of validity of the issued "
		"certificate. The certificate signer may issue a certificate with a different "
		"validity duration so a client must check the delta between the notBefore and and "
		"notAfter fields in the issued certificate to determine the actual "
		"duration.\n\nThe v1.22+ in-tree implementations of the well-known Kubernetes "
		"signers will honor this field as long as the requested duration is not greater "
		"than the maximum duration they will honor per the --cluster-signing-duration CLI "
		"flag to the Kubernetes controller manager.\n\nCertificate signers may not honor "
		"this field for various reasons:\n\n  1. Old signer that is unaware of the field "
		"(such as the in-tree\n     implementations prior to v1.22)\n  2. Signer whose "
		"configured maximum is shorter than the requested duration\n  3. Signer whose "
		"configured minimum is longer than the requested duration\n\nThe minimum valid "
		"value for expirationSeconds is 600, i.e. 10 minutes."),
	CELL_FUNCTION("Condition", "string", 0, request_condition,
		"Conditions applied to the request, such as approval or denial."),
};

static const struct printer_cell_row bundle_cells[] = {
	CELL_NAME,
	CELL_TEXT("SignerName", "spec.signerName", "<none>",
		"signerName indicates the associated signer, if any.\n\nIn order to create or "
		"update a ClusterTrustBundle that sets signerName, you must have the following "
		"cluster-scoped permission: group=certificates.k8s.io resource=signers "
		"resourceName=<the signer name> verb=attest.\n\nIf signerName is not empty, then "
		"the ClusterTrustBundle object must be named with the signer name as a prefix "
		"(translating slashes to colons). For example, for the signer name "
		"`example.com/foo`, valid ClusterTrustBundle object names include "
		"`example.com:foo:abc` and `example.com:foo:v1`.\n\nIf signerName is empty, then "
		"the ClusterTrustBundle object's name must not have such a prefix.\n\nList/watch "
		"requests for ClusterTrustBundles can filter on this field using a "
		"`spec.signerName=NAME` field selector."),
};

static enum printer_cell_type podrequest_state(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "status.conditions");
	struct bytes state = BYTES_LIT("Pending");
	struct value condition;

	while (printer_next(row, &iter, &condition)) {
		struct bytes type = printer_text(row, &condition, "type");

		if (bytes_equal(type, BYTES_LIT("Issued")) ||
			bytes_equal(type, BYTES_LIT("Denied")) ||
			bytes_equal(type, BYTES_LIT("Failed")))
			state = type;
	}
	return printer_put_bytes(row, state);
}

static const struct printer_cell_row podrequest_cells[] = {
	CELL_NAME,
	CELL_TEXT("PodName", "spec.podName", NULL,
		"podName is the name of the pod into which the certificate will be mounted."),
	CELL_TEXT("ServiceAccountName", "spec.serviceAccountName", NULL,
		"serviceAccountName is the name of the service account the pod is running as."),
	CELL_TEXT("NodeName", "spec.nodeName", NULL,
		"nodeName is the name of the node the pod is assigned to."),
	CELL_TEXT("SignerName", "spec.signerName", NULL,
		"signerName indicates the requested signer.\n\nAll signer names beginning with "
		"`kubernetes.io` are reserved for use by the Kubernetes project.  There is "
		"currently one well-known signer documented by the Kubernetes project, "
		"`kubernetes.io/kube-apiserver-client-pod`, which will issue client certificates "
		"understood by kube-apiserver.  It is currently unimplemented."),
	CELL_FUNCTION("State", "string", 0, podrequest_state,
		"Is the request Pending, Issued, Denied, or Failed?"),
	{{"UnverifiedUserAnnotations", "string", "", 0,
		 "unverifiedUserAnnotations allow pod authors to pass additional information to "
		 "the signer implementation.  Kubernetes does not restrict or validate this "
		 "metadata in any way.\n\nEntries are subject to the same validation as object "
		 "metadata annotations, with the addition that all keys must be domain-prefixed. "
		 "No restrictions are placed on values, except an overall size limitation on the "
		 "entire field.\n\nSigners should document the keys and values they support.  "
		 "Signers should deny requests that contain keys they do not recognize."},
		HOW_LABELS, "spec.unverifiedUserAnnotations"},
};

/* ---- admission ---------------------------------------------------------- */

static const struct printer_cell_row webhook_cells[] = {
	CELL_NAME,
	CELL_COUNT("Webhooks", "integer", "webhooks", NULL,
		"Webhooks indicates the number of webhooks registered in this configuration"),
	CELL_AGE,
};

static enum printer_cell_type admission_param_kind(struct printer_row *row)
{
	struct value kind;

	if (!printer_find(row, &row->object, "spec.paramKind", &kind))
		return printer_put(row, "<unset>");
	(void)printer_put_bytes(row, printer_text(row, &kind, "apiVersion"));
	buf_byte(row->text, '/');
	return printer_put_bytes(row, printer_text(row, &kind, "kind"));
}

static const struct printer_cell_row validating_cells[] = {
	CELL_NAME,
	CELL_COUNT("Validations", "integer", "spec.validations", NULL,
		"Validations indicates the number of validation rules defined in this "
		"configuration"),
	CELL_FUNCTION("ParamKind", "string", 0, admission_param_kind,
		"ParamKind specifies the kind of resources used to parameterize this policy"),
	CELL_AGE,
};

static const struct printer_cell_row mutating_cells[] = {
	CELL_NAME,
	CELL_COUNT("Mutations", "integer", "spec.mutations", NULL,
		"Mutation indicates the number of mutations rules defined in this configuration"),
	CELL_FUNCTION("ParamKind", "string", 0, admission_param_kind,
		"ParamKind specifies the kind of resources used to parameterize this policy"),
	CELL_AGE,
};

/* Appends the text of a generated message of the API server for a map: a Go map literal. */
static void admission_put_map(struct printer_row *row, const struct value *selector)
{
	struct bytes keys[PRINTER_KEYS_MAX];
	struct value map, value;

	if (!printer_find(row, selector, "matchLabels", &map))
		return;
	size_t n = printer_keys(&map, keys);

	for (size_t i = 0; i < n; i++)
		if (value_find(&map, keys[i], &value) == FOUND)
			buf_printf(row->text, "%.*s: %.*s,", BYTES_ARG(keys[i]),
				BYTES_ARG(value.text));
}

static void admission_put_expressions(struct printer_row *row, const struct value *selector)
{
	struct value_iter iter = printer_items(row, selector, "matchExpressions");
	struct value expression, value;

	while (printer_next(row, &iter, &expression)) {
		struct value_iter values = printer_items(row, &expression, "values");
		bool more = false;

		buf_printf(row->text, "LabelSelectorRequirement{Key:%.*s,",
			BYTES_ARG(printer_text(row, &expression, "key")));
		buf_printf(row->text, "Operator:%.*s,Values:[",
			BYTES_ARG(printer_text(row, &expression, "operator")));
		for (; printer_next(row, &values, &value); more = true)
			buf_printf(row->text, more ? " %.*s" : "%.*s", BYTES_ARG(value.text));
		buf_str(row->text, "],},");
	}
}

static enum printer_cell_type admission_param(struct printer_row *row)
{
	struct value param, selector;

	if (!printer_find(row, &row->object, "spec.paramRef", &param))
		return printer_put(row, "<unset>");
	struct bytes name = printer_text(row, &param, "name");
	struct bytes namespace_ = printer_text(row, &param, "namespace");
	if (name.size) {
		(void)printer_put_bytes(row, namespace_.size ? namespace_ : BYTES_LIT("*"));
		buf_byte(row->text, '/');
		return printer_put_bytes(row, name);
	}
	if (!printer_find(row, &param, "selector", &selector))
		return printer_put(row, "<unset>");
	buf_str(row->text, "&LabelSelector{MatchLabels:map[string]string{");
	admission_put_map(row, &selector);
	buf_str(row->text, "},MatchExpressions:[]LabelSelectorRequirement{");
	admission_put_expressions(row, &selector);
	return printer_put(row, "},}");
}

static const struct printer_cell_row policybinding_cells[] = {
	CELL_NAME,
	CELL_TEXT("PolicyName", "spec.policyName", NULL,
		"PolicyName indicates the policy definition which the policy binding binded to"),
	CELL_FUNCTION("ParamRef", "string", 0, admission_param,
		"ParamRef indicates the param resource which sets the configuration param"),
	CELL_AGE,
};

const struct printer_kind_row printer_kinds_access[] = {
	KIND("rbac.authorization.k8s.io", "roles", role_cells),
	KIND("rbac.authorization.k8s.io", "clusterroles", role_cells),
	KIND("rbac.authorization.k8s.io", "rolebindings", binding_cells),
	KIND("rbac.authorization.k8s.io", "clusterrolebindings", clusterbinding_cells),
	KIND("certificates.k8s.io", "certificatesigningrequests", request_cells),
	KIND("certificates.k8s.io", "clustertrustbundles", bundle_cells),
	KIND("certificates.k8s.io", "podcertificaterequests", podrequest_cells),
	KIND("admissionregistration.k8s.io", "mutatingwebhookconfigurations", webhook_cells),
	KIND("admissionregistration.k8s.io", "validatingwebhookconfigurations", webhook_cells),
	KIND("admissionregistration.k8s.io", "validatingadmissionpolicies", validating_cells),
	KIND("admissionregistration.k8s.io", "validatingadmissionpolicybindings",
		policybinding_cells),
	KIND("admissionregistration.k8s.io", "mutatingadmissionpolicies", mutating_cells),
	KIND("admissionregistration.k8s.io", "mutatingadmissionpolicybindings",
		policybinding_cells),
	{0},
};
