/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/publish.h"

#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "store/ring/taken.h"

#define PUBLISH_MAGIC 0x5055424cu

struct publish {
	uint32_t magic;
	const struct processor *p;
	struct taken *word; /* NULL: it could not be made, and readers poll the index */
	bool warned;        /* of the missing word */
	uint64_t taken;
};

int publish_open(const struct processor *p, uint64_t taken, struct publish **ret_publish)
{
	CLEANUP(publish_close) struct publish *publish = calloc(1, sizeof(*publish));
	if (!publish)
		return err_set(-ENOMEM, "publishing");
	*publish = (struct publish){.magic = PUBLISH_MAGIC, .p = p, .taken = taken};
	publish_check(publish);
	*ret_publish = TAKE(publish);
	return 0;
}

void publish_check(struct publish *publish)
{
	if (!publish)
		return;
	CHECK_OBJ(publish, PUBLISH_MAGIC);
	if (publish->word)
		return;
	struct home *home = publish->p->home;
	/* as a start: the pair is reopened after errors, and for another journal */
	static bool counted;
	int r = taken_create(home_runtime_fd(home), home_file_mode(home), publish->taken, !counted,
		&publish->word);

	counted |= r == 0;
	if (r == 0)
		home_guard_file(home, TAKEN_FILE);
	if (r == 0 && publish->warned)
		LOG(taken_word_recreated, .directory = home_runtime(home));
	if (r < 0 && !publish->warned)
		LOG(taken_word_missing, .error = err_text(r));
	publish->warned = r < 0;
	err_ignore(r, "readers poll the index, and the word is retried");
}

void publish_close(struct publish **publish_pointer)
{
	struct publish *publish = TAKE(*publish_pointer);

	if (!publish)
		return;
	CHECK_OBJ(publish, PUBLISH_MAGIC);
	taken_close(&publish->word);
	publish->magic = 0;
	free(publish);
}

void publish_commit(struct publish *publish, uint64_t taken)
{
	if (!publish)
		return;
	CHECK_OBJ(publish, PUBLISH_MAGIC);
	publish->taken = taken;
	if (publish->word)
		taken_publish(publish->word, taken);
}
