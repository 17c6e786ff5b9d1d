/* SPDX-License-Identifier: Apache-2.0 */
/* A store of pods in three namespaces, made by the processor's modules, and a snapshot of it. */
#ifndef UNIT_QUERY_RIG_H
#define UNIT_QUERY_RIG_H

#include "reader/kinf.h"
#include "tests/unit/rig.h"

#define CONFIG \
	"feeds:\n" \
	"  - resource: pods\n" \
	"    indexes:\n" \
	"      node: spec.nodeName\n" \
	"      image: spec.containers[*].image\n" \
	"      node-phase: [spec.nodeName, status.phase]\n"

#define OBJECTS 120

#define NO_FEED(name) \
	"no feed '" name "': add '- resource: " name \
	"' to the feeds in kinf.yaml; if it is there, " \
	"'kinf status' says why it has no feed; there are: 'pods'"

struct pod {
	bool there;
	char namespace_[8], name[16];
	unsigned app, node, phase, image;
};

static struct {
	struct rig rig;
	uint32_t feed[3]; /* of namespaces a, b, c: all three are "pods" */
	struct pod pods[OBJECTS];
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
} w;

static unsigned random_state = 7;

static inline unsigned dice(unsigned sides)
{
	random_state = random_state * 1103515245u + 12345u;
	return (random_state >> 8) % sides;
}

/* ---- the store ---------------------------------------------------------- */

static inline uint32_t feed_of(const struct pod *pod)
{
	return w.feed[pod->namespace_[0] - 'a'];
}

static inline void write_pod(struct pod *pod)
{
	char key[40], json[600];

	(void)snprintf(key, sizeof(key), "%s/%s", pod->namespace_, pod->name);
	(void)snprintf(json, sizeof(json),
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"labels\":{\"app\":\"a%u\"%s}"
		"},"
		"\"spec\":{\"nodeName\":\"n%u\",\"containers\":[{\"image\":\"i%u\"},{\"image\":"
		"\"side\"}]},"
		"\"status\":{\"phase\":\"p%u\"}}",
		pod->name, pod->namespace_, pod->app, pod->app % 2 ? ",\"odd\":\"\"" : "",
		pod->node, pod->image, pod->phase);
	(void)rig_append(
		&w.rig, feed_of(pod), pod->there ? RECORD_MODIFIED : RECORD_ADDED, key, json);
	pod->there = true;
}

static inline void change_pod(struct pod *pod)
{
	char key[40];

	if (pod->there && dice(3) == 0) {
		(void)snprintf(key, sizeof(key), "%s/%s", pod->namespace_, pod->name);
		(void)rig_append(&w.rig, feed_of(pod), RECORD_DELETED, key, NULL);
		pod->there = false;
		return;
	}
	pod->app = dice(5);
	pod->node = dice(4);
	pod->phase = dice(3);
	pod->image = dice(6);
	write_pod(pod);
}

static inline void take(void)
{
	rig_take(&w.rig);
	OK(w.snapshot ? kinf_snapshot_renew(w.snapshot) : kinf_snapshot_open(w.kinf, &w.snapshot));
}

static inline void setup(void)
{
	static const char *const namespaces[] = {"a", "b", "c"};

	rig_open(&w.rig, CONFIG);
	/* Not in the order of their keys. */
	for (unsigned i = 3; i-- > 0;)
		w.feed[i] = rig_add_pods(&w.rig, namespaces[i]);
	for (unsigned i = 0; i < 3; i++)
		(void)rig_append(&w.rig, w.feed[i], RECORD_LIST_BEGIN, NULL, NULL);
	for (unsigned i = 0; i < OBJECTS; i++) {
		struct pod *pod = &w.pods[i];

		(void)snprintf(pod->namespace_, sizeof(pod->namespace_), "%s", namespaces[i % 3]);
		(void)snprintf(pod->name, sizeof(pod->name), "%s-%03u", i % 5 ? "web" : "db", i);
		change_pod(pod);
	}
	for (unsigned i = 0; i < 3; i++)
		(void)rig_append(&w.rig, w.feed[i], RECORD_LIST_END, NULL, NULL);
	rig_take(&w.rig);
	OK(kinf_open(scratch_path("store"), &w.kinf));
	OK(kinf_set_check(w.kinf, 1));
	take();
}

static inline void teardown(void)
{
	kinf_snapshot_close(&w.snapshot);
	kinf_close(&w.kinf);
	rig_close(&w.rig);
}

static inline int count_feed(void *arg, const struct kinf_feed_info *status)
{
	(void)status;
	++*(unsigned *)arg;
	return 0;
}

static inline struct pod *pod_of(const struct kinf_object *object)
{
	char key[40];

	for (unsigned i = 0; i < OBJECTS; i++) {
		(void)snprintf(key, sizeof(key), "%s/%s", w.pods[i].namespace_, w.pods[i].name);
		if (strlen(key) == object->key_size && !memcmp(key, object->key, object->key_size))
			return &w.pods[i];
	}
	cr_assert_fail("unknown key %.*s", (int)object->key_size, object->key);
	return NULL;
}

#endif
