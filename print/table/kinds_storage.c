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
	CELL_FUNCTION("Capacity", "string", 0, volume_capacity,
		"capacity is the description of the persistent volume's resources and capacity. "
		"More info: "
		"https://kubernetes.io/docs/concepts/storage/persistent-volumes#capacity"),
	CELL_FUNCTION_OF("Access Modes", 0, storage_access_modes, "spec.accessModes",
		"accessModes contains all ways the volume can be mounted. More info: "
		"https://kubernetes.io/docs/concepts/storage/persistent-volumes#access-modes"),
	CELL_TEXT("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", NULL,
		"persistentVolumeReclaimPolicy defines what happens to a persistent volume when "
		"released from its claim. Valid options are Retain (default for manually created "
		"PersistentVolumes), Delete (default for dynamically provisioned "
		"PersistentVolumes), and Recycle (deprecated). Recycle must be supported by the "
		"volume plugin underlying this PersistentVolume. More info: "
		"https://kubernetes.io/docs/concepts/storage/persistent-volumes#reclaiming"),
	CELL_FUNCTION("Status", "string", 0, storage_phase,
		"phase indicates if a volume is available, bound to a claim, or released by a "
		"claim. More info: "
		"https://kubernetes.io/docs/concepts/storage/persistent-volumes#phase"),
	CELL_FUNCTION("Claim", "string", 0, volume_claim,
		"claimRef is part of a bi-directional binding between PersistentVolume and "
		"PersistentVolumeClaim. Expected to be non-nil when bound. claim.VolumeName is the "
		"authoritative bind between PV and PVC. More info: "
		"https://kubernetes.io/docs/concepts/storage/persistent-volumes#binding"),
	CELL_FUNCTION(
		"StorageClass", "string", 0, printer_put_storage_class, "StorageClass of the pv"),
	CELL_FUNCTION("VolumeAttributesClass", "string", 0, storage_attributes_class,
		"VolumeAttributesClass of the pv"),
	CELL_TEXT("Reason", "status.reason", NULL,
		"reason is a brief CamelCase string that describes any failure and is meant for "
		"machine parsing and tidy display in the CLI."),
	CELL_AGE,
	CELL_WIDE("VolumeMode", "spec.volumeMode", "<unset>",
		"volumeMode defines if a volume is intended to be used with a formatted filesystem "
		"or to remain in raw block state. Value of Filesystem is implied when not included "
		"in spec."),
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
	CELL_FUNCTION("Status", "string", 0, storage_phase,
		"phase represents the current phase of PersistentVolumeClaim."),
	CELL_TEXT("Volume", "spec.volumeName", NULL,
		"volumeName is the binding reference to the PersistentVolume backing this claim."),
	CELL_FUNCTION("Capacity", "string", 0, claim_capacity,
		"capacity represents the actual resources of the underlying volume."),
	CELL_FUNCTION_OF("Access Modes", 0, claim_access_modes, "status.accessModes",
		"accessModes contains the actual access modes the volume backing the PVC has. More "
		"info: "
		"https://kubernetes.io/docs/concepts/storage/persistent-volumes#access-modes-1"),
	CELL_FUNCTION(
		"StorageClass", "string", 0, printer_put_storage_class, "StorageClass of the pvc"),
	CELL_FUNCTION("VolumeAttributesClass", "string", 0, storage_attributes_class,
		"VolumeAttributesClass of the pvc"),
	CELL_AGE,
	CELL_WIDE("VolumeMode", "spec.volumeMode", "<unset>",
		"volumeMode defines what type of volume is required by the claim. Value of "
		"Filesystem is implied when not included in claim spec."),
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
	{{"Name", "string", "name", 0, ABOUT_NAME}, HOW_FUNCTION, .fn = class_name},
	CELL_TEXT("Provisioner", "provisioner", NULL,
		"provisioner indicates the type of the provisioner."),
	CELL_TEXT("ReclaimPolicy", "reclaimPolicy", "Delete",
		"reclaimPolicy controls the reclaimPolicy for dynamically provisioned "
		"PersistentVolumes of this storage class. Defaults to Delete."),
	CELL_TEXT("VolumeBindingMode", "volumeBindingMode", "Immediate",
		"volumeBindingMode indicates how PersistentVolumeClaims should be provisioned and "
		"bound.  When unset, VolumeBindingImmediate is used. This field is only honored by "
		"servers that enable the VolumeScheduling feature."),
	{{"AllowVolumeExpansion", "string", "", 0,
		 "allowVolumeExpansion shows whether the storage class allow volume expand."},
		HOW_BOOLEAN, "allowVolumeExpansion", .none = "false"},
	CELL_AGE,
};

