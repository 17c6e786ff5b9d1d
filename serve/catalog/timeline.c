/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog/timeline.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/err.h"
#include "common/hash.h"

#define TIMELINE_HASH_SEED 0x72760a11u

void timeline_release(struct timeline *timeline)
{
	free(timeline->entries);
	free(timeline->brackets);
	*timeline = (struct timeline){0};
}

/* ---- resourceVersions --------------------------------------------------- */

bool timeline_rv_parse(struct bytes text, timeline_rv *ret_rv)
{
	const timeline_rv most = ~(timeline_rv)0;
	const char *p = text.data;
	timeline_rv rv = 0;

	for (size_t i = 0; i < text.size; i++) {
		unsigned digit = (unsigned)(p[i] - '0');

		if (p[i] < '0' || p[i] > '9' || rv > most / 10 || rv * 10 > most - digit)
			return false;
		rv = rv * 10 + digit;
	}
	*ret_rv = rv;
	return text.size > 0;
}

void timeline_rv_format(timeline_rv rv, char text[TIMELINE_RV_SIZE])
{
	char digits[TIMELINE_RV_SIZE];
	size_t n = 0;

	do {
		digits[n++] = (char)('0' + (int)(rv % 10));
		rv /= 10;
	} while (rv);
	for (size_t i = 0; i < n; i++)
		text[i] = digits[n - 1 - i];
	text[n] = '\0';
}

/* Returns RV as a number, or a hash above all numbers and OPAQUE. */
static timeline_rv timeline_value(struct bytes rv, bool *opaque)
{
	timeline_rv value;

	if (timeline_rv_parse(rv, &value))
		return value;
	*opaque = true;
	return (timeline_rv)1 << 127 | hash_bytes(rv, TIMELINE_HASH_SEED);
}

/* ---- adding ------------------------------------------------------------- */

void timeline_begin(struct timeline *t, const struct feed_checkpoint *checkpoint)
{
	t->gone = checkpoint->trimmed;
	t->listed = checkpoint->first_list && checkpoint->first_list <= checkpoint->trimmed;
	t->has_oldest = t->listed && checkpoint->trimmed_rv.size > 0;
	if (t->has_oldest)
		t->oldest = timeline_value(checkpoint->trimmed_rv, &t->opaque);
}

/* Returns the RV of an entry to add. Entries are searched by RV, so it never falls, even if a list
 * is older than the entry before. */
static timeline_rv timeline_raise(struct timeline *t, struct bytes text)
{
	timeline_rv rv = timeline_value(text, &t->opaque);
	timeline_rv last = t->n > t->first ? t->entries[t->n - 1].rv
			   : t->has_oldest ? t->oldest
					   : 0;

	return t->opaque || rv > last ? rv : last;
}

static int timeline_end_list(struct timeline *t, const struct record *record)
{
	struct timeline_entry entry = {.seq = record->seq, .begin = t->pending};
	bool whole = t->pending && t->pending_known && t->listed;

	if (record->flags & RECORD_ABANDONED) {
		if (!t->pending) { /* the rest of a trimmed one */
			t->first = t->n;
			t->pending = record->seq;
			t->pending_known = false;
		}
		return 0;
	}
	entry.rv = timeline_raise(t, record->rv);
	t->pending = 0;
	t->listed = true;
	if (!whole) { /* the first list, or the trimmed rest of one */
		t->first = t->n;
		t->oldest = entry.rv;
		t->has_oldest = true;
		t->gone = record->seq;
		return 0;
	}
	int r = ARRAY_ADD(t->brackets, t->n_brackets, t->brackets_room,
		((struct timeline_bracket){record->seq, t->pending_from}), "a timeline");
	return r < 0 ? r : ARRAY_ADD(t->entries, t->n, t->room, entry, "a timeline");
}

