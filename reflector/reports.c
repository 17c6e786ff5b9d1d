/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/reports.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "store/ring/damage.h"

void reports_make(struct reports *reports, struct home *home)
{
	damage_keep(home, DAMAGE_REFLECTOR, &reports->fd);
}

void reports_close(struct reports *reports)
{
	cleanup_fd(&reports->fd);
}

int reports_receive(
	struct reports *reports, struct feeds *feeds, const uint8_t uuid[16], struct stats *stats)
{
	struct damage_report report;
	uint64_t checked[DAMAGE_REPORTS_MAX];
	size_t n = 0;
	int heads = 0;

	while (heads == 0 && n < DAMAGE_REPORTS_MAX &&
		damage_receive(reports->fd, &report) == FOUND) {
		bool known = memcmp(report.journal, uuid, sizeof(report.journal)) != 0;

		for (size_t i = 0; i < n; i++)
			known |= checked[i] == report.seq;
		checked[n++] = report.seq;
		if (known)
			continue;
		int r = report.seq ? feeds_repair(feeds, report.seq) : feeds_restore_rows(feeds);
		if (r == FOUND)
			stats_add(stats, STAT_DAMAGED, 1);
		if (r == ERR_CORRUPT && !report.seq)
			return r;
		err_ignore(r < 0 ? r : 0, "the next report has it checked again");
		if (r != FOUND && !report.seq)
			heads = feeds_check_heads(feeds);
	}
	return heads;
}
