/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/wishes.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/ring/wish.h"

#define PAUSE UINT64_C(20000000) /* from one reading to the next */

void wishes_make(struct wishes *wishes, struct home *home)
{
	wish_keep(home, &wishes->fd);
}

void wishes_close(struct wishes *wishes)
{
	cleanup_fd(&wishes->fd);
}

int wishes_fd(const struct wishes *wishes, uint64_t now_ns)
{
	return wishes->next_ns <= now_ns ? wishes->fd : -1;
}

uint64_t wishes_until(const struct wishes *wishes, uint64_t now_ns)
{
	return wishes->next_ns > now_ns ? wishes->next_ns : UINT64_MAX;
}

void wishes_receive(struct wishes *wishes, struct feeds *feeds, const uint8_t uuid[16])
{
	uint64_t now = proc_monotonic_ns();
	struct wish wish;
	unsigned n = 0;

	while (n < WISHES_MAX && wish_receive(wishes->fd, &wish) == FOUND) {
		n++;
		if (memcmp(wish.journal, uuid, sizeof(wish.journal)) == 0)
			feeds_progress(feeds, wish.feed, wish.rv);
	}
	wishes->next_ns = now + PAUSE;
}