int timeline_add(struct timeline *t, const struct record *record)
{
	if (record->type == RECORD_LIST_BEGIN && !t->pending) {
		t->pending = record->seq;
		t->pending_known = record->rv.size > 0;
		if (t->pending_known)
			t->pending_from = timeline_raise(t, record->rv);
		return 0;
	}
	if (record->type == RECORD_LIST_END)
		return timeline_end_list(t, record);
	if (!record_is_change(record->type) || t->pending || !t->listed)
		return 0;
	struct timeline_entry entry = {.seq = record->seq};

	entry.rv = timeline_raise(t, record->rv);
	return ARRAY_ADD(t->entries, t->n, t->room, entry, "a timeline");
}

/* ---- trimming ----------------------------------------------------------- */

/* Forgets entries at or below TRIMMED. A partly trimmed bracket is not kept. */
static void timeline_trim(struct timeline *t, uint64_t trimmed, struct bytes rv)
{
	size_t kept = 0;
	timeline_rv oldest;

	if (trimmed <= t->gone)
		return;
	t->gone = trimmed;
	while (t->first < t->n) {
		const struct timeline_entry *entry = &t->entries[t->first];

		if ((entry->begin ? entry->begin : entry->seq) > trimmed)
			break;
		if (entry->begin && entry->seq > t->gone)
			t->gone = entry->seq;
		t->oldest = entry->rv;
		t->has_oldest = true;
		t->first++;
	}
	/* At the start entries below the horizon are not there: the journal knows their RV. */
	if (rv.size) {
		oldest = timeline_value(rv, &t->opaque);
		if (t->opaque || !t->has_oldest || oldest > t->oldest)
			t->oldest = oldest;
		t->has_oldest = true;
	}
	if (t->first > 1024 && t->first > t->n / 2) {
		memmove(t->entries, t->entries + t->first, (t->n - t->first) * sizeof(*t->entries));
		t->n -= t->first;
		t->first = 0;
	}
	for (size_t i = 0; i < t->n_brackets; i++)
		if (t->brackets[i].seq > t->gone)
			t->brackets[kept++] = t->brackets[i];
	t->n_brackets = kept;
}

void timeline_break(struct timeline *t)
{
	t->broken = true;
}

/* Begins again from the checkpoint. */
static void timeline_mend(
	struct timeline *t, const struct feed_checkpoint *checkpoint, uint64_t end)
{
	t->broken = false;
	t->first = t->n;
	t->n_brackets = 0;
	t->listed = checkpoint->first_list != 0;
	t->pending = checkpoint->list_begin;
	t->pending_known = false;
	t->gone = t->pending ? t->pending - 1 : end;
	t->has_oldest = t->listed && checkpoint->rv.size > 0;
	if (t->has_oldest)
		t->oldest = timeline_value(checkpoint->rv, &t->opaque);
}

void timeline_settle(struct timeline *t, const struct feed_checkpoint *checkpoint, uint64_t end)
{
	struct timeline_entry *last;

	if (t->broken)
		timeline_mend(t, checkpoint, end);
	if (!t->listed)
		return;
	timeline_trim(t, checkpoint->trimmed, checkpoint->trimmed_rv);
	t->visible = t->pending ? t->pending - 1 : end;
	last = t->n > t->first ? &t->entries[t->n - 1] : NULL;
	if (checkpoint->rv.size >= TIMELINE_RV_SIZE || checkpoint->rv.size == 0)
		return;
	timeline_rv newest = timeline_value(checkpoint->rv, &t->opaque);

	if (t->opaque) {
		t->newest = newest;
		(void)snprintf(
			t->newest_text, sizeof(t->newest_text), "%.*s", BYTES_ARG(checkpoint->rv));
		return;
	}
	if (last && last->rv > newest)
		newest = last->rv;
	if (newest > t->newest)
		t->newest = newest;
	timeline_rv_format(t->newest, t->newest_text);
}

/* ---- finding ------------------------------------------------------------ */

