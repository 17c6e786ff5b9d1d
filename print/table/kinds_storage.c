/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of volumes, their claims and classes, and of CSI drivers. */
#include "print/table/printer_internal.h"

void printer_put_access_modes(struct printer_row *row, const char *path)
{
	static const struct {
		const char *mode, *shown;
	} modes[] = {{"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"},
		{"ReadWriteOncePod", "RWOP"}};
	size_t start = row->text->size;
	struct value mode;

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct value_iter iter = printer_items(row, &row->object, path);
		bool has = false;

		while (printer_next(row, &iter, &mode))
			has |= bytes_equal(mode.text, bytes_str(modes[i].mode));
		if (has)
			printer_put_more(row, start, bytes_str(modes[i].shown));
	}
}

static enum printer_cell_type storage_access_modes(struct printer_row *row)
{
	printer_put_access_modes(row, row->of);
	return PRINTER_STRING;
}

/* The old annotation counts before the field. */
enum printer_cell_type printer_put_storage_class(struct printer_row *row)
{
	struct value class;

	if (!printer_find_annotation(row, "volume.beta.kubernetes.io/storage-class", &class))
		class.text = printer_text(row, &row->object, "spec.storageClassName");
	return printer_put_bytes(row, class.text);
}

static enum printer_cell_type storage_phase(struct printer_row *row)
{
	if (printer_text(row, &row->object, "metadata.deletionTimestamp").size)
		return printer_put(row, "Terminating");
	return printer_put_bytes(row, printer_text(row, &row->object, "status.phase"));
}

static enum printer_cell_type storage_attributes_class(struct printer_row *row)
{
	struct value class;

	if (!printer_find(row, &row->object, "spec.volumeAttributesClassName", &class))
		return printer_put(row, "<unset>");
	return printer_put_bytes(row, class.text);
}

/* ---- volumes ------------------------------------------------------------ */

static enum printer_cell_type volume_capacity(struct printer_row *row)
{
	struct bytes capacity = printer_text(row, &row->object, "spec.capacity.storage");

	return printer_put_bytes(row, capacity.size ? capacity : BYTES_LIT("0"));
}

static enum printer_cell_type volume_claim(struct printer_row *row)
{
	struct value claim;

	if (!printer_find(row, &row->object, "spec.claimRef", &claim))
		return PRINTER_STRING;
	(void)printer_put_bytes(row, printer_text(row, &claim, "namespace"));
	buf_byte(row->text, '/');
	return printer_put_bytes(row, printer_text(row, &claim, "name"));
}

static const struct printer_cell_row volume_cells[] = {
	CELL_NAME,
	CELL_FUNCTION("Capacity", "string", 0, volume_capacity),
	CELL_FUNCTION_OF("Access Modes", 0, storage_access_modes, "spec.accessModes"),
	CELL_TEXT("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", NULL),
	CELL_FUNCTION("Status", "string", 0, storage_phase),
	CELL_FUNCTION("Claim", "string", 0, volume_claim),
	CELL_FUNCTION("StorageClass", "string", 0, printer_put_storage_class),
	CELL_FUNCTION("VolumeAttributesClass", "string", 0, storage_attributes_class),
	CELL_TEXT("Reason", "status.reason", NULL),
	CELL_AGE,
	CELL_WIDE("VolumeMode", "spec.volumeMode", "<unset>"),
};

static enum printer_cell_type claim_capacity(struct printer_row *row)
{
	if (!printer_text(row, &row->object, "spec.volumeName").size)
		return PRINTER_STRING;
	struct bytes capacity = printer_text(row, &row->object, "status.capacity.storage");
	return printer_put_bytes(row, capacity.size ? capacity : BYTES_LIT("0"));
}

static enum printer_cell_type claim_access_modes(struct printer_row *row)
{
	if (!printer_text(row, &row->object, "spec.volumeName").size)
		return PRINTER_STRING;
	return storage_access_modes(row);
}

static const struct printer_cell_row claim_cells[] = {
	CELL_NAME,
	CELL_FUNCTION("Status", "string", 0, storage_phase),
	CELL_TEXT("Volume", "spec.volumeName", NULL),
	CELL_FUNCTION("Capacity", "string", 0, claim_capacity),
	CELL_FUNCTION_OF("Access Modes", 0, claim_access_modes, "status.accessModes"),
	CELL_FUNCTION("StorageClass", "string", 0, printer_put_storage_class),
	CELL_FUNCTION("VolumeAttributesClass", "string", 0, storage_attributes_class),
	CELL_AGE,
	CELL_WIDE("VolumeMode", "spec.volumeMode", "<unset>"),
};

