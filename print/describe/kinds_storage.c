/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes, PersistentVolumes and their claims. */
#include <stdio.h>
#include <string.h>

#include "print/describe/describe_internal.h"

/* ---- volumes ------------------------------------------------------------ */

#define READ_ONLY \
	{ \
		.line = "ReadOnly:\t{readOnly|false}" \
	}
#define OPTIONAL \
	{ \
		.line = "Optional:\t{optional|false}" \
	}

static void volume_attributes(struct describe *d)
{
	struct printer_list all;

	describe_items_at(d, "volumeAttributes", NULL, &all);
	describe_indent(d, 0);
	buf_printf(d->row.text, "VolumeAttributes:\t%s", all.n ? "" : "<none>\n");
	for (size_t i = 0; i < all.n; i++) {
		if (i) {
			describe_indent(d, 0);
			buf_byte(d->row.text, '\t');
		}
		describe_indent(d, 0); /* as kubectl's */
		buf_printf(d->row.text, "%.*s=%.*s\n", BYTES_ARG(all.items[i].key),
			BYTES_ARG(all.items[i].value.text));
	}
	printer_list_release(&all);
}

static const struct describe_line volume_projected[] = {
	{.when = "secret",
		.in = "secret",
		.lines = LINES{{.line = "SecretName:\t{name}"}, OPTIONAL, END_OF_LINES}},
	{.when = "downwardAPI", .unless = "secret", .line = "DownwardAPI:\ttrue"},
	{.when = "configMap",
		.in = "configMap",
		.lines = LINES{{.line = "ConfigMapName:\t{name}"}, OPTIONAL, END_OF_LINES}},
	{.when = "serviceAccountToken",
		.line = "TokenExpirationSeconds:\t{serviceAccountToken.expirationSeconds}"},
	END_OF_LINES,
};

