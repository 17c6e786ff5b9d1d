/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watches of a worker: by feed, and in a feed by group. The watches of a group have the same
 * keys, selectors and form, so an event is decided and made once for all of them, as a frame.
 *
 * A watch without a backlog holds no position: the worker walks the log once for all of them, and
 * wakes the groups of each event. A woken or lagging watch reads the log from its own position
 * until it has caught up.
 *
 *	walked     a b c d      the worker has walked up to c; d is new and is for group 1
 *	             │ └─► d    watches of group 1: position c, woken
 *	             └► own     a slow watch goes on after b whenever its client takes something
 *
 * Groups with one value of a name, a namespace, a field or a label are in a table by it, and see
 * only events with that value before or after. So 10,000 watches of the pods of one node each cost
 * one look-up an event.
 */
#include "serve/answer/group.h"

#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/hashtable.h"
#include "common/proc.h"
#include "common/value/field.h"
#include "serve/answer/encode.h"
#include "serve/chain.h"

#define FRAMES_BYTES ((size_t)64 << 20) /* of all workers */

/* The watches of one feed at one worker. */
struct group_feed {
	struct group_feed *next, **at;
	struct catalog_feed *feed;
	uint64_t news;                 /* walked for */
	uint64_t states;               /* leaves were woken for */
	uint64_t walked;               /* of the log, for the watches without a backlog */
	struct hashtable by_name;      /* all groups */
	struct hashtable by_value;     /* those with a hook */
	struct answer_group *unhooked; /* the others */
	struct group_hook *hooks;
};

/* Watches with the same keys, selectors and form. */
struct answer_group {
	struct group_feed *feed;
	uint64_t shown;            /* the seq of the last event shown to it */
	struct buf name;           /* keys, selectors and form */
	struct group_hook *hook;   /* NULL: every event is shown to it */
	struct buf value;          /* the hook's value */
	struct answer_group *next; /* with the same value */
	struct answer_member *first;
	size_t behind;               /* watches with a backlog */
	struct answer_frame *frames; /* kept for them */
};

/* The frames used last. */
struct frames {
	struct hashtable table;
	struct answer_frame *newest, *oldest;
	size_t bytes, room;
	struct metric_cell *kept; /* BYTES of all workers */
};

struct answer_groups {
	struct group_feed *feeds; /* those with watches */
	struct frames frames;
};

/* ---- frames -------------------------------------------------------------- */

/*
 * A frame is the lines of one record for the watches of one group, made once for all of them. A
 * worker keeps the frames used last, until no watch of the group has a backlog. A lagging watch
 * makes a dropped frame again from the journal.
 */

struct frame_place {
	uint32_t hash;
	struct answer_frame *frame;
};

struct frame_key {
	struct answer_group *group;
	uint64_t seq;
};

static bool frame_is(const void *item, const void *key, const void *arg)
{
	const struct answer_frame *frame = ((const struct frame_place *)item)->frame;
	const struct frame_key *wanted = key;

	(void)arg;
	return frame->group == wanted->group && frame->seq == wanted->seq;
}

static uint64_t frame_hash(const struct frame_key *key)
{
	return hash_u64(key->seq, (uintptr_t)key->group);
}

static void frame_unlink(struct frames *frames, struct answer_frame *frame)
{
	*(frame->newer ? &frame->newer->older : &frames->newest) = frame->older;
	*(frame->older ? &frame->older->newer : &frames->oldest) = frame->newer;
}

static void frame_link(struct frames *frames, struct answer_frame *frame)
{
	frame->newer = NULL;
	frame->older = frames->newest;
	*(frame->older ? &frame->older->newer : &frames->oldest) = frame;
	frames->newest = frame;
}

static void frame_drop(struct frames *frames, struct answer_frame *frame)
{
	const struct frame_key key = {frame->group, frame->seq};

	hashtable_remove(&frames->table, hashtable_find(&frames->table, frame_hash(&key), &key));
	frame_unlink(frames, frame);
	CHAIN_REMOVE(frame);
	frames->bytes -= sizeof(*frame) + frame->size;
	metric_sub(frames->kept, sizeof(*frame) + frame->size);
	free(frame);
}

