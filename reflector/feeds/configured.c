/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/feeds/feeds_internal.h"

int unwanted_add(struct feeds *feeds, struct runner *runner)
{
	struct unwanted *grown = realloc(feeds->unwanted, (feeds->n_unwanted + 1) * sizeof(*grown));

	if (!grown)
		return err_set(-ENOMEM, "feeds");
	feeds->unwanted = grown;
	grown[feeds->n_unwanted++] = (struct unwanted){.runner = runner};
	return 0;
}

struct runner *unwanted_take(struct feeds *feeds, size_t i)
{
	struct runner *runner = feeds->unwanted[i].runner;

	feeds->unwanted[i] = feeds->unwanted[--feeds->n_unwanted];
	return runner;
}

void wanted_tune(const struct wanted *w)
{
	if (w->runner)
		runner_tune(w->runner, w->entry.page_size, w->entry.drop_gone);
}

void wanted_release(struct wanted *wanted, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		entry_release(&wanted[i].entry);
		runner_free(&wanted[i].runner);
	}
	free(wanted);
}

static int read_entries(const struct config *config, struct wanted **ret_wanted, size_t *ret_n)
{
	struct wanted *wanted = NULL;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < config->n_feeds; i++) {
		const struct config_feed *feed = &config->feeds[i];

		if (feed->wildcard)
			continue;
		size_t places = feed->n_namespaces ? feed->n_namespaces : 1;

		for (size_t j = 0; r >= 0 && j < places; j++) {
			struct wanted *grown = realloc(wanted, (n + 1) * sizeof(*grown));

			if (!grown) {
				r = err_set(-ENOMEM, "feeds");
				break;
			}
			wanted = grown;
			wanted[n] = (struct wanted){.pause_ns = FEEDS_RETRY_FIRST};
			r = entry_init(feed, j, &wanted[n++].entry);
		}
	}
	if (r < 0) {
		wanted_release(wanted, n);
		return r;
	}
	*ret_wanted = wanted;
	*ret_n = n;
	return 0;
}

/* What is wanted still, and was, goes on as it is. */
static void keep_same(struct feeds *feeds, struct wanted *wanted, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < feeds->n_wanted; j++) {
			struct wanted *was = &feeds->wanted[j];

			if (!was->runner || !entry_same(&was->entry, &wanted[i].entry))
				continue;
			wanted[i].verified = was->verified;
			wanted[i].past = was->past;
			wanted[i].runner = TAKE(was->runner);
			break;
		}
	}
}

size_t unwanted_find(const struct feeds *feeds, const struct entry *entry)
{
	size_t found = SIZE_MAX;
	uint32_t id = 0;

	for (size_t i = 0; i < feeds->n_unwanted; i++) {
		const struct unwanted *u = &feeds->unwanted[i];
		const struct feed_definition *d = runner_definition(u->runner);

		if (u->past || u->removed || d->id <= id || !entry_means(entry, d))
			continue;
		found = i;
		id = d->id;
	}
	return found;
}

static void take_meant(struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_wanted; i++) {
		struct wanted *w = &feeds->wanted[i];
		size_t found = w->runner ? SIZE_MAX : unwanted_find(feeds, &w->entry);

		if (found != SIZE_MAX)
			w->runner = unwanted_take(feeds, found);
	}
}

int feeds_configure(struct feeds *feeds, const struct config *config)
{
	struct wanted *wanted;
	size_t n;
	bool larger = config->policy.max_object_bytes > feeds->shared.policy.max_object_bytes;
	int r = read_entries(config, &wanted, &n);

	CHECK_OBJ(feeds, FEEDS_MAGIC);
	if (r < 0)
		return r;
	keep_same(feeds, wanted, n);
	for (size_t i = 0; r >= 0 && i < feeds->n_wanted; i++) {
		if (!feeds->wanted[i].runner)
			continue;
		r = unwanted_add(feeds, feeds->wanted[i].runner);
		if (r < 0)
			break;
		feeds->unwanted[feeds->n_unwanted - 1].past = feeds->wanted[i].past;
		feeds->wanted[i].runner = NULL;
	}
	for (size_t i = 0; i < feeds->n_wanted; i++)
		resolve_hide(feeds, &feeds->wanted[i]);
	wanted_release(feeds->wanted, feeds->n_wanted);
	feeds->wanted = wanted;
	feeds->n_wanted = feeds->pace.n_feeds = n;
	feeds->shared.policy = config->policy;
	/* What is asked again at the earliest after this is to be looked up then. */
	discovery_set_recheck(feeds->shared.discovery, config->policy.recheck_ns / 2);
	take_meant(feeds);
	feeds->config = config;
	if (r >= 0)
		r = wildcard_configure(feeds);
	for (size_t i = 0; i < feeds->n_wanted; i++) {
		wanted_tune(&feeds->wanted[i]);
		if (larger && feeds->wanted[i].runner)
			runner_retry_passed(feeds->wanted[i].runner);
	}
	return r;
}

int feeds_tell(struct feeds *feeds)
{
	struct recorder *recorder = feeds->shared.recorder;
	int r = 0;

	CHECK_OBJ(feeds, FEEDS_MAGIC);
	for (size_t i = 0; r >= 0 && i < feeds->n_wanted; i++) {
		const struct wanted *w = &feeds->wanted[i];
		const struct feed_definition *d = w->runner ? runner_definition(w->runner) : NULL;

		if (!d || d->resync_ns == w->entry.resync_ns)
			continue;
		r = recorder_begin(recorder);
		if (r < 0)
			return r;
		r = journal_set_resync(feeds->journal, d->id, w->entry.resync_ns);
		if (r < 0)
			return recorder_fail(recorder, r);
		recorder_changed(recorder);
		runner_set_resync(w->runner, w->entry.resync_ns);
	}
	return r;
}