/* A source of volumes: its member, and the lines of that member. */
static const struct volume_source {
	const char *member, *type;
	const struct describe_line *lines;
} volume_sources[] = {
	{"hostPath", "HostPath (bare host directory volume)",
		LINES{{.line = "Path:\t{path}"}, {.line = "HostPathType:\t{type}"}, END_OF_LINES}},
	{"emptyDir", "EmptyDir (a temporary directory that shares a pod's lifetime)",
		LINES{{.line = "Medium:\t{medium}"}, {.line = "SizeLimit:\t{sizeLimit|<unset>}"},
			END_OF_LINES}},
	{"gcePersistentDisk",
		"GCEPersistentDisk (a Persistent Disk resource in Google Compute Engine)",
		LINES{{.line = "PDName:\t{pdName}"}, {.line = "FSType:\t{fsType}"},
			{.line = "Partition:\t{partition|0}"}, READ_ONLY, END_OF_LINES}},
	{"awsElasticBlockStore", "AWSElasticBlockStore (a Persistent Disk resource in AWS)",
		LINES{{.line = "VolumeID:\t{volumeID}"}, {.line = "FSType:\t{fsType}"},
			{.line = "Partition:\t{partition|0}"}, READ_ONLY, END_OF_LINES}},
	{"gitRepo", "GitRepo (a volume that is pulled from git when the pod is created)",
		LINES{{.line = "Repository:\t{repository}"}, {.line = "Revision:\t{revision}"},
			END_OF_LINES}},
	{"secret", "Secret (a volume populated by a Secret)",
		LINES{{.line = "SecretName:\t{secretName}"}, OPTIONAL, END_OF_LINES}},
	{"configMap", "ConfigMap (a volume populated by a ConfigMap)",
		LINES{{.line = "Name:\t{name}"}, OPTIONAL, END_OF_LINES}},
	{"nfs", "NFS (an NFS mount that lasts the lifetime of a pod)",
		LINES{{.line = "Server:\t{server}"}, {.line = "Path:\t{path}"}, READ_ONLY,
			END_OF_LINES}},
	{"persistentVolumeClaim",
		"PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same "
		"namespace)",
		LINES{{.line = "ClaimName:\t{claimName}"}, READ_ONLY, END_OF_LINES}},
	{"ephemeral",
		"EphemeralVolume (an inline specification for a volume that gets created and "
		"deleted with the pod)",
		LINES{{.in = "volumeClaimTemplate",
			      .lines = LINES{{.line = "StorageClass:\t{spec.storageClassName}"},
				      {.line = "Volume:\t"},
				      {.line = "Labels:\t    {metadata.labels:labels}"},
				      {.line = "Annotations:\t    "
					       "{metadata.annotations:annotations}"},
				      {.line = "Capacity:\t"}, {.line = "Access Modes:\t"},
				      {.some = "VolumeMode:\t{spec.volumeMode}"}, END_OF_LINES}},
			END_OF_LINES}},
	{"downwardAPI", "DownwardAPI (a volume populated by information about the pod)",
		LINES{{.line = "Items:"},
			{.each = "items",
				.level = 1,
				.lines = LINES{{.when = "fieldRef",
						       .line = "{fieldRef.fieldPath} -> {path}"},
					{.when = "resourceFieldRef",
						.line = "{resourceFieldRef.resource} -> {path}"},
					END_OF_LINES}},
			END_OF_LINES}},
	{"projected", "Projected (a volume that contains injected data from multiple sources)",
		LINES{{.each = "sources", .lines = volume_projected}, END_OF_LINES}},
	{"iscsi",
		"ISCSI (an ISCSI Disk resource that is attached to a kubelet's host machine and "
		"then exposed to the pod)",
		LINES{{.line = "TargetPortal:\t{targetPortal}"}, {.line = "IQN:\t{iqn}"},
			{.line = "Lun:\t{lun|0}"},
			{.line = "ISCSIInterface\t{iscsiInterface}"}, /* as kubectl's */
			{.line = "FSType:\t{fsType}"}, READ_ONLY,
			{.line = "Portals:\t{portals:go}"},
			{.line = "DiscoveryCHAPAuth:\t{chapAuthDiscovery|false}"},
			{.line = "SessionCHAPAuth:\t{chapAuthSession|false}"},
			{.line = "SecretRef:\t{secretRef.name|<nil>}"},
			{.line = "InitiatorName:\t{initiatorName|<none>}"}, END_OF_LINES}},
	{"csi", "CSI (a Container Storage Interface (CSI) volume source)",
		LINES{{.line = "Driver:\t{driver}"}, {.line = "FSType:\t{fsType}"},
			{.some = "VolumeHandle:\t{volumeHandle}"}, READ_ONLY,
			{.fn = volume_attributes}, END_OF_LINES}},
	{"image", "Image (a container image or OCI artifact)",
		LINES{{.line = "Reference:\t{reference}"}, {.line = "PullPolicy:\t{pullPolicy}"},
			END_OF_LINES}},
	{"local", "LocalVolume (a persistent volume backed by local storage on a node)",
		LINES{{.line = "Path:\t{path}"}, END_OF_LINES}},
	{"fc", "FC (a Fibre Channel disk)",
		LINES{{.line = "TargetWWNs:\t{targetWWNs:commas}"}, {.line = "LUN:\t{lun|<none>}"},
			{.line = "FSType:\t{fsType}"}, READ_ONLY, END_OF_LINES}},
	{"azureFile",
		"AzureFile (an Azure File Service mount on the host and bind mount to the pod)",
		LINES{{.line = "SecretName:\t{secretName}"},
			{.some = "SecretNamespace:\t{secretNamespace}"},
			{.line = "ShareName:\t{shareName}"}, READ_ONLY, END_OF_LINES}},
	{"azureDisk", "AzureDisk (an Azure Data Disk mount on the host and bind mount to the pod)",
		LINES{{.line = "DiskName:\t{diskName}"}, {.line = "DiskURI:\t{diskURI}"},
			{.line = "Kind: \t{kind}"}, {.line = "FSType:\t{fsType}"},
			{.line = "CachingMode:\t{cachingMode}"}, READ_ONLY, END_OF_LINES}},
	{"vsphereVolume", "vSphereVolume (a Persistent Disk resource in vSphere)",
		LINES{{.line = "VolumePath:\t{volumePath}"}, {.line = "FSType:\t{fsType}"},
			{.line = "StoragePolicyName:\t{storagePolicyName}"}, END_OF_LINES}},
};

