/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/damage.h"

#include <string.h>

#include "common/bytes.h"
#include "common/check.h"
#include "common/err.h"
#include "store/ring/inbox.h"

#define DAMAGE_MAGIC 0x31474d44u /* "DMG1" */

/* Offsets in a report (FORMAT.md, Reports of damage). */
enum { AT_MAGIC = 0, AT_FEED = 4, AT_SEQ = 8, AT_JOURNAL = 16 };

static const char *damage_name(enum damage_to to)
{
	static const char *const names[DAMAGE_TO_MAX] = {
		[DAMAGE_REFLECTOR] = "damage.reflector",
		[DAMAGE_PROCESSOR] = "damage.processor",
	};

	REQUIRE(to < DAMAGE_TO_MAX);
	return names[to];
}

void damage_keep(struct home *home, enum damage_to to, int *fd)
{
	inbox_keep(home, damage_name(to), fd);
}

int damage_receive(int fd, struct damage_report *ret_report)
{
	uint8_t bytes[INBOX_MESSAGE];

	if (inbox_receive(fd, DAMAGE_MAGIC, DAMAGE_REPORTS_MAX, bytes) != FOUND)
		return AGAIN;
	*ret_report = (struct damage_report){
		.seq = le64_get(bytes + AT_SEQ), .feed = le32_get(bytes + AT_FEED)};
	memcpy(ret_report->journal, bytes + AT_JOURNAL, sizeof(ret_report->journal));
	return FOUND;
}

void damage_send(const struct home *home, enum damage_to to, const struct damage_report *report)
{
	uint8_t bytes[INBOX_MESSAGE];

	le32_put(bytes + AT_MAGIC, DAMAGE_MAGIC);
	le32_put(bytes + AT_FEED, report->feed);
	le64_put(bytes + AT_SEQ, report->seq);
	memcpy(bytes + AT_JOURNAL, report->journal, sizeof(report->journal));
	inbox_send(home, damage_name(to), bytes);
}