static void frames_drop(struct answer_worker *worker, struct answer_group *group)
{
	while (group->frames)
		frame_drop(&worker->groups->frames, group->frames);
}

/* Keeps a frame of LINES. Returns NULL without memory. */
static struct answer_frame *frame_keep(struct frames *frames, const struct frame_key *key,
	const struct record *record, int n, struct bytes lines)
{
	struct answer_frame *frame = malloc(sizeof(*frame) + lines.size);
	struct frame_place *place;

	if (!frame)
		return NULL;
	*frame = (struct answer_frame){.group = key->group,
		.seq = key->seq,
		.n = (unsigned)n,
		.size = lines.size,
		.of_watch = record->flags & RECORD_FINAL_STATE_UNKNOWN};
	if (record->rv.size < sizeof(frame->rv))
		memcpy(frame->rv, record->rv.data, record->rv.size);
	if (lines.size)
		memcpy(frame->lines, lines.data, lines.size);
	int r = hashtable_add(&frames->table, frame_hash(key), "the frames of watches", &place);
	if (r < 0) {
		err_ignore(r, "the caller reports it");
		free(frame);
		return NULL;
	}
	place->frame = frame;
	frame_link(frames, frame);
	CHAIN_ADD(&frame->group->frames, frame);
	frames->bytes += sizeof(*frame) + frame->size;
	metric_add(frames->kept, sizeof(*frame) + frame->size);
	while (frames->bytes > frames->room && frames->oldest != frame)
		frame_drop(frames, frames->oldest);
	return frame;
}

/* Makes the lines of record SEQ for the watches of REQUEST's group. */
static int frame_make(struct answer_request *request, const struct frame_key *key,
	const struct answer_frame **ret_frame)
{
	CLEANUP(buf_release) struct buf lines = BUF_INIT;
	struct frames *frames = &request->worker->groups->frames;
	/* Each watch makes its first table itself. */
	struct answer_encoder encoder = {.request = request, .columns_given = true};
	struct record record;
	int r = answer_event_read(request, key->seq, &record);

	if (r != 0)
		return r;
	r = answer_event_record(&encoder, &record, record.rv, &lines);
	if (r < 0 || r == LAPPED)
		return r;
	*ret_frame = frame_keep(frames, key, &record, r, buf_bytes(&lines));
	return *ret_frame ? 0 : err_set(-ENOMEM, "an event of a watch");
}

int answer_frame(struct answer_request *request, struct answer_group *group, uint64_t seq,
	bool *held, const struct answer_frame **ret_frame)
{
	struct frames *frames = &request->worker->groups->frames;
	const struct frame_key key = {group, seq};
	struct frame_place *place = hashtable_find(&frames->table, frame_hash(&key), &key);

	if (place) {
		*ret_frame = place->frame;
		frame_unlink(frames, place->frame);
		frame_link(frames, place->frame);
		return 0;
	}
	if (!*held) {
		int r = answer_take_log(request->worker);

		if (r != 0)
			return r;
		*held = true;
	}
	return frame_make(request, &key, ret_frame);
}

/* ---- hooks --------------------------------------------------------------- */

enum group_hook_kind {
	HOOK_KEY, /* of one object, or a namespace with its slash */
	HOOK_FIELD,
	HOOK_LABEL,
};

/* A thing of which groups of a feed ask one value. */
struct group_hook {
	struct group_hook *next, **at;
	enum group_hook_kind kind;
	size_t n_groups;
	struct field *field;
	struct bytes key;
	uint8_t text[]; /* KEY points to it */
};

struct group_place {
	uint32_t hash;
	struct answer_group *group; /* the first of its name, or of its value */
};

struct hook_value {
	const struct group_hook *hook;
	struct bytes value;
};

static bool group_has_name(const void *item, const void *key, const void *arg)
{
	const struct answer_group *group = ((const struct group_place *)item)->group;

	(void)arg;
	return bytes_equal(buf_bytes(&group->name), *(const struct bytes *)key);
}

static bool group_has_value(const void *item, const void *key, const void *arg)
{
	const struct answer_group *group = ((const struct group_place *)item)->group;
	const struct hook_value *wanted = key;

	(void)arg;
	return group->hook == wanted->hook && bytes_equal(buf_bytes(&group->value), wanted->value);
}