/* Sources in kubectl's layout but mounted by no supported version of Kubernetes, and newer ones,
 * are described field by field. */
static void volume_put_other(struct describe *d)
{
	struct printer_list members;
	struct value here = d->here;
	bool found = false;

	describe_items_at(d, "@", NULL, &members);
	for (size_t i = 0; i < members.n && !found; i++) {
		struct bytes key = members.items[i].key;

		/* In the spec of a PersistentVolume there are maps beside the source. */
		if (members.items[i].value.type != VALUE_MAP ||
			bytes_equal(key, BYTES_LIT("capacity")) ||
			bytes_equal(key, BYTES_LIT("claimRef")) ||
			bytes_equal(key, BYTES_LIT("nodeAffinity")))
			continue;
		found = true;
		describe_indent(d, 2);
		buf_printf(d->row.text, "Type:\t%.*s\n", BYTES_ARG(key));
		d->here = members.items[i].value;
		d->level += 2;
		describe_fields(d);
		d->level -= 2;
	}
	d->here = here;
	printer_list_release(&members);
	if (!found)
		buf_str(d->row.text, "  <unknown>\n");
}

void describe_volume_source(struct describe *d)
{
	struct value here = d->here, part;

	for (size_t i = 0; i < ARRAY_SIZE(volume_sources); i++) {
		const struct volume_source *source = &volume_sources[i];

		if (!describe_find(d, source->member, &part))
			continue;
		describe_indent(d, 2);
		buf_printf(d->row.text, "Type:\t%s\n", source->type);
		d->here = part;
		d->level += 2;
		describe_lines(d, source->lines);
		d->level -= 2;
		d->here = here;
		return;
	}
	volume_put_other(d);
}

/* ---- PersistentVolumes -------------------------------------------------- */

static const struct describe_line storage_status[] = {
	{.unless = "metadata.deletionTimestamp", .line = "Status:\t{status.phase}"},
	{.some = "Status:\tTerminating (lasts {metadata.deletionTimestamp:since})"},
	END_OF_LINES,
};

/* "Term 0:  zone in [a, b]" of the terms of an affinity. */
static void volume_terms(struct describe *d)
{
	struct value here = d->here;
	struct printer_list terms, needs;

	describe_items_at(d, "spec.nodeAffinity.required.nodeSelectorTerms", NULL, &terms);
	buf_printf(d->row.text, "  Required Terms:\t%s\n", terms.n ? "" : "<none>");
	for (size_t t = 0; t < terms.n; t++) {
		d->here = terms.items[t].value;
		describe_items_at(d, "matchExpressions", NULL, &needs);
		buf_printf(d->row.text, "    Term %zu:\t%s", t, needs.n ? "" : "<none>\n");
		for (size_t i = 0; i < needs.n; i++) {
			d->here = needs.items[i].value;
			buf_str(d->row.text, i ? "    \t" : "");
			describe_words(d, "{key} {operator:lower}[ {values:brackets}]\n");
		}
		printer_list_release(&needs);
	}
	printer_list_release(&terms);
	d->here = here;
}

