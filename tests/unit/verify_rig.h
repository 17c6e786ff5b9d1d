/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a store with some of everything and runs verify on it. Each failure fails the test. */
#ifndef UNIT_VERIFY_RIG_H
#define UNIT_VERIFY_RIG_H

#include "store/verify/verify.h"
#include "tests/unit/snapshot_rig.h"

/* ---- what verify says --------------------------------------------------- */

static char said[16384];

static inline void keep(void *arg, const char *sentence)
{
	size_t n = strlen(said);

	(void)arg;
	cr_assert_null(strchr(sentence, '\n'));
	(void)snprintf(said + n, sizeof(said) - n, "%s\n", sentence);
}

static inline struct verify_report verified(const char *path, bool deep)
{
	struct verify_options options = {.deep = deep, .fault = keep};
	struct verify_report report;

	said[0] = 0;
	OK(verify_store(path, &options, &report));
	return report;
}

static inline void assert_good(const char *path)
{
	struct verify_report report = verified(path, true);

	cr_assert_str_eq(said, "");
	cr_assert_eq(report.faults, 0);
	cr_assert(report.has_index);
}

static inline void assert_fault(const char *path, bool deep, const char *part)
{
	struct verify_report report = verified(path, deep);

	cr_assert_gt(report.faults, 0, "nothing found, wanted: %s", part);
	cr_assert(strstr(said, part), "wanted: %s\nsaid: %s", part, said);
}

/* ---- a store with some of everything ------------------------------------ */

static inline void live_through(void)
{
	uint64_t trimmed;
	char key[32];

	for (int i = 0; i < 40; i++) {
		(void)snprintf(key, sizeof(key), "ns%d/o%02d", i % 3, i);
		(void)small_store_put(&s, key, i % 2 ? "n1" : "n2", i % 4 ? 20 : 5000);
	}
	for (int i = 0; i < 40; i += 3) {
		(void)snprintf(key, sizeof(key), "ns%d/o%02d", i % 3, i);
		(void)small_store_put(&s, key, "n3", 100);
	}
	(void)small_store_delete(&s, "ns0/o00");
	(void)small_store_delete(&s, "ns1/o01");
	uint64_t horizon = small_store_put(&s, "ns0/o00", "again", 0);

	small_store_take(&s);
	OK(journal_trim(s.journal, horizon - 1, 1000, &trimmed));
	(void)small_store_put(&s, "ns0/o00", "more", 0);
	(void)small_store_delete(&s, "ns2/o02");
	(void)small_store_list_begin(&s);
	(void)small_store_put(&s, "ns1/o01", "listed", 3000);
	(void)small_store_delete(&s, "ns2/o05");
	(void)small_store_list_end(&s);
	small_store_take(&s);
}

#endif