static uint64_t group_hash_value(const struct hook_value *value)
{
	return hash_bytes(value->value, (uintptr_t)value->hook);
}

/* Finds or makes the hook of a feed. */
static int group_hook(struct group_feed *feed, enum group_hook_kind kind, struct bytes key,
	struct group_hook **ret_hook)
{
	struct group_hook *hook = feed->hooks;

	while (hook && (hook->kind != kind || !bytes_equal(hook->key, key)))
		hook = hook->next;
	if (!hook) {
		hook = calloc(1, sizeof(*hook) + key.size);
		if (!hook)
			return err_set(-ENOMEM, "a group of watches");
		hook->kind = kind;
		if (key.size)
			memcpy(hook->text, key.data, key.size);
		hook->key = BYTES(hook->text, key.size);
		int r = kind == HOOK_FIELD ? field_parse(key, &hook->field) : 0;
		if (r < 0) {
			free(hook);
			return r;
		}
		CHAIN_ADD(&feed->hooks, hook);
	}
	hook->n_groups++;
	*ret_hook = hook;
	return 0;
}

/* Returns a requirement of one value, NULL if there is none. */
static const struct selector_requirement *group_equality(const struct selector *selector)
{
	for (size_t i = 0; selector && i < selector_count(selector); i++) {
		const struct selector_requirement *one = selector_at(selector, i);

		if (one->op == SELECTOR_IN && one->n_values == 1)
			return one;
	}
	return NULL;
}

/* Chooses the group's most selective hook. */
static int group_choose_hook(struct answer_group *group, const struct answer_request *request)
{
	const struct api_options *o = &request->options;
	const struct selector_requirement *field = group_equality(o->fields);
	const struct selector_requirement *label = group_equality(o->labels);
	struct bytes key = buf_bytes(&request->key), value = BYTES_NONE;
	struct group_feed *feed = group->feed;
	bool has_name = key.size && ((const char *)key.data)[key.size - 1] != '/';
	int r;

	if (!has_name && (field || label)) {
		const struct selector_requirement *one = field ? field : label;

		value = one->values[0];
		r = group_hook(feed, field ? HOOK_FIELD : HOOK_LABEL, one->key, &group->hook);
	} else if (key.size) {
		value = key;
		r = group_hook(feed, HOOK_KEY, BYTES_NONE, &group->hook);
	} else {
		return 0;
	}
	buf_bytes_put(&group->value, value);
	return r < 0 ? r : buf_error(&group->value);
}

/* ---- joining and leaving ------------------------------------------------ */

/* Writes the group's name: keys, selectors and form. */
static int group_name(const struct answer_request *request, struct buf *name)
{
	const struct api_options *o = &request->options;
	const char *const texts[] = {o->labels ? selector_text(o->labels) : "",
		o->fields ? selector_text(o->fields) : "", request->accept.version};
	const unsigned char form[] = {(unsigned char)request->accept.form, request->accept.protobuf,
		(unsigned char)o->include};

	buf_put(name, form, sizeof(form));
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		buf_put(name, texts[i], strlen(texts[i]) + 1);
	buf_bytes_put(name, buf_bytes(&request->key));
	return buf_error(name);
}

static int group_find_feed(struct answer_worker *worker, struct catalog_feed *catalog_feed,
	struct group_feed **ret_feed)
{
	struct group_feed *feed = worker->groups->feeds;

	while (feed && feed->feed != catalog_feed)
		feed = feed->next;
	if (!feed) {
		feed = calloc(1, sizeof(*feed));
		if (!feed)
			return err_set(-ENOMEM, "the watches of a feed");
		(void)__atomic_add_fetch(&catalog_feed->references, 1, __ATOMIC_ACQ_REL);
		feed->feed = catalog_feed;
		feed->by_name = HASHTABLE_INIT(struct group_place, group_has_name, NULL);
		feed->by_value = HASHTABLE_INIT(struct group_place, group_has_value, NULL);
		catalog_lock(worker->answer->catalog);
		feed->walked = catalog_feed->timeline.visible;
		catalog_unlock(worker->answer->catalog);
		CHAIN_ADD(&worker->groups->feeds, feed);
	}
	*ret_feed = feed;
	return 0;
}

