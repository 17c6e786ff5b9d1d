/* SPDX-License-Identifier: Apache-2.0 */
#include "print/who.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/text/timestamp.h"
#include "common/value/json.h"
#include "print/table/age.h"
#include "print/table/display.h"

#define OWNERS_MAX 8
#define KIND_SIZE  128
#define NAME_SIZE  256

static struct bytes who_text(const struct kinf_object *object, const char *path)
{
	const char *text;
	size_t size;

	return kinf_object_path(object, path, &text, &size) == KINF_FOUND ? BYTES(text, size)
									  : BYTES_NONE;
}

/* Appends a line for people, or a member. */
static void who_put(struct who_answer *answer, const char *title, struct bytes text)
{
	if (!text.size)
		return;
	if (answer->form != WHO_TEXT) {
		buf_str(answer->out, ",\"");
		for (const char *p = title; *p; p++)
			buf_byte(answer->out, (uint8_t)(*p | 0x20));
		buf_str(answer->out, "\":");
		json_write_string(text, answer->out);
		return;
	}
	buf_printf(answer->out, "%s:%*s", title, (int)(10 - strlen(title)), "");
	display_bytes(text, answer->out);
	buf_byte(answer->out, '\n');
}

static void who_put_owner(struct who_answer *answer, const char *kind, const char *name, bool first)
{
	if (answer->form != WHO_TEXT) {
		buf_str(answer->out, first ? ",\"owners\":[{\"kind\":" : ",{\"kind\":");
		json_write_string(bytes_str(kind), answer->out);
		buf_str(answer->out, ",\"name\":");
		json_write_string(bytes_str(name), answer->out);
		buf_byte(answer->out, '}');
		return;
	}
	buf_str(answer->out, first ? "Owners:    " : ", ");
	display_bytes(bytes_str(kind), answer->out);
	buf_byte(answer->out, '/');
	display_bytes(bytes_str(name), answer->out);
}

static int who_keep(void *arg, const struct kinf_change *change)
{
	struct kinf_object **last = arg;

	free(TAKE(*last));
	return kinf_object_copy(&change->object, last);
}

/* Replaces *OWNER with the object KIND NAME in the namespace IN, also one that was deleted. Returns
 * whether the store knows it. */
static bool who_find_owner(struct who_answer *answer, const char *kind, const char *in,
	const char *name, struct kinf_object **owner)
{
	struct kinf_object found;

	free(TAKE(*owner));
	if (kinf_get(answer->snapshot, kind, in, name, &found) == KINF_FOUND ||
		kinf_get(answer->snapshot, kind, NULL, name, &found) == KINF_FOUND)
		return kinf_object_copy(&found, owner) == 0;
	return kinf_history(answer->snapshot, kind, in, name, who_keep, owner) == 0;
}

/* Appends the controllers of POD, the nearest first, as far as the store has them. */
static void who_put_owners(struct who_answer *answer, const struct kinf_object *pod)
{
	AUTO_FREE struct kinf_object *owner = NULL;
	const char *slash = memchr(pod->key, '/', pod->key_size);
	char kind[KIND_SIZE], name[NAME_SIZE], in[NAME_SIZE];
	size_t n = 0;

	(void)snprintf(in, sizeof(in), "%.*s", slash ? (int)(slash - pod->key) : 0, pod->key);
	for (const struct kinf_object *object = pod; n < OWNERS_MAX; object = owner) {
		struct bytes text =
			who_text(object, "metadata.ownerReferences[controller=true].kind");

		(void)snprintf(kind, sizeof(kind), "%.*s", BYTES_ARG(text));
		text = who_text(object, "metadata.ownerReferences[controller=true].name");
		(void)snprintf(name, sizeof(name), "%.*s", BYTES_ARG(text));
		if (!*kind || !*name)
			break;
		who_put_owner(answer, kind, name, n++ == 0);
		if (!who_find_owner(answer, kind, in, name, &owner))
			break;
	}
	buf_str(answer->out, !n ? "" : answer->form != WHO_TEXT ? "]" : "\n");
}

static int who_put_labels(struct who_answer *answer, const struct kinf_object *pod)
{
	struct kinf_object labels;
	AUTO_FREE char *json = NULL;
	size_t size;

	if (kinf_object_part(pod, "metadata.labels", &labels) != KINF_FOUND)
		return 0;
	int r = kinf_object_json(&labels, 0, &json, &size);
	if (r == 0 && answer->form != WHO_TEXT)
		buf_printf(answer->out, ",\"labels\":%s", json);
	else if (r == 0)
		who_put(answer, "Labels", BYTES(json, size));
	return r;
}

int who_answer_put(void *arg, const struct kinf_object *pod, uint64_t until_ns)
{
	struct who_answer *answer = arg;
	struct bytes phase = who_text(pod, "status.phase");
	bool finished = bytes_equal(phase, BYTES_LIT("Succeeded")) ||
			bytes_equal(phase, BYTES_LIT("Failed"));
	bool on_node = bytes_equal(who_text(pod, "spec.hostNetwork"), BYTES_LIT("true"));

	if (answer->form != WHO_TEXT) {
		buf_str(answer->out, answer->form == WHO_LIST && answer->n ? "," : "");
		buf_str(answer->out, "{\"pod\":");
		json_write_string(BYTES(pod->key, pod->key_size), answer->out);
	} else {
		buf_str(answer->out, answer->n ? "\n" : "");
		who_put(answer, "Pod", BYTES(pod->key, pod->key_size));
	}
	answer->n++;
	answer->former += until_ns != 0;
	answer->on_node += on_node;
	answer->finished += finished;
	who_put(answer, "UID", BYTES(pod->uid, pod->uid_size));
	/* Each text lives until the next path is read. */
	who_put(answer, "Node", who_text(pod, "spec.nodeName"));
	who_put(answer, "Network", on_node ? BYTES_LIT("of the node") : BYTES_NONE);
	who_put(answer, "Phase", who_text(pod, "status.phase"));
	who_put_owners(answer, pod);
	int r = who_put_labels(answer, pod);
	if (until_ns) {
		char when[TIMESTAMP_SIZE], age[AGE_SIZE];

		timestamp_seconds(until_ns, when);
		age_since(until_ns, age);
		if (answer->form != WHO_TEXT)
			who_put(answer, "Until", bytes_str(when));
		else
			buf_printf(answer->out,
				"Until:     %s (%s ago), by this pod's deletion or change\n", when,
				age);
	}
	buf_str(answer->out, answer->form == WHO_TEXT   ? ""
			     : answer->form == WHO_JSON ? "}\n"
							: "}");
	return r < 0 ? r : buf_error(answer->out);
}

void who_answer_note(const struct who_answer *answer, char text[WHO_NOTE_SIZE])
{
	char on_node[80] = "", finished[80] = "";

	*text = '\0';
	if (answer->n < 2)
		return;
	if (answer->on_node)
		(void)snprintf(on_node, sizeof(on_node), "; on the network of their node: %zu",
			answer->on_node);
	if (answer->finished)
		(void)snprintf(finished, sizeof(finished),
			"; finished, so that another may have their address: %zu",
			answer->finished);
	(void)snprintf(text, WHO_NOTE_SIZE, "pods that have it now: %zu, that had it: %zu%s%s",
		answer->n - answer->former, answer->former, on_node, finished);
}
