/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of volumes, their claims and classes, and of CSI drivers. */
#include "reader/table/printer_internal.h"

static enum printer_cell_type storage_access_modes(struct printer_row *row, const char *path)
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
	return PRINTER_STRING;
}

/* The old annotation counts before the field. */
static enum printer_cell_type storage_class(struct printer_row *row)
{
	struct value class;

	if (printer_find_key(row, "metadata.annotations",
		    "volume.beta.kubernetes.io/storage-class", &class))
		return printer_put_bytes(row, class.text);
	return printer_put_bytes(row, printer_text(row, &row->object, "spec.storageClassName"));
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

/* ---- volumes --------------------------------------------------------------------------------- */

static enum printer_cell_type volume_capacity(struct printer_row *row)
{
	struct bytes capacity = printer_text(row, &row->object, "spec.capacity.storage");

	return printer_put_bytes(row, capacity.size ? capacity : BYTES_LIT("0"));
}

static enum printer_cell_type volume_access_modes(struct printer_row *row)
{
	return storage_access_modes(row, "spec.accessModes");
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
	CELL_FUNCTION("Capacity", "string", 0, volume_capacity, "Size of the volume"),
	CELL_FUNCTION("Access Modes", "string", 0, volume_access_modes, "How it can be mounted"),
	CELL_TEXT("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", NULL,
		"What happens to the volume when its claim is deleted"),
	CELL_FUNCTION("Status", "string", 0, storage_phase, "Phase of the volume"),
	CELL_FUNCTION("Claim", "string", 0, volume_claim, "Claim that the volume is bound to"),
	CELL_FUNCTION("StorageClass", "string", 0, storage_class, "Storage class of the volume"),
	CELL_FUNCTION("VolumeAttributesClass", "string", 0, storage_attributes_class,
		"Class of the volume's attributes"),
	CELL_TEXT("Reason", "status.reason", NULL, "Why the volume is in this phase"),
	CELL_AGE,
	CELL_WIDE("VolumeMode", "spec.volumeMode", "<unset>", "Filesystem or Block"),
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
	return storage_access_modes(row, "status.accessModes");
}

static const struct printer_cell_row claim_cells[] = {
	CELL_NAME,
	CELL_FUNCTION("Status", "string", 0, storage_phase, "Phase of the claim"),
	CELL_TEXT("Volume", "spec.volumeName", NULL, "Volume that the claim is bound to"),
	CELL_FUNCTION("Capacity", "string", 0, claim_capacity, "Size of that volume"),
	CELL_FUNCTION("Access Modes", "string", 0, claim_access_modes, "How it can be mounted"),
	CELL_FUNCTION("StorageClass", "string", 0, storage_class, "Storage class of the claim"),
	CELL_FUNCTION("VolumeAttributesClass", "string", 0, storage_attributes_class,
		"Class of the volume's attributes"),
	CELL_AGE,
	CELL_WIDE("VolumeMode", "spec.volumeMode", "<unset>", "Filesystem or Block"),
};

/* ---- classes --------------------------------------------------------------------------------- */

static enum printer_cell_type class_name(struct printer_row *row)
{
	static const char *const keys[] = {"storageclass.kubernetes.io/is-default-class",
		"storageclass.beta.kubernetes.io/is-default-class"};
	struct value value;
	bool is_default = false;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (printer_find_key(row, "metadata.annotations", keys[i], &value))
			is_default |= bytes_equal(value.text, BYTES_LIT("true"));
	(void)printer_put_bytes(row, printer_text(row, &row->object, "metadata.name"));
	return printer_put(row, is_default ? " (default)" : "");
}

static const struct printer_cell_row class_cells[] = {
	{{"Name", "string", "name", 0, "Name of the object"}, HOW_FUNCTION, .fn = class_name},
	CELL_TEXT("Provisioner", "provisioner", NULL, "Driver that makes the volumes"),
	CELL_TEXT("ReclaimPolicy", "reclaimPolicy", "Delete",
		"What happens to a volume when its claim is deleted"),
	CELL_TEXT("VolumeBindingMode", "volumeBindingMode", "Immediate", "When a volume is made"),
	{{"AllowVolumeExpansion", "string", "", 0, "Whether volumes can grow"}, HOW_BOOLEAN,
		"allowVolumeExpansion", .none = "false"},
	CELL_AGE,
};

static const struct printer_cell_row attributes_cells[] = {
	CELL_NAME,
	CELL_TEXT("DriverName", "driverName", NULL, "Driver of the volumes"),
	CELL_AGE,
};

/* ---- CSI ------------------------------------------------------------------------------------- */

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
	CELL_BOOLEAN("AttachRequired", "spec.attachRequired", "true",
		"Whether volumes are attached to a node first"),
	CELL_BOOLEAN("PodInfoOnMount", "spec.podInfoOnMount", "false",
		"Whether the driver gets the pod's name"),
	CELL_BOOLEAN("StorageCapacity", "spec.storageCapacity", "false",
		"Whether the driver reports capacity"),
	CELL_FUNCTION("TokenRequests", "string", 0, driver_token_requests,
		"Audiences of the tokens that the driver gets"),
	CELL_BOOLEAN("RequiresRepublish", "spec.requiresRepublish", "false",
		"Whether mounted volumes are published again"),
	{{"Modes", "string", "", 0, "Lifecycle modes of the volumes"}, HOW_LIST,
		"spec.volumeLifecycleModes", .none = "<none>"},
	CELL_AGE,
};

static const struct printer_cell_row csinode_cells[] = {
	CELL_NAME,
	CELL_COUNT("Drivers", "integer", "spec.drivers", NULL, "Number of drivers of the node"),
	CELL_AGE,
};

static const struct printer_cell_row capacity_cells[] = {CELL_NAME, CELL_CREATED};

static const struct printer_cell_row attachment_cells[] = {
	CELL_NAME,
	{{"Attacher", "string", "name", 0, "Driver that attaches the volume"}, HOW_TEXT,
		"spec.attacher"},
	CELL_TEXT("PV", "spec.source.persistentVolumeName", NULL, "Volume"),
	CELL_TEXT("Node", "spec.nodeName", NULL, "Node"),
	CELL_BOOLEAN("Attached", "status.attached", "false", "Whether the volume is attached"),
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
