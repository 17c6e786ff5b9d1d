/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of volumes, their claims and classes, and of CSI drivers. */
#include "print/table/printer_internal.h"

void printer_put_access_modes(struct printer_row *row, const struct value *in, const char *path)
{
	static const struct {
		const char *mode, *shown;
	} modes[] = {{"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"},
		{"ReadWriteOncePod", "RWOP"}};
	size_t start = row->text->size;
	struct value mode;

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct value_iter iter = printer_items(row, in, path);
		bool has = false;

		while (printer_next(row, &iter, &mode))
			has |= bytes_equal(mode.text, bytes_str(modes[i].mode));
		if (has)
			printer_put_more(row, start, bytes_str(modes[i].shown));
	}
}

const struct printer_kind_row printer_kinds_storage[] = {
	KIND("", "persistentvolumes", CELL_NAME,
		CELL_TEXT("Capacity", "spec.capacity.storage", "0"),
		CELL_WORDS("Access Modes", "{spec.accessModes:modes}"),
		CELL_TEXT("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", NULL),
		CELL_WORDS("Status", "[{metadata.deletionTimestamp:if}Terminating|{status.phase}]"),
		CELL_WORDS("Claim",
			"[{spec.claimRef:if}{spec.claimRef.namespace}/{spec.claimRef.name}]"),
		CELL_WORDS("StorageClass", STORAGE_CLASS),
		CELL_TEXT("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
		CELL_TEXT("Reason", "status.reason", NULL), CELL_AGE,
		CELL_WIDE("VolumeMode", "spec.volumeMode", "<unset>")),
	KIND("", "persistentvolumeclaims", CELL_NAME,
		CELL_WORDS("Status", "[{metadata.deletionTimestamp:if}Terminating|{status.phase}]"),
		CELL_TEXT("Volume", "spec.volumeName", NULL),
		CELL_WORDS("Capacity", "[{spec.volumeName:if}{status.capacity.storage|0}]"),
		CELL_WORDS("Access Modes", "[{spec.volumeName:if}{status.accessModes:modes}]"),
		CELL_WORDS("StorageClass", STORAGE_CLASS),
		CELL_TEXT("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
		CELL_AGE, CELL_WIDE("VolumeMode", "spec.volumeMode", "<unset>")),
	KIND("storage.k8s.io", "storageclasses",
		CELL_AS_NAME("Name", 0, HOW_WORDS,
			"{metadata.name}"
			"[{metadata.annotations[storageclass.kubernetes.io/"
			"is-default-class=true]:if} "
			"(default)|"
			"{metadata.annotations[storageclass.beta.kubernetes.io/"
			"is-default-class=true]:if} "
			"(default)]"),
		CELL_TEXT("Provisioner", "provisioner", NULL),
		CELL_TEXT("ReclaimPolicy", "reclaimPolicy", "Delete"),
		CELL_TEXT("VolumeBindingMode", "volumeBindingMode", "Immediate"),
		CELL("AllowVolumeExpansion", "string", 0, HOW_BOOLEAN, "allowVolumeExpansion",
			.none = "false"),
		CELL_AGE),
	KIND("storage.k8s.io", "volumeattributesclasses", CELL_NAME,
		CELL_TEXT("DriverName", "driverName", NULL), CELL_AGE),
	KIND("storage.k8s.io", "volumeattachments", CELL_NAME,
		CELL_AS_NAME("Attacher", 0, HOW_TEXT, "spec.attacher"),
		CELL_TEXT("PV", "spec.source.persistentVolumeName", NULL),
		CELL_TEXT("Node", "spec.nodeName", NULL),
		CELL_BOOLEAN("Attached", "status.attached", "false"), CELL_AGE),
	KIND("storage.k8s.io", "csidrivers", CELL_NAME,
		CELL_BOOLEAN("AttachRequired", "spec.attachRequired", "true"),
		CELL_BOOLEAN("PodInfoOnMount", "spec.podInfoOnMount", "false"),
		CELL_BOOLEAN("StorageCapacity", "spec.storageCapacity", "false"),
		CELL("TokenRequests", "string", 0, HOW_EACH, "spec.tokenRequests", "{audience}",
			.none = "<unset>"),
		CELL_BOOLEAN("RequiresRepublish", "spec.requiresRepublish", "false"),
		CELL_WORDS("Modes", "{spec.volumeLifecycleModes:comma|<none>}"), CELL_AGE),
	KIND("storage.k8s.io", "csinodes", CELL_NAME,
		CELL_COUNT("Drivers", "integer", "spec.drivers", NULL), CELL_AGE),
	KIND("storage.k8s.io", "csistoragecapacities", CELL_NAME, CELL_CREATED),
	{0},
};
