/* SPDX-License-Identifier: Apache-2.0 */
/* A failed handler gets its error, and holds up no other handler of its informer. */
#include "reader/informer/informer.h"

#include <criterion/criterion.h>
#include <poll.h>

#include "tests/unit/tape.h"

TestSuite(informer_errors, .init = cache_open, .fini = cache_close, .timeout = 60);

#define WITH_INDEX    "feeds:\n  - resource: pods\n    indexes:\n      node: spec.nodeName\n"
#define WITHOUT_INDEX "feeds:\n  - resource: pods\n"

static struct tape by_node, all;
static struct kinf_informer *informer;
static unsigned errors;

static void on_error(void *arg, int error, const char *text)
{
	(void)arg;
	cr_assert_eq(error, KINF_NO_INDEX);
	cr_assert(strstr(text, "has no index 'node'"), "%s", text);
	errors++;
}

/* Adds a handler with the index term node=n1, then one without a filter. */
static void open_two(void (*report)(void *, int, const char *))
{
	const struct kinf_term term = {"node", "n1"};
	const struct kinf_query filter = {.size = sizeof(filter), .terms = &term, .n_terms = 1};
	struct kinf_handler_options options = tape_options(&by_node);

	errors = 0;
	options.filter = &filter;
	options.on_error = report;
	cache_put("a/x", "n1");
	cache_put("a/y", "n2");
	cache_take();
	informer = tape_informer(NULL);
	KINF_OK(kinf_informer_add_handler(informer, &options, &by_node.handler));
	tape_add(informer, &all, NULL);
	tape_drain(informer);
	tape_is(&by_node, "add! a/x=1 sync");
	tape_is(&all, "add! a/x=1 add! a/y=2 sync");
}

/* As after a reload with a changed `drop`: another feed is made and the index removed. */
static void lose_index(void)
{
	rig_configure(&cache.rig, WITHOUT_INDEX);
	cache_replace_feed();
	cache_put("a/x", "n1");
	cache_take();
}

static void release(void)
{
	kinf_informer_free(&informer);
	tape_release(&by_node);
	tape_release(&all);
}

static void drain_until(struct tape *tape, const char *last)
{
	struct pollfd fd = {.fd = kinf_informer_fd(informer), .events = POLLIN};

	for (int i = 0; i < 200 && !strstr(buf_cstr(&tape->text), last); i++) {
		cr_assert_geq(kinf_informer_dispatch(informer, 0), 0);
		(void)poll(&fd, 1, 2000);
	}
}

Test(informer_errors, a_handler_that_lost_its_index_is_told_and_the_others_go_on)
{
	open_two(on_error);
	lose_index();
	drain_until(&all, "sync");
	tape_is(&all, "lapped add! a/x=3 sync");
	cr_assert_eq(errors, 1);
	cr_assert_eq(kinf_handler_synced(by_node.handler), 0);
	cache_put("a/y", "n1");
	cache_take();
	tape_drain(informer);
	tape_is(&all, "add a/y=4");
	tape_is(&by_node, "");
	cr_assert_eq(errors, 1, "it is told once");
	rig_configure(&cache.rig, WITH_INDEX);
	cache_take();
	drain_until(&by_node, "sync");
	tape_is(&by_node, "lapped add! a/x=3 add! a/y=4 sync");
	tape_is(&all, "");
	release();
}

Test(informer_errors, without_on_error_dispatch_returns_it_after_the_others_had_their_turn)
{
	open_two(NULL);
	lose_index();
	int r = 0;
	for (int i = 0; i < 5; i++)
		r = kinf_informer_dispatch(informer, 0);
	cr_assert_eq(r, KINF_NO_INDEX);
	cr_assert(strstr(kinf_error(cache.kinf), "has no index 'node'"), "%s",
		kinf_error(cache.kinf));
	tape_is(&all, "lapped add! a/x=3 sync");
	release();
}
