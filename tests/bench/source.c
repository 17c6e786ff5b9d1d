/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "store/index/index.h"
#include "tests/bench/measure.h"

#define RING_CAPACITY (1u << 20)
#define TRIM_SLICE    4096
#define PAGE          500
#define POLL_NS       500000

/* Returns: FOUND, NOT_FOUND. */
static int open_feed(struct source *source)
{
	CLEANUP(feed_walk_release) struct feed_walk walk = {source->journal};
	CLEANUP(txn_abort) struct txn *txn = NULL;

	must(txn_begin_read(journal_env(source->journal), &txn), "journal");
	walk.txn = txn;
	while (must(feed_walk_next(&walk), "feeds") == FOUND)
		if (strcmp(walk.definition.name, SOURCE_FEED) == 0) {
			must(record_feed_init(&source->feed, source->recorder, &walk.definition,
				     &walk.checkpoint),
				"feed");
			return FOUND;
		}
	return NOT_FOUND;
}

static void add_feed(struct source *source)
{
	struct feed_definition definition = {.name = SOURCE_FEED,
		.version = "v1",
		.resource = "pods",
		.kind = "Pod",
		.list_kind = "PodList",
		.drop = "metadata.managedFields",
		.namespaced = true};
	uint32_t feed;

	must(recorder_begin(source->recorder), "recorder");
	must(recorder_changed(
		     source->recorder, journal_add_feed(source->journal, &definition, &feed)),
		"feed");
	must(recorder_flush(source->recorder), "recorder");
	must_true(open_feed(source) == FOUND, "the feed is not there");
}

void source_open(struct source *source, const char *directory, const char *runtime)
{
	struct home_options home = {.create = true, .runtime_dir = runtime};
	struct journal_options journal = {0};
	char reason[256];

	*source = (struct source){0};
	must(home_open(directory, &home, &source->home), directory);
	must(home_take_role(source->home, HOME_REFLECTOR), "role");
	must(journal_open_write(source->home, &journal, reason, &source->journal), "journal");
	must(ring_create(home_runtime_fd(source->home), "delta.ring", RING_CAPACITY,
		     journal_uuid(source->journal), 0600, &source->ring),
		"delta ring");
	must(recorder_new(source->journal, source->ring, NULL, &source->recorder), "recorder");
	must(doorbell_open(source->home, &source->doorbell), "doorbell");
	recorder_set_doorbell(source->recorder, source->doorbell);
	if (open_feed(source) == NOT_FOUND)
		add_feed(source);
}

void source_close(struct source *source)
{
	record_feed_release(&source->feed);
	recorder_free(&source->recorder);
	doorbell_close(&source->doorbell);
	ring_close(&source->ring);
	journal_close(&source->journal);
	home_close(&source->home);
	buf_release(&source->text);
}

/* ---- writing ------------------------------------------------------------ */

/* Appends the text of a pod; returns its offset. */
static size_t make_pod(struct source *source, const struct pods *pods, uint64_t number,
	uint64_t version, const char *mark)
{
	size_t begin = source->text.size;

	pod_json(pods, number, version, mark, &source->text);
	must(buf_error(&source->text), "a pod");
	source->json_bytes += source->text.size - begin;
	return begin;
}

static void record_page(struct source *source, const size_t *begin, size_t n)
{
	const uint8_t *text = source->text.data;
	struct measure measure;

	measure_begin(&measure);
	for (size_t i = 0; i < n; i++)
		must(record_item(&source->feed, BYTES(text + begin[i], begin[i + 1] - begin[i]),
			     false, false),
			"item");
	source->record_wall += measure_wall(&measure);
	source->record_cpu += measure_cpu(&measure);
	uint64_t private = measure_private();
	if (private > source->peak_private)
		source->peak_private = private;
}