/* Finds the first entry that is newer than RV; after SEQ if RV is NULL. */
static size_t timeline_find(const struct timeline *t, uint64_t seq, const timeline_rv *rv)
{
	size_t low = t->first, high = t->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct timeline_entry *entry = &t->entries[middle];

		if (rv ? entry->rv <= *rv : entry->seq <= seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns C of a bracket's entry. */
static timeline_rv timeline_before(const struct timeline *t, const struct timeline_entry *entry)
{
	for (size_t i = 0; i < t->n_brackets; i++)
		if (t->brackets[i].seq == entry->seq)
			return t->brackets[i].from;
	return entry->rv;
}

static enum timeline_place timeline_seek_opaque(
	const struct timeline *t, timeline_rv rv, uint64_t *ret_position)
{
	*ret_position = t->visible;
	if (rv == t->newest)
		return TIMELINE_FOUND;
	for (size_t i = t->n; i > t->first; i--)
		if (t->entries[i - 1].rv == rv && t->entries[i - 1].seq <= t->visible) {
			*ret_position = t->entries[i - 1].seq;
			return TIMELINE_FOUND;
		}
	*ret_position = t->gone;
	return t->has_oldest && rv == t->oldest ? TIMELINE_FOUND : TIMELINE_GONE;
}

enum timeline_place timeline_seek(
	const struct timeline *t, struct bytes rv, uint64_t *ret_position, timeline_rv *ret_rv)
{
	bool opaque = false;
	timeline_rv wanted = timeline_value(rv, &opaque);

	*ret_position = t->visible;
	if (ret_rv)
		*ret_rv = wanted;
	if (t->opaque)
		return timeline_seek_opaque(t, wanted, ret_position);
	if (opaque)
		return TIMELINE_INVALID;
	if (wanted > t->newest)
		return wanted <= t->earlier ? TIMELINE_GONE : TIMELINE_FUTURE;
	if (!t->has_oldest || wanted < t->oldest)
		return TIMELINE_GONE;
	size_t i = timeline_find(t, 0, &wanted);

	if (i == t->n || t->entries[i].seq > t->visible)
		return TIMELINE_FOUND;
	const struct timeline_entry *entry = &t->entries[i];

	if (entry->begin && wanted > timeline_before(t, entry))
		return TIMELINE_GONE;
	*ret_position = (entry->begin ? entry->begin : entry->seq) - 1;
	return TIMELINE_FOUND;
}

int timeline_next(const struct timeline *t, uint64_t position, struct timeline_entry *ret_entry)
{
	if (position < t->gone)
		return LAPPED;
	size_t i = timeline_find(t, position, NULL);

	if (i == t->n || t->entries[i].seq > t->visible)
		return END;
	*ret_entry = t->entries[i];
	return FOUND;
}

uint64_t timeline_settled(const struct timeline *t, uint64_t seq)
{
	if (seq > t->visible)
		seq = t->visible;
	size_t i = timeline_find(t, seq, NULL);

	if (i < t->n && t->entries[i].begin && t->entries[i].begin <= seq)
		seq = t->entries[i].begin - 1;
	return seq;
}

void timeline_rv_at(const struct timeline *t, uint64_t seq, char text[TIMELINE_RV_SIZE])
{
	size_t i = timeline_find(t, seq, NULL);

	text[0] = '\0';
	if (i == t->n || t->entries[i].seq > t->visible)
		memcpy(text, t->newest_text, TIMELINE_RV_SIZE);
	else if (t->opaque)
		return;
	else if (t->entries[i].begin) /* all before it is known */
		timeline_rv_format(timeline_before(t, &t->entries[i]), text);
	else if (i > t->first)
		timeline_rv_format(t->entries[i - 1].rv, text);
	else if (t->has_oldest)
		timeline_rv_format(t->oldest, text);
}

void timeline_last(const struct timeline *t, char text[TIMELINE_RV_SIZE])
{
	text[0] = '\0';
	if (t->n > t->first && !t->opaque)
		timeline_rv_format(t->entries[t->n - 1].rv, text);
	else if (t->has_oldest && !t->opaque)
		timeline_rv_format(t->oldest, text);
}

void timeline_oldest(const struct timeline *t, char text[TIMELINE_RV_SIZE])
{
	if (t->has_oldest && !t->opaque)
		timeline_rv_format(t->oldest, text);
	else
		memcpy(text, t->newest_text, TIMELINE_RV_SIZE);
}