/* Frees the feed if it has no watches. */
static void group_drop_feed(struct group_feed *feed)
{
	if (feed->by_name.n)
		return;
	CHAIN_REMOVE(feed);
	hashtable_release(&feed->by_name);
	hashtable_release(&feed->by_value);
	catalog_release(&feed->feed);
	free(feed);
}

/* Adds the group to the list of its value, or to those without a hook. */
static int group_hang(struct answer_group *group)
{
	struct group_feed *feed = group->feed;
	struct answer_group **first = &feed->unhooked;

	if (group->hook) {
		const struct hook_value key = {group->hook, buf_bytes(&group->value)};
		uint64_t hash = group_hash_value(&key);
		struct group_place *place = hashtable_find(&feed->by_value, hash, &key);

		if (!place) {
			int r = hashtable_add(
				&feed->by_value, hash, "the values of watches", &place);
			if (r < 0)
				return r;
			place->group = NULL;
		}
		first = &place->group;
	}
	/* Second in the list: the table points to the first. */
	group->next = *first ? (*first)->next : NULL;
	*(*first ? &(*first)->next : first) = group;
	return 0;
}

static void group_take_off(struct answer_group *group)
{
	struct group_feed *feed = group->feed;
	const struct hook_value key = {group->hook, buf_bytes(&group->value)};
	struct group_place *place = NULL;
	struct answer_group **first = &feed->unhooked;

	if (group->hook) {
		place = hashtable_find(&feed->by_value, group_hash_value(&key), &key);
		if (!place)
			return; /* it was never hung up */
		first = &place->group;
	}
	for (struct answer_group **at = first; *at; at = &(*at)->next)
		if (*at == group) {
			*at = group->next;
			break;
		}
	if (place && !place->group)
		hashtable_remove(&feed->by_value, place);
}

static void group_free(struct answer_worker *worker, struct answer_group *group)
{
	struct group_feed *feed = group->feed;
	struct group_hook *hook = group->hook;
	struct bytes name = buf_bytes(&group->name);
	struct group_place *place =
		hashtable_find(&feed->by_name, hash_bytes(name, (uintptr_t)feed), &name);

	if (place)
		hashtable_remove(&feed->by_name, place);
	group_take_off(group);
	if (hook && --hook->n_groups == 0) {
		CHAIN_REMOVE(hook);
		field_free(&hook->field);
		free(hook);
	}
	frames_drop(worker, group);
	buf_release(&group->name);
	buf_release(&group->value);
	free(group);
	group_drop_feed(feed);
}

static int group_new(struct answer_request *request, struct group_feed *feed, struct buf *name,
	struct answer_group **ret_group)
{
	struct answer_worker *worker = request->worker;
	struct answer_group *group = calloc(1, sizeof(*group));
	struct group_place *place;

	if (!group) {
		group_drop_feed(feed);
		return err_set(-ENOMEM, "a group of watches");
	}
	group->feed = feed;
	group->name = *name;
	*name = BUF_INIT;
	int r = hashtable_add(&feed->by_name, hash_bytes(buf_bytes(&group->name), (uintptr_t)feed),
		"the groups", &place);
	if (r == 0) {
		place->group = group;
		r = group_choose_hook(group, request);
	}
	if (r == 0)
		r = group_hang(group);
	if (r < 0)
		group_free(worker, group);
	else
		*ret_group = group;
	return r;
}

int answer_group_join(struct answer_member *member)
{
	CLEANUP(buf_release) struct buf name = BUF_INIT;
	struct answer_request *request = member->request;
	struct answer_group *group;
	struct group_feed *feed;
	int r = group_name(request, &name);

	if (r == 0)
		r = group_find_feed(request->worker, request->feed, &feed);
	if (r < 0)
		return r;
	struct bytes wanted = buf_bytes(&name);
	struct group_place *place =
		hashtable_find(&feed->by_name, hash_bytes(wanted, (uintptr_t)feed), &wanted);
	if (place)
		group = place->group;
	else
		r = group_new(request, feed, &name, &group);
	if (r < 0)
		return r;
	member->group = group;
	CHAIN_ADD(&group->first, member);
	group->behind++;
	return 0;
}