static const struct describe_line volume_lines[] = {
	{.line = "Name:\t{metadata.name}"},
	LINES_LABELS,
	{.line = "Finalizers:\t{metadata.finalizers:go}"},
	{.line = "StorageClass:\t" STORAGE_CLASS},
	{.lines = storage_status},
	{.unless = "spec.claimRef", .line = "Claim:\t"},
	{.when = "spec.claimRef", .line = "Claim:\t{spec.claimRef.namespace}/{spec.claimRef.name}"},
	{.line = "Reclaim Policy:\t{spec.persistentVolumeReclaimPolicy}"},
	{.line = "Access Modes:\t{spec.accessModes:modes}"},
	{.some = "VolumeMode:\t{spec.volumeMode}"},
	{.line = "Capacity:\t{spec.capacity.storage|0}"},
	{.unless = "spec.nodeAffinity.required", .line = "Node Affinity:\t<none>"},
	{.when = "spec.nodeAffinity.required", .line = "Node Affinity:\t", .fn = volume_terms},
	{.line = "Message:\t{status.message}"},
	{.line = "Source:"},
	{.in = "spec", .fn = describe_volume_source},
	{.fn = describe_events},
	END_OF_LINES,
};

/* ---- PersistentVolumeClaims --------------------------------------------- */

/* Appends the name of d->here, a pod, if it mounts the claim of the name ARG. */
struct claim_users {
	struct bytes claim;
	size_t n;
};

static void claim_add_user(struct describe *d, void *arg)
{
	struct claim_users *users = arg;
	char mine[512];
	struct value_iter iter = printer_items(&d->row, &d->here, "spec.volumes");
	struct value volume, ephemeral;

	while (printer_next(&d->row, &iter, &volume)) {
		struct bytes claim =
			printer_text(&d->row, &volume, "persistentVolumeClaim.claimName");

		if (!claim.size && printer_find(&d->row, &volume, "ephemeral", &ephemeral)) {
			(void)snprintf(mine, sizeof(mine), "%.*s-%.*s",
				BYTES_ARG(describe_get(d, "metadata.name")),
				BYTES_ARG(printer_text(&d->row, &volume, "name")));
			claim = bytes_str(mine);
		}
		if (!bytes_equal(claim, users->claim))
			continue;
		buf_str(d->row.text, users->n++ ? "\n\t" : "Used By:\t");
		buf_bytes_put(d->row.text, describe_get(d, "metadata.name"));
		return;
	}
}

static void claim_users(struct describe *d)
{
	struct claim_users users = {.claim = describe_get(d, "metadata.name")};

	if (describe_each_object(d, "pods", "{metadata.namespace}", "", "", claim_add_user, &users))
		buf_str(d->row.text, users.n ? "\n" : "Used By:\t<none>\n");
}

static const struct describe_line claim_lines[] = {
	LINES_NAME,
	{.line = "StorageClass:\t" STORAGE_CLASS},
	{.lines = storage_status},
	{.line = "Volume:\t{spec.volumeName}"},
	LINES_LABELS,
	{.line = "Finalizers:\t{metadata.finalizers:go}"},
	{.unless = "spec.volumeName", .line = "Capacity:\t\nAccess Modes:\t"},
	{.when = "spec.volumeName",
		.line = "Capacity:\t{status.capacity.storage|0}\n"
			"Access Modes:\t{status.accessModes:modes}"},
	{.some = "VolumeMode:\t{spec.volumeMode}"},
	{.when = "spec.dataSource",
		.line = "DataSource:",
		.in = "spec.dataSource",
		.lines = LINES{{.level = 1, .some = "APIGroup:\t{apiGroup}"},
			{.level = 1, .line = "Kind:\t{kind}"},
			{.level = 1, .line = "Name:\t{name}"}, END_OF_LINES}},
	{.fn = claim_users},
	{.when = "status.conditions",
		.line = "Conditions:\n  "
			"Type\tStatus\tLastProbeTime\tLastTransitionTime\tReason\tMessage\n"
			"  ----\t------\t-----------------\t------------------\t------\t-------"},
	{.each = "status.conditions",
		.level = 1,
		.line = "{type} \t{status} \t{lastProbeTime:time} \t{lastTransitionTime:time} "
			"\t{reason} \t{message}"},
	{.fn = describe_events},
	END_OF_LINES,
};

const struct describe_kind describe_kinds_storage[] = {
	{"persistentvolumes", volume_lines}, {"persistentvolumeclaims", claim_lines}, {0}};