static const struct printer_cell_row attributes_cells[] = {
	CELL_NAME,
	CELL_TEXT("DriverName", "driverName", NULL,
		"driverName is the name of the CSI driver This field is immutable."),
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
	CELL_BOOLEAN("AttachRequired", "spec.attachRequired", "true",
		"attachRequired indicates this CSI volume driver requires an attach operation "
		"(because it implements the CSI ControllerPublishVolume() method), and that the "
		"Kubernetes attach detach controller should call the attach volume interface which "
		"checks the volumeattachment status and waits until the volume is attached before "
		"proceeding to mounting. The CSI external-attacher coordinates with CSI volume "
		"driver and updates the volumeattachment status when the attach operation is "
		"complete. If the value is specified to false, the attach operation will be "
		"skipped. Otherwise the attach operation will be called.\n\nThis field is "
		"immutable."),
	CELL_BOOLEAN("PodInfoOnMount", "spec.podInfoOnMount", "false",
		"podInfoOnMount indicates this CSI volume driver requires additional pod "
		"information (like podName, podUID, etc.) during mount operations, if set to true. "
		"If set to false, pod information will not be passed on mount. Default is "
		"false.\n\nThe CSI driver specifies podInfoOnMount as part of driver deployment. "
		"If true, Kubelet will pass pod information as VolumeContext in the CSI "
		"NodePublishVolume() calls. The CSI driver is responsible for parsing and "
		"validating the information passed in as VolumeContext.\n\nThe following "
		"VolumeContext will be passed if podInfoOnMount is set to true. This list might "
		"grow, but the prefix will be used. \"csi.storage.k8s.io/pod.name\": pod.Name "
		"\"csi.storage.k8s.io/pod.namespace\": pod.Namespace "
		"\"csi.storage.k8s.io/pod.uid\": string(pod.UID) "
		"\"csi.storage.k8s.io/ephemeral\": \"true\" if the volume is an ephemeral inline "
		"volume\n                                defined by a CSIVolumeSource, otherwise "
		"\"false\"\n\n\"csi.storage.k8s.io/ephemeral\" is a new feature in Kubernetes "
		"1.16. It is only required for drivers which support both the \"Persistent\" and "
		"\"Ephemeral\" VolumeLifecycleMode. Other drivers can leave pod info disabled "
		"and/or ignore this field. As Kubernetes 1.15 doesn't support this field, drivers "
		"can only support one mode when deployed on such a cluster and the deployment "
		"determines which mode that is, for example via a command line parameter of the "
		"driver.\n\nThis field was immutable in Kubernetes < 1.29 and now is mutable."),
	CELL_BOOLEAN("StorageCapacity", "spec.storageCapacity", "false",
		"storageCapacity indicates that the CSI volume driver wants pod scheduling to "
		"consider the storage capacity that the driver deployment will report by creating "
		"CSIStorageCapacity objects with capacity information, if set to true.\n\nThe "
		"check can be enabled immediately when deploying a driver. In that case, "
		"provisioning new volumes with late binding will pause until the driver deployment "
		"has published some suitable CSIStorageCapacity object.\n\nAlternatively, the "
		"driver can be deployed with the field unset or false and it can be flipped later "
		"when storage capacity information has been published.\n\nThis field was immutable "
		"in Kubernetes <= 1.22 and now is mutable."),
	CELL_FUNCTION("TokenRequests", "string", 0, driver_token_requests,
		"tokenRequests indicates the CSI driver needs pods' service account tokens it is "
		"mounting volume for to do necessary authentication. Kubelet will pass the tokens "
		"in VolumeContext in the CSI NodePublishVolume calls. The CSI driver should parse "
		"and validate the following VolumeContext: "
		"\"csi.storage.k8s.io/serviceAccount.tokens\": {\n  \"<audience>\": {\n    "
		"\"token\": <token>,\n    \"expirationTimestamp\": <expiration timestamp in "
		"RFC3339>,\n  },\n  ...\n}\n\nNote: Audience in each TokenRequest should be "
		"different and at most one token is empty string. To receive a new token after "
		"expiry, RequiresRepublish can be used to trigger NodePublishVolume periodically."),
	CELL_BOOLEAN("RequiresRepublish", "spec.requiresRepublish", "false",
		"requiresRepublish indicates the CSI driver wants `NodePublishVolume` being "
		"periodically called to reflect any possible change in the mounted volume. This "
		"field defaults to false.\n\nNote: After a successful initial NodePublishVolume "
		"call, subsequent calls to NodePublishVolume should only update the contents of "
		"the volume. New mount points will not be seen by a running container."),
	{{"Modes", "string", "", 0,
		 "volumeLifecycleModes defines what kind of volumes this CSI volume driver "
		 "supports. The default if the list is empty is \"Persistent\", which is the usage "
		 "defined by the CSI specification and implemented in Kubernetes via the usual "
		 "PV/PVC mechanism.\n\nThe other mode is \"Ephemeral\". In this mode, volumes are "
		 "defined inline inside the pod spec with CSIVolumeSource and their lifecycle is "
		 "tied to the lifecycle of that pod. A driver has to be aware of this because it "
		 "is only going to get a NodePublishVolume call for such a volume.\n\nFor more "
		 "information about implementing this mode, see "
		 "https://kubernetes-csi.github.io/docs/ephemeral-local-volumes.html A driver can "
		 "support one or more of these modes and more modes may be added in the "
		 "future.\n\nThis field is beta. This field is immutable."},
		HOW_LIST, "spec.volumeLifecycleModes", .none = "<none>"},
	CELL_AGE,
};

static const struct printer_cell_row csinode_cells[] = {
	CELL_NAME,
	CELL_COUNT("Drivers", "integer", "spec.drivers", NULL,
		"Drivers indicates the number of CSI drivers registered on the node"),
	CELL_AGE,
};

static const struct printer_cell_row capacity_cells[] = {CELL_NAME, CELL_CREATED};

static const struct printer_cell_row attachment_cells[] = {
	CELL_NAME,
	{{"Attacher", "string", "name", 0,
		 "attacher indicates the name of the volume driver that MUST handle this request. "
		 "This is the name returned by GetPluginName()."},
		HOW_TEXT, "spec.attacher"},
	CELL_TEXT("PV", "spec.source.persistentVolumeName", NULL,
		"persistentVolumeName represents the name of the persistent volume to attach."),
	CELL_TEXT("Node", "spec.nodeName", NULL,
		"nodeName represents the node that the volume should be attached to."),
	CELL_BOOLEAN("Attached", "status.attached", "false",
		"attached indicates the volume is successfully attached. This field must only be "
		"set by the entity completing the attach operation, i.e. the external-attacher."),
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