void answer_group_set_caught_up(struct answer_member *member, bool caught_up)
{
	struct answer_group *group = member->group;

	if (member->caught_up == caught_up)
		return;
	member->caught_up = caught_up;
	if (!caught_up) {
		group->behind++;
		if (member->position < group->feed->walked)
			member->position = group->feed->walked;
	} else if (--group->behind == 0) {
		frames_drop(member->request->worker, group);
	}
}

void answer_group_leave(struct answer_member *member)
{
	if (!member->group)
		return;
	answer_group_set_caught_up(member, true);
	CHAIN_REMOVE(member);
	if (!member->group->first)
		group_free(member->request->worker, member->group);
	member->group = NULL;
}

/* ---- news --------------------------------------------------------------- */

/* Wakes the group's watches without a backlog before SEQ. */
static void group_wake(struct answer_group *group, uint64_t seq)
{
	for (struct answer_member *member = group->first; member; member = member->next) {
		if (!member->caught_up || member->position >= seq)
			continue;
		answer_group_set_caught_up(member, false);
		exchange_wake(member->request->x);
	}
}

struct group_walk {
	struct group_feed *feed;
	uint64_t seq;
	bool held; /* the worker's snapshot is */
	const struct group_hook *hook;
};

/* Shows an event to the group, and to the others in its list. An error is found again by each
 * watch. */
static void group_show(struct group_walk *walk, struct answer_group *group)
{
	const struct answer_frame *frame;

	for (; group; group = group->next) {
		if (group->shown == walk->seq)
			continue; /* it had the same value before and after */
		group->shown = walk->seq;
		int r = answer_frame(group->first->request, group, walk->seq, &walk->held, &frame);
		if (r == 0 && frame->n == 0)
			continue;
		err_ignore(r < 0 ? r : 0, "the watches find it again, and end");
		group_wake(group, walk->seq);
	}
}

static int group_show_value(void *arg, struct bytes value)
{
	struct group_walk *walk = arg;
	const struct hook_value key = {walk->hook, value};
	struct group_place *place =
		hashtable_find(&walk->feed->by_value, group_hash_value(&key), &key);

	if (place)
		group_show(walk, place->group);
	return 0;
}

/* Shows the event to the groups of BODY's values. */
static int group_show_body(struct group_walk *walk, struct bytes body)
{
	struct value root, metadata, labels, one;
	int r;

	if (walk->hook->kind == HOOK_FIELD)
		return field_read(walk->hook->field, body, group_show_value, walk);
	r = value_read(body, &root);
	if (r == 0)
		r = value_find(&root, BYTES_LIT("metadata"), &metadata);
	if (r == FOUND)
		r = value_find(&metadata, BYTES_LIT("labels"), &labels);
	if (r == FOUND)
		r = value_find(&labels, walk->hook->key, &one);
	return r == FOUND ? group_show_value(walk, one.text) : r < 0 ? r : 0;
}

static int group_show_hook(
	struct group_walk *walk, const struct record *record, const struct record *old)
{
	struct bytes key = record->key;
	const uint8_t *slash = memchr(key.data, '/', key.size);
	int r = 0;

	if (walk->hook->kind == HOOK_KEY) {
		r = group_show_value(walk, key);
		key.size = slash ? (size_t)(slash + 1 - (const uint8_t *)key.data) : 0;
		return r == 0 && slash ? group_show_value(walk, key) : r;
	}
	if (record->body.size)
		r = group_show_body(walk, record->body);
	if (r == 0 && old)
		r = group_show_body(walk, old->body);
	return r;
}

static void group_wake_all(struct group_feed *feed, uint64_t seq)
{
	struct group_place *place;

	for (size_t at = 0; (place = hashtable_next(&feed->by_name, &at));)
		group_wake(place->group, seq);
}

