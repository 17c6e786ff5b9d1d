/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Audit events of level RequestResponse: the object of each successful write becomes a version,
 * with the time of the write and its user in the annotation kinformer/audit-user.
 */
#include "reflector/import/import_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "common/text/timestamp.h"
#include "reflector/cluster/catalogue.h"

struct audit_event {
	struct value response;
	struct bytes verb, user;
	struct import_deletion object; /* named by the event */
};

/* A dry run is asked for in the query, or in the options of a deletion. */
static bool audit_is_dry_run(const struct value *root)
{
	static const char *const queries[] = {"?dryRun=", "&dryRun="};
	struct bytes uri = catalogue_text(root, "requestURI");
	struct value request, item;

	for (size_t i = 0; i < 2; i++)
		if (uri.size && memmem(uri.data, uri.size, queries[i], strlen(queries[i])))
			return true;
	if (value_find(root, BYTES_LIT("requestObject"), &request) != FOUND ||
		request.type != VALUE_MAP)
		return false;
	return bytes_equal(catalogue_text(&request, "kind"), BYTES_LIT("DeleteOptions")) &&
	       value_find(&request, BYTES_LIT("dryRun"), &item) == FOUND &&
	       item.type == VALUE_ARRAY && item.count;
}

/* Reads a successful write. Returns false for all other events. */
static bool audit_read(struct import *import, struct bytes body, struct audit_event *event)
{
	struct value root, item, code;
	struct bytes part = BYTES_NONE;
	int64_t ns;

	*event = (struct audit_event){.verb = BYTES_NONE};
	if (value_read(body, &root) < 0 ||
		value_find(&root, BYTES_LIT("responseObject"), &event->response) != FOUND ||
		event->response.type != VALUE_MAP ||
		value_find(&root, BYTES_LIT("responseStatus"), &item) != FOUND ||
		value_find(&item, BYTES_LIT("code"), &code) != FOUND || code.type != VALUE_UINT ||
		code.u.u < 200 || code.u.u > 299)
		return false;
	event->verb = catalogue_text(&root, "verb");
	if (value_find(&root, BYTES_LIT("impersonatedUser"), &item) == FOUND ||
		value_find(&root, BYTES_LIT("user"), &item) == FOUND)
		event->user = catalogue_text(&item, "username");
	if (value_find(&root, BYTES_LIT("objectRef"), &item) == FOUND) {
		event->object.group = catalogue_text(&item, "apiGroup");
		event->object.resource = catalogue_text(&item, "resource");
		event->object.name_space = catalogue_text(&item, "namespace");
		event->object.name = catalogue_text(&item, "name");
		part = catalogue_text(&item, "subresource");
	}
	event->object.user = event->user;
	if (timestamp_parse(catalogue_text(&root, "stageTimestamp"), &ns) && ns > 0 &&
		(uint64_t)ns > import->audit_ns)
		import->audit_ns = (uint64_t)ns;
	/* A Scale has the name and version of its object, but not the object. */
	return bytes_equal(catalogue_text(&root, "stage"), BYTES_LIT("ResponseComplete")) &&
	       !bytes_equal(part, BYTES_LIT("scale")) &&
	       !bytes_equal(event->verb, BYTES_LIT("get")) &&
	       !bytes_equal(event->verb, BYTES_LIT("list")) &&
	       !bytes_equal(event->verb, BYTES_LIT("watch")) && !audit_is_dry_run(&root);
}

/* ---- the annotation ----------------------------------------------------- */

int import_annotate(struct import *import, const struct value *object, struct bytes user)
{
	static const char *const keys[] = {"metadata", "annotations", "kinformer/audit-user", NULL};

	buf_reset(&import->annotated);
	return import_set(object, keys, user, &import->annotated);
}

/* ---- events ------------------------------------------------------------- */

static bool audit_has_items(const struct value *map, const char *key)
{
	struct value item;

	return value_find(map, bytes_str(key), &item) == FOUND && item.type == VALUE_ARRAY &&
	       item.count;
}

/* Whether a kubelet has a pod of a deleted collection to stop first. The answer shows the pod
 * before its deletion; that of its container's end is another event. */
