/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/surplus.h"

#include "store/env/datafile.h"
#include "store/env/env.h"

#define SECOND_NS  1000000000ull
#define HALF_NS    (30 * SECOND_NS)
#define PAUSE_NS   (60 * SECOND_NS)
#define HASTY_NS   (5 * SECOND_NS)
#define RETRY_NS   (600 * SECOND_NS) /* after a failure: the disk is full, or damaged */
#define TIME_SHARE 20
#define ALLOWANCE  (16ull << 20)
#define EXCESS     (256ull << 20)

bool surplus_is_allowed(const struct surplus *s, uint64_t now_ns)
{
	return now_ns >= s->next_ns;
}

bool surplus_is_due(struct surplus *s, const struct env_info *info, uint64_t now_ns)
{
	uint64_t length = info->file_bytes + datafile_ahead(info->file_bytes);

	if (now_ns - s->turned_ns >= HALF_NS) {
		s->most[0] = s->most[1];
		s->most[1] = 0;
		s->turned_ns = now_ns;
	}
	if (s->most[1] < info->used_bytes)
		s->most[1] = info->used_bytes;
	uint64_t most = s->most[0] > s->most[1] ? s->most[0] : s->most[1];
	if (length > 2 * most + EXCESS && now_ns >= s->hasty_ns)
		return true;
	return surplus_is_allowed(s, now_ns) && length > most + most / 10 * 3 + ALLOWANCE;
}

void surplus_end(struct surplus *s, int result, uint64_t began_ns, uint64_t now_ns)
{
	uint64_t share = (now_ns - began_ns) * TIME_SHARE;
	uint64_t pause = share > PAUSE_NS ? share : PAUSE_NS,
		 hasty = share > HASTY_NS ? share : HASTY_NS;

	if (result < 0)
		pause = hasty = pause > RETRY_NS ? pause : RETRY_NS;
	s->next_ns = now_ns + pause;
	s->hasty_ns = now_ns + hasty;
}
