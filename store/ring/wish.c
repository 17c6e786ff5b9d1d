/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/wish.h"

#include <string.h>

#include "common/bytes.h"
#include "common/err.h"
#include "store/ring/inbox.h"

#define WISH_MAGIC 0x31475250u /* "PRG1" */

/* Offsets in a wish (FORMAT.md, Wishes for progress). */
enum { AT_MAGIC = 0, AT_FEED = 4, AT_RV = 8, AT_JOURNAL = 16 };

void wish_keep(struct home *home, int *fd)
{
	inbox_keep(home, WISH_SOCKET, fd);
}

int wish_receive(int fd, struct wish *ret_wish)
{
	uint8_t bytes[INBOX_MESSAGE];

	if (inbox_receive(fd, WISH_MAGIC, WISHES_MAX, bytes) != FOUND)
		return AGAIN;
	*ret_wish = (struct wish){.rv = le64_get(bytes + AT_RV), .feed = le32_get(bytes + AT_FEED)};
	memcpy(ret_wish->journal, bytes + AT_JOURNAL, sizeof(ret_wish->journal));
	return FOUND;
}

void wish_send(const struct home *home, const struct wish *wish)
{
	uint8_t bytes[INBOX_MESSAGE];

	le32_put(bytes + AT_MAGIC, WISH_MAGIC);
	le32_put(bytes + AT_FEED, wish->feed);
	le64_put(bytes + AT_RV, wish->rv);
	memcpy(bytes + AT_JOURNAL, wish->journal, sizeof(wish->journal));
	inbox_send(home, WISH_SOCKET, bytes);
}