static bool audit_is_running_pod(const struct value *spec, const struct value *object)
{
	struct value status, seconds;
	struct bytes phase = BYTES_NONE;

	if (value_find(object, BYTES_LIT("status"), &status) == FOUND)
		phase = catalogue_text(&status, "phase");
	return catalogue_text(spec, "nodeName").size &&
	       !bytes_equal(phase, BYTES_LIT("Succeeded")) &&
	       !bytes_equal(phase, BYTES_LIT("Failed")) &&
	       value_find(spec, BYTES_LIT("terminationGracePeriodSeconds"), &seconds) == FOUND &&
	       seconds.type == VALUE_UINT && seconds.u.u;
}

/* Whether the object of an answer no longer exists: of a deletion, and of the write that removes
 * the last finalizer of an object being deleted (ShouldDeleteDuringUpdate() of k8s.io/apiserver,
 * ShouldDeleteNamespaceDuringUpdate()). */
static bool audit_is_gone(const struct audit_event *event, const struct value *object)
{
	bool deletes = bytes_starts(event->verb, BYTES_LIT("delete"));
	bool is_collection = bytes_equal(event->verb, BYTES_LIT("deletecollection"));
	struct value metadata, spec, item;

	if (value_find(object, BYTES_LIT("metadata"), &metadata) != FOUND ||
		audit_has_items(&metadata, "finalizers"))
		return false;
	if (!deletes && value_find(&metadata, BYTES_LIT("deletionTimestamp"), &item) != FOUND)
		return false;
	if (value_find(&metadata, BYTES_LIT("deletionGracePeriodSeconds"), &item) == FOUND &&
		item.type == VALUE_UINT && item.u.u)
		return false;
	if (event->object.group.size || value_find(object, BYTES_LIT("spec"), &spec) != FOUND)
		return true;
	if (bytes_equal(event->object.resource, BYTES_LIT("namespaces")))
		return !audit_has_items(&spec, "finalizers");
	return !is_collection || !bytes_equal(event->object.resource, BYTES_LIT("pods")) ||
	       !audit_is_running_pod(&spec, object);
}

/* Takes an object of an answer. KIND and VERSION: the list's, for an item without them. */
static int audit_take(struct import *import, const struct audit_event *event,
	const struct value *object, struct bytes kind, struct bytes version)
{
	struct value metadata, rv;

	if (value_find(object, BYTES_LIT("metadata"), &metadata) != FOUND ||
		value_find(&metadata, BYTES_LIT("resourceVersion"), &rv) != FOUND)
		return 0; /* a Binding, an Eviction, a review */
	bool is_gone = audit_is_gone(event, object);
	uint64_t stored = import->stored;
	if (bytes_starts(version, BYTES_LIT("meta.k8s.io/"))) /* of the object it has no more */
		return is_gone ? import_delete(import, &event->object) : 0;
	int r = import_annotate(import, object, event->user);
	import->change = is_gone ? IMPORT_DELETION : IMPORT_WRITE;
	if (r == 0)
		r = import_object(import, buf_bytes(&import->annotated), kind, version);
	import->change = IMPORT_LISTED;
	if (r == 0 && import->stored > stored)
		import_take_plural(import, event->object.resource);
	return r;
}

int import_audit(struct import *import, struct bytes body)
{
	struct audit_event event;
	struct value items, item, details;
	struct value_iter iter;
	int r = 0;

	if (!audit_read(import, body, &event))
		return 0;
	struct bytes kind = catalogue_text(&event.response, "kind"),
		     version = catalogue_text(&event.response, "apiVersion");
	if (bytes_equal(event.verb, BYTES_LIT("delete")) &&
		bytes_equal(kind, BYTES_LIT("Status"))) {
		if (value_find(&event.response, BYTES_LIT("details"), &details) == FOUND)
			event.object.uid = catalogue_text(&details, "uid");
		return import_delete(import, &event.object);
	}
	if (value_find(&event.response, BYTES_LIT("items"), &items) != FOUND)
		return audit_take(import, &event, &event.response, kind, version);
	value_iter_init(&iter, &items);
	while (r == 0 && (r = value_iter_next(&iter, NULL, &item)) == FOUND)
		r = audit_take(import, &event, &item, kind, version);
	return r < 0 ? r : 0;
}
