/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of rights, certificates and admission. */
#include "print/table/printer_internal.h"

/* ---- rights ------------------------------------------------------------- */

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
		printer_put_words(row, &subject,
			strcmp(row->of, "ServiceAccount") ? "{name}" : "{namespace}/{name}");
	}
	return PRINTER_STRING;
}

static const struct printer_cell_row binding_cells[] = {
	CELL_NAME,
	CELL_WORDS("Role", "{roleRef.kind}/{roleRef.name}"),
	CELL_AGE,
	CELL_FUNCTION_OF("Users", 1, binding_subjects, "User"),
	CELL_FUNCTION_OF("Groups", 1, binding_subjects, "Group"),
	CELL_FUNCTION_OF("ServiceAccounts", 1, binding_subjects, "ServiceAccount"),
};

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

/* ---- admission ---------------------------------------------------------- */

static const struct printer_cell_row webhook_cells[] = {
	CELL_NAME,
	CELL_COUNT("Webhooks", "integer", "webhooks", NULL),
	CELL_AGE,
};

static enum printer_cell_type admission_param(struct printer_row *row)
{
	struct value param, selector, expression;
	struct printer_list labels;

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
	/* the text of the API server's generated message */
	printer_list_at(row, &selector, "matchLabels", NULL, &labels);
	buf_str(row->text, "&LabelSelector{MatchLabels:map[string]string{");
	for (size_t i = 0; i < labels.n; i++)
		buf_printf(row->text, "%.*s: %.*s,", BYTES_ARG(labels.items[i].key),
			BYTES_ARG(labels.items[i].value.text));
	printer_list_release(&labels);
	buf_str(row->text, "},MatchExpressions:[]LabelSelectorRequirement{");
	struct value_iter iter = printer_items(row, &selector, "matchExpressions");
	while (printer_next(row, &iter, &expression)) {
		buf_str(row->text, "LabelSelectorRequirement{Key:");
		printer_put_words(row, &expression, "{key},Operator:{operator},Values:");
		printer_put_words(row, &expression, "{values:go},},");
	}
	buf_str(row->text, "},}");
	return PRINTER_STRING;
}

static const struct printer_cell_row policybinding_cells[] = {
	CELL_NAME,
	CELL_TEXT("PolicyName", "spec.policyName", NULL),
	CELL_FUNCTION("ParamRef", "string", 0, admission_param),
	CELL_AGE,
};

const struct printer_kind_row printer_kinds_access[] = {
	KIND("rbac.authorization.k8s.io", "roles", CELL_NAME, CELL_CREATED),
	KIND("rbac.authorization.k8s.io", "clusterroles", CELL_NAME, CELL_CREATED),
	KIND_OF("rbac.authorization.k8s.io", "rolebindings", binding_cells),
	KIND_OF("rbac.authorization.k8s.io", "clusterrolebindings", binding_cells),
	KIND("certificates.k8s.io", "certificatesigningrequests", CELL_NAME, CELL_AGE,
		CELL_TEXT("SignerName", "spec.signerName", "<none>"),
		CELL_TEXT("Requestor", "spec.username", NULL),
		CELL_FUNCTION("RequestedDuration", "string", 0, request_duration),
		CELL_WORDS("Condition", "[{status.conditions[type=Denied].type}|"
					"{status.conditions[type=Approved].type}|Pending]"
					"[,{status.conditions[type=Failed].type}][{status."
					"certificate:if},Issued]")),
	KIND("certificates.k8s.io", "clustertrustbundles", CELL_NAME,
		CELL_TEXT("SignerName", "spec.signerName", "<none>")),
	KIND("certificates.k8s.io", "podcertificaterequests", CELL_NAME,
		CELL_TEXT("PodName", "spec.podName", NULL),
		CELL_TEXT("ServiceAccountName", "spec.serviceAccountName", NULL),
		CELL_TEXT("NodeName", "spec.nodeName", NULL),
		CELL_TEXT("SignerName", "spec.signerName", NULL),
		CELL_WORDS("State", "[{status.conditions[type=Issued].type}|"
				    "{status.conditions[type=Denied].type}|"
				    "{status.conditions[type=Failed].type}|Pending]"),
		CELL_WORDS("UnverifiedUserAnnotations", "{spec.unverifiedUserAnnotations:map}")),
	KIND_OF("admissionregistration.k8s.io", "mutatingwebhookconfigurations", webhook_cells),
	KIND_OF("admissionregistration.k8s.io", "validatingwebhookconfigurations", webhook_cells),
	KIND("admissionregistration.k8s.io", "validatingadmissionpolicies", CELL_NAME,
		CELL_COUNT("Validations", "integer", "spec.validations", NULL),
		CELL_WORDS(
			"ParamKind", "[{spec.paramKind.apiVersion}/{spec.paramKind.kind}|<unset>]"),
		CELL_AGE),
	KIND_OF("admissionregistration.k8s.io", "validatingadmissionpolicybindings",
		policybinding_cells),
	KIND("admissionregistration.k8s.io", "mutatingadmissionpolicies", CELL_NAME,
		CELL_COUNT("Mutations", "integer", "spec.mutations", NULL),
		CELL_WORDS(
			"ParamKind", "[{spec.paramKind.apiVersion}/{spec.paramKind.kind}|<unset>]"),
		CELL_AGE),
	KIND_OF("admissionregistration.k8s.io", "mutatingadmissionpolicybindings",
		policybinding_cells),
	{0},
};