static void end_list(struct source *source, uint64_t version)
{
	struct measure measure;
	char rv[24];
	int r;

	(void)snprintf(rv, sizeof(rv), "%" PRIu64, version);
	measure_begin(&measure);
	while ((r = record_list_end(&source->feed, bytes_str(rv))) == AGAIN)
		continue;
	must(r, "end of the list");
	record_phase(&source->feed, FEED_SYNCED);
	source_commit(source);
	source->record_wall += measure_wall(&measure);
	source->record_cpu += measure_cpu(&measure);
}

void source_list(struct source *source, const struct pods *pods, uint64_t version)
{
	size_t begin[PAGE + 1];

	must(record_list_begin(&source->feed), "list");
	for (uint64_t i = 0; i < pods->n;) {
		size_t n = 0;

		buf_reset(&source->text);
		while (n < PAGE && i < pods->n)
			begin[n++] = make_pod(source, pods, i++, version, NULL);
		begin[n] = source->text.size;
		record_page(source, begin, n);
	}
	end_list(source, version);
}

void source_change(struct source *source, const struct pods *pods, uint64_t number,
	uint64_t version, const char *mark)
{
	struct api_event event = {.type = WATCH_MODIFIED};
	struct bytes rv;

	buf_reset(&source->text);
	(void)make_pod(source, pods, number, version, mark); /* begins at 0 */
	event.object = buf_bytes(&source->text);
	must_true(must(record_event(&source->feed, &event, false, &rv), "event") == RECORD_TAKEN,
		"an event was not taken");
}

void source_commit(struct source *source)
{
	must(recorder_flush(source->recorder), "commit");
	doorbell_turn(source->doorbell);
}

/* ---- looking ------------------------------------------------------------ */

uint64_t source_last(struct source *source)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct journal_meta meta;

	must(txn_begin_read(journal_env(source->journal), &txn), "journal");
	must(journal_meta(source->journal, txn, &meta), "meta");
	return meta.next_seq - 1;
}

uint64_t source_next_version(struct source *source)
{
	return source_last(source) + 1000;
}

/* Reads the index's taken seq and its size; zeros if there is none. */
static void look_at_index(
	struct source *source, struct index_meta *ret_meta, struct env_info *ret_info)
{
	CLEANUP(index_close) struct index *index = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL; /* ended before the index is closed */

	*ret_meta = (struct index_meta){0};
	*ret_info = (struct env_info){0};
	if (must(index_open_read(source->home, &index), "index") == NOT_FOUND)
		return;
	must(txn_begin_read(index_env(index), &txn), "index");
	must(index_meta(index, txn, ret_meta), "index");
	must(env_info(index_env(index), ret_info), "index");
}

static uint64_t index_taken(struct source *source)
{
	struct index_meta meta;
	struct env_info info;

	look_at_index(source, &meta, &info);
	return meta.taken;
}

double source_wait_taken(struct source *source, uint64_t seq)
{
	struct timespec pause = {.tv_nsec = POLL_NS};
	struct measure measure;

	measure_begin(&measure);
	while (index_taken(source) < seq) {
		must_true(measure_wall(&measure) < 600, "the processor does not come to the end");
		(void)nanosleep(&pause, NULL); /* a shorter pause does no harm */
	}
	return measure_wall(&measure);
}

void source_trim(struct source *source, uint64_t keep)
{
	uint64_t last = source_last(source), taken = index_taken(source), trimmed;
	uint64_t target = last > keep ? last - keep : 0;

	if (target > taken)
		target = taken;
	while (must(journal_trim(source->journal, target, TRIM_SLICE, &trimmed), "trimming") ==
		AGAIN)
		continue;
}

void source_sizes(struct source *source, struct source_sizes *ret_sizes)
{
	struct env_info journal, index;
	struct index_meta meta;

	must(env_info(journal_env(source->journal), &journal), "journal");
	look_at_index(source, &meta, &index);
	*ret_sizes = (struct source_sizes){
		journal.used_bytes, journal.file_bytes, index.used_bytes, index.file_bytes};
}