/* Wakes the leaves' watches without a backlog, to report whether the feed is live. */
static void group_wake_leaves(struct group_feed *feed)
{
	struct group_place *place;

	for (size_t at = 0; (place = hashtable_next(&feed->by_name, &at));)
		for (struct answer_member *w = place->group->first; w; w = w->next)
			if (w->caught_up && w->request->is_leaf)
				exchange_wake(w->request->x);
}

/* Shows one entry to its groups. */
static int group_walk_entry(
	struct answer_worker *worker, struct group_walk *walk, const struct timeline_entry *entry)
{
	struct group_feed *feed = walk->feed;
	struct record record, old;
	bool has_old = false;
	int r = 0;

	walk->seq = entry->seq;
	if (entry->begin) { /* a relist: each watch finds its own part */
		group_wake_all(feed, entry->seq);
		return 0;
	}
	if (feed->unhooked)
		group_show(walk, feed->unhooked);
	if (!feed->hooks)
		return 0;
	if (!walk->held) {
		r = answer_take_log(worker);
		walk->held = r == 0;
	}
	if (r == 0)
		r = snapshot_version(worker->snapshot, entry->seq, &record);
	if (r == FOUND && record.prev) {
		has_old = snapshot_version(worker->snapshot, record.prev, &old) == FOUND;
		r = has_old ? FOUND : NOT_FOUND;
	}
	for (struct group_hook *hook = feed->hooks; hook && r == FOUND; hook = hook->next) {
		walk->hook = hook;
		r = group_show_hook(walk, &record, has_old ? &old : NULL);
	}
	return r;
}

/* Walks on for a slice. Returns whether there is more. */
static bool group_walk_feed(
	struct answer_worker *worker, struct group_feed *feed, uint64_t until_ns)
{
	struct group_walk walk = {.feed = feed};
	struct catalog_news news;
	size_t i = 0;
	int r = catalog_read(
		worker->answer->catalog, feed->feed, feed->walked, CATALOG_ENTRIES, &news);

	if (news.gone || r == LAPPED) { /* the watches end, or find out whether they can go on */
		group_wake_all(feed, UINT64_MAX);
		feed->walked = news.visible;
		return false;
	}
	for (; i < news.n && (i == 0 || proc_monotonic_ns() < until_ns); i++) {
		int result = group_walk_entry(worker, &walk, &news.entries[i]);

		if (result != FOUND && result != 0) {
			err_ignore(result < 0 ? result : 0, "the watches find it again, and end");
			group_wake_all(feed, news.entries[i].seq);
		}
		feed->walked = news.entries[i].seq;
	}
	if (walk.held)
		answer_release_snapshot(worker);
	return i < news.n || news.n == CATALOG_ENTRIES;
}

void answer_groups_news(struct answer_worker *worker)
{
	uint64_t until_ns = proc_monotonic_ns() + ANSWER_SLICE_NS;
	bool more = false;

	for (struct group_feed *feed = worker->groups->feeds; feed; feed = feed->next) {
		uint64_t news = __atomic_load_n(&feed->feed->news, __ATOMIC_ACQUIRE);
		uint64_t states = __atomic_load_n(&feed->feed->states, __ATOMIC_ACQUIRE);

		if (news == feed->news)
			continue;
		if (states != feed->states)
			group_wake_leaves(feed);
		feed->states = states;
		if (group_walk_feed(worker, feed, until_ns))
			more = true;
		else
			feed->news = news;
	}
	if (more)
		serve_worker_wake(worker->worker);
}

int answer_groups_open(struct answer_worker *worker)
{
	const struct answer *answer = worker->answer;
	struct answer_groups *groups = worker->groups = calloc(1, sizeof(*groups));

	if (!groups)
		return err_set(-ENOMEM, "a worker");
	groups->frames = (struct frames){.room = FRAMES_BYTES / answer->n_workers,
		.kept = metrics_cell(answer->metrics, METRIC_FRAME_BYTES, NULL),
		.table = HASHTABLE_INIT(struct frame_place, frame_is, NULL)};
	return 0;
}

void answer_groups_close(struct answer_worker *worker)
{
	struct frames *frames = &worker->groups->frames;

	REQUIRE(!worker->groups->feeds);
	while (frames->oldest)
		frame_drop(frames, frames->oldest);
	hashtable_release(&frames->table);
	free(worker->groups);
}
