/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/mass_delete.h"

void mass_delete_init(struct mass_delete *check)
{
	*check = (struct mass_delete){.looked = false};
	buf_init(&check->at, JOURNAL_KEY_MAX + 1);
}

void mass_delete_release(struct mass_delete *check)
{
	buf_release(&check->at);
}

void mass_delete_begin(struct mass_delete *check)
{
	check->looked = false;
	check->heads = check->missing = check->known = 0;
	buf_reset(&check->at);
}

void mass_delete_end(struct mass_delete *check)
{
	check->held = false;
}

static bool mass_delete_count(void *arg, struct bytes key, const struct head *head, bool seen)
{
	struct mass_delete *check = arg;

	(void)key;
	(void)head;
	check->heads++;
	check->missing += !seen;
	return true;
}

int mass_delete_check(struct mass_delete *check, struct record_feed *feed, uint32_t percent)
{
	if (!percent || !feed->listed || check->looked || check->held)
		return MASS_DELETE_PASS;
	int r = record_walk_heads(feed, &check->at, mass_delete_count, check);
	if (r != 0)
		return r;
	check->looked = true;
	check->known = check->heads - feed->added;
	if (check->missing * 100 <= check->known * percent)
		return MASS_DELETE_PASS;
	check->held = true;
	return MASS_DELETE_HOLD;
}
