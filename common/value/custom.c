/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/custom.h"

#include <string.h>

#include "common/err.h"
#include "common/value/value.h"

static const char *const custom_builtin_groups[] = {"", "admissionregistration.k8s.io",
	"apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io",
	"authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io",
	"coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
	"internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy",
	"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
	"storagemigration.k8s.io"};

bool custom_is_builtin_group(const char *group)
{
	size_t n = sizeof(custom_builtin_groups) / sizeof(*custom_builtin_groups);

	for (size_t i = 0; i < n; i++)
		if (strcmp(custom_builtin_groups[i], group) == 0)
			return true;
	return false;
}

int custom_columns(struct bytes definition, struct bytes version, struct bytes *ret_columns)
{
	struct value root, spec, versions, one, name, columns;
	struct value_iter iter;
	int r = value_read(definition, &root);

	if (r == 0)
		r = value_find(&root, BYTES_LIT("spec"), &spec);
	if (r == FOUND)
		r = value_find(&spec, BYTES_LIT("versions"), &versions);
	if (r != FOUND)
		return r;
	*ret_columns = BYTES_NONE;
	value_iter_init(&iter, &versions);
	while ((r = value_iter_next(&iter, NULL, &one)) == FOUND) {
		r = value_find(&one, BYTES_LIT("name"), &name);
		if (r < 0)
			return r;
		if (r == NOT_FOUND || !bytes_equal(name.text, version))
			continue;
		r = value_find(&one, BYTES_LIT("additionalPrinterColumns"), &columns);
		if (r != FOUND || columns.type != VALUE_ARRAY)
			return r < 0 ? r : FOUND;
		return value_document(&columns, ret_columns);
	}
	return r < 0 ? r : FOUND;
}