/* ---- classes ------------------------------------------------------------ */

static enum printer_cell_type class_name(struct printer_row *row)
{
	static const char *const keys[] = {"storageclass.kubernetes.io/is-default-class",
		"storageclass.beta.kubernetes.io/is-default-class"};
	struct value value;
	bool is_default = false;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (printer_find_annotation(row, keys[i], &value))
			is_default |= bytes_equal(value.text, BYTES_LIT("true"));
	(void)printer_put_bytes(row, printer_text(row, &row->object, "metadata.name"));
	return printer_put(row, is_default ? " (default)" : "");
}

static const struct printer_cell_row class_cells[] = {
	CELL_AS_NAME("Name", 0, HOW_FUNCTION, .fn = class_name),
	CELL_TEXT("Provisioner", "provisioner", NULL),
	CELL_TEXT("ReclaimPolicy", "reclaimPolicy", "Delete"),
	CELL_TEXT("VolumeBindingMode", "volumeBindingMode", "Immediate"),
	CELL("AllowVolumeExpansion", "string", 0, HOW_BOOLEAN, "allowVolumeExpansion",
		.none = "false"),
	CELL_AGE,
};

static const struct printer_cell_row attributes_cells[] = {
	CELL_NAME,
	CELL_TEXT("DriverName", "driverName", NULL),
	CELL_AGE,
};

/* ---- CSI ---------------------------------------------------------------- */

static enum printer_cell_type driver_token_requests(struct printer_row *row)
{
	struct value_iter iter = printer_items(row, &row->object, "spec.tokenRequests");
	struct value requests, request;
	bool more = false;

	if (!printer_find(row, &row->object, "spec.tokenRequests", &requests))
		return printer_put(row, "<unset>");
	for (; printer_next(row, &iter, &request); more = true) {
		buf_str(row->text, more ? "," : "");
		(void)printer_put_bytes(row, printer_text(row, &request, "audience"));
	}
	return PRINTER_STRING;
}

static const struct printer_cell_row driver_cells[] = {
	CELL_NAME,
	CELL_BOOLEAN("AttachRequired", "spec.attachRequired", "true"),
	CELL_BOOLEAN("PodInfoOnMount", "spec.podInfoOnMount", "false"),
	CELL_BOOLEAN("StorageCapacity", "spec.storageCapacity", "false"),
	CELL_FUNCTION("TokenRequests", "string", 0, driver_token_requests),
	CELL_BOOLEAN("RequiresRepublish", "spec.requiresRepublish", "false"),
	CELL("Modes", "string", 0, HOW_LIST, "spec.volumeLifecycleModes", .none = "<none>"),
	CELL_AGE,
};

static const struct printer_cell_row csinode_cells[] = {
	CELL_NAME,
	CELL_COUNT("Drivers", "integer", "spec.drivers", NULL),
	CELL_AGE,
};

static const struct printer_cell_row capacity_cells[] = {CELL_NAME, CELL_CREATED};

static const struct printer_cell_row attachment_cells[] = {
	CELL_NAME,
	CELL_AS_NAME("Attacher", 0, HOW_TEXT, "spec.attacher"),
	CELL_TEXT("PV", "spec.source.persistentVolumeName", NULL),
	CELL_TEXT("Node", "spec.nodeName", NULL),
	CELL_BOOLEAN("Attached", "status.attached", "false"),
	CELL_AGE,
};

const struct printer_kind_row printer_kinds_storage[] = {
	KIND("", "persistentvolumes", volume_cells),
	KIND("", "persistentvolumeclaims", claim_cells),
	KIND("storage.k8s.io", "storageclasses", class_cells),
	KIND("storage.k8s.io", "volumeattributesclasses", attributes_cells),
	KIND("storage.k8s.io", "volumeattachments", attachment_cells),
	KIND("storage.k8s.io", "csidrivers", driver_cells),
	KIND("storage.k8s.io", "csinodes", csinode_cells),
	KIND("storage.k8s.io", "csistoragecapacities", capacity_cells),
	{0},
};
