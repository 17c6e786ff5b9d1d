/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations under test, parsed from texts. */
#ifndef UNIT_CONFIG_RIG_H
#define UNIT_CONFIG_RIG_H

#include "common/bytes.h"
#include "common/config/config.h"
#include "tests/unit/unit.h"

static inline struct config *parse(const char *text)
{
	struct config *config = NULL;

	OK(config_parse(text, strlen(text), "k.yaml", &config));
	return config;
}

/* Returns the policy without any configuration. */
static inline struct config_policy default_policy(void)
{
	CLEANUP(config_free) struct config *config = parse("");

	return config->policy;
}

struct wrong {
	const char *text, *sentence;
};

static inline void expect_refusals(const struct wrong *wrong, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct config *c = NULL;
		int r = config_parse(wrong[i].text, strlen(wrong[i].text), "k.yaml", &c);
		cr_expect_eq(r, ERR_CONFIG, "%s", wrong[i].text);
		cr_expect_null(c);
		cr_expect_str_eq(err_text(ERR_CONFIG), wrong[i].sentence, "%s: %s", wrong[i].text,
			err_text(ERR_CONFIG));
		config_free(&c);
	}
}

#endif
