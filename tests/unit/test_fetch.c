/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/fetch.h"

#include <dlfcn.h>

#include "common/proc.h"
#include "tests/unit/http_rig.h"

TestSuite(fetch, .init = set_up, .fini = tear_down, .timeout = 60);

/* This program calls curl_easy_init() below instead of libcurl's. */
void *curl_easy_init(void);
static int handles_left = 100;

void *curl_easy_init(void)
{
	static void *(*real)(void);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "curl_easy_init");
	return handles_left-- > 0 ? real() : NULL;
}

static struct fetched {
	int n_done, result, status;
	char content_type[64], body[64];
} fetched;

static void on_fetched(void *arg, const struct fetch_answer *answer)
{
	struct fetched *f = arg;

	f->n_done++;
	f->result = answer->result;
	f->status = answer->status;
	(void)snprintf(f->content_type, sizeof(f->content_type), "%s", answer->content_type);
	(void)snprintf(f->body, sizeof(f->body), "%.*s", BYTES_ARG(answer->body));
}

Test(fetch, answer_is_whole_when_there_is_no_memory_to_ask_again)
{
	struct fetch_request request = {.path = "/busy",
		.repeat = true,
		.limit = 1000,
		.total_ns = 60 * SECOND_NS,
		.done = on_fetched,
		.arg = &fetched};
	struct fetch *fetch;

	handles_left = 1;
	OK(fetch_start(http, &request, &fetch));
	poll_until(http, &fetched.n_done, 1);
	cr_assert_eq(handles_left, -1, "it was asked for again");
	cr_assert_eq(fetched.result, 0);
	cr_assert_eq(fetched.status, 429);
	cr_assert_str_eq(fetched.content_type, "text/plain");
	cr_assert_str_eq(fetched.body, "Too many requests\n");
}
