/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks kinf.hpp on a store with the feed pods (web/front-0, web/front-1, web/front-2 on node n1
 * and shop/back-0 on node n2) and the index `node`. One argument names the part; prints "ok", or
 * the false condition.
 *
 * A part waiting for changes prints "ready" first.
 */
#include <cstdio>
#include <iostream>
#include <kinf.hpp>
#include <map>
#include <set>
#include <sstream>
#include <thread>

using namespace kinformer;
using namespace std::chrono_literals;

namespace
{

#define EXPECT(condition) expect(static_cast<bool>(condition), #condition, __LINE__)

void expect(bool condition, const char *text, int line)
{
	if (!condition)
		throw std::logic_error("line " + std::to_string(line) + ": " + text);
}

template <class Kind, class Function> Kind thrown(Function function, int line)
{
	try {
		function();
	} catch (const Kind &problem) {
		return problem;
	}
	throw std::logic_error(
		"line " + std::to_string(line) + ": nothing of that kind was thrown");
}
#define THROWN(kind, ...) thrown<kind>([&] { (void)(__VA_ARGS__); }, __LINE__)

std::vector<std::string> keys(Listing listing)
{
	std::vector<std::string> found;

	for (const auto &object : listing)
		found.emplace_back(object.key());
	return found;
}

void reads()
{
	Store store;
	auto snapshot = store.snapshot();
	auto pods = snapshot.lister("pods");
	auto pod = pods.get("web", "front-0");

	EXPECT(pod && pod->key() == "web/front-0" && pod->namespace_() == "web" &&
		pod->name() == "front-0");
	EXPECT(!pod->uid().empty() && !pod->resource_version().empty() && pod->event() > 0 &&
		pod->has_body());
	EXPECT(pod->event() <= snapshot.event());
	EXPECT(pod->path("spec.nodeName") == "n1" && pod->view("spec.nodeName") == "n1");
	EXPECT(!pod->path("spec.nothing") && !pod->part("spec.nothing"));
	EXPECT(pod->part("spec")->path("nodeName") == "n1");
	EXPECT(pod->json().find("\"front-0\"") != std::string::npos &&
		pod->json(2).find("\n  \"") != std::string::npos);
	EXPECT(!pods.get("web", "nothing") && !pods.get_by_key("nowhere/front-0"));
	EXPECT(pods.get_by_key("shop/back-0")->path("spec.nodeName") == "n2");
	EXPECT((keys(pods.list()) == std::vector<std::string>{"shop/back-0", "web/front-0",
					     "web/front-1", "web/front-2"}));
	EXPECT((keys(pods.by_index("node", "n2")) == std::vector<std::string>{"shop/back-0"}));
	EXPECT(keys(pods.by_index("node", "n3")).empty());
	auto values = pods.index_values("node");
	EXPECT(values.size() == 2 && values[0].value == "n1" && values[0].count == 3 &&
		values[1].count == 1);
	EXPECT(pods.index_values("node", "n2").size() == 1);
	EXPECT(snapshot.feeds().size() == 1 &&
		std::string(snapshot.feeds("pods").at(0).name) == "pods");
	std::vector<std::string> types;
	EXPECT(pods.history("web", "front-0",
		[&](const Change &change) { types.emplace_back(change.raw.type); }));
	EXPECT(!types.empty() && types[0] == "ADDED");
	EXPECT(!pods.history("web", "nothing", [](const Change &) {}));
	std::string uid(snapshot.lister("pods").get("web", "front-0")->uid());
	std::vector<std::string> who;
	EXPECT(snapshot.who(uid, KINF_WHO_NOW, [&](const Object &found, uint64_t until) {
		who.emplace_back(until ? "" : found.key());
	}));
	EXPECT(who == std::vector<std::string>{"web/front-0"});
	EXPECT(!snapshot.who("203.0.113.1", KINF_WHO_LAST, [](const Object &, uint64_t) {}));
}

void queries()
{
	Store store;
	auto pods = store.snapshot().lister("pods");
	Query query;
	std::vector<std::string> all;

	query.namespace_ = "web";
	query.limit = 2;
	for (;;) {
		auto page = pods.list(query);
		for (const auto &pod : page)
			all.emplace_back(pod.name());
		EXPECT(!page.plan().empty() && !page.resource_version().empty());
		query.continue_token = page.continue_token();
		if (query.continue_token.empty())
			break;
	}
	EXPECT((all == std::vector<std::string>{"front-0", "front-1", "front-2"}));
	query = {};
	query.prefix = "front-";
	query.field_selector = "metadata.name!=front-1";
	query.terms.emplace_back("node", "n1");
	query.sort_by = "metadata.name";
	EXPECT((keys(pods.list(query)) == std::vector<std::string>{"web/front-0", "web/front-2"}));
	query = {};
	query.label_selector = "app=front";
	EXPECT(keys(pods.list(query)).size() == 3);
}

void errors()
{
	Store store;
	auto snapshot = store.snapshot();
	auto pods = snapshot.lister("pods");
	Query query;

	auto no_feed = THROWN(Error, snapshot.lister("nothing").get("a", "b"));
	EXPECT(no_feed.code() == KINF_NO_FEED &&
		std::string(no_feed.what()).find("kinf.yaml") != std::string::npos);
	EXPECT(THROWN(Error, pods.by_index("nothing", "n1")).code() == KINF_NO_INDEX);
	query.label_selector = "a in (";
	EXPECT(THROWN(Error, pods.list(query)).code() == KINF_SYNTAX);
	EXPECT(THROWN(Error, Store("/nowhere/at/all").snapshot()).code() == KINF_NO_STORE);
	EXPECT(THROWN(Error, store.informer("nothing")).code() == KINF_NO_FEED);
	EXPECT(THROWN(Error, RateLimiter::bucket(0, 0)).code() == -EINVAL);
	EXPECT(!store.wait_for_cache_sync({"pods", "never"}, 1ms));
	/* A callback's exception is thrown again, and ends the walk. */
	int calls = 0;
	auto fail = [&](const Object &) {
		calls++;
		throw std::out_of_range("mine");
	};
	auto pod = *pods.get("web", "front-0");
	EXPECT(std::string(THROWN(std::out_of_range, pod.each("metadata.labels", fail)).what()) ==
			"mine" &&
		calls == 1);
	auto first = [&](const Object &) { return ++calls < 0; };
	pod.each("spec.containers[*].image", first);
	EXPECT(calls == 2);
}

template <class Handle> constexpr bool is_move_only()
{
	return std::is_nothrow_move_constructible_v<Handle> &&
	       !std::is_copy_constructible_v<Handle>;
}
static_assert(is_move_only<Store>() && is_move_only<Snapshot>() && is_move_only<Listing>() &&
	      is_move_only<Informer>());
static_assert(
	is_move_only<ObjectCopy>() && is_move_only<WorkQueue>() && is_move_only<WorkQueue::Item>());
static_assert(is_move_only<RateLimiter>() && is_move_only<Clock>() &&
	      std::is_trivially_copyable_v<Object>);

/* Handles are destroyed in the worst order. */
void lifetimes()
{
	auto store = std::make_unique<Store>();
	auto snapshot = std::make_unique<Snapshot>(store->snapshot());
	auto pods = std::make_unique<Lister>(snapshot->lister("pods"));
	auto list = std::make_unique<Listing>(pods->list());
	auto copy = list->next()->copy();
	auto informer = std::make_unique<Informer>(store->informer("pods"));
	auto registration = informer->add_event_handler({});

	store.reset();
	(void)informer->dispatch();
	EXPECT(registration.has_synced() && registration.event() > 0);
	snapshot.reset();
	pods.reset();
	EXPECT(list->next()->key() == "web/front-0");
	list.reset();
	informer.reset();
	EXPECT(!registration.has_synced() && registration.event() == 0);
	EXPECT(copy.get().key() == "shop/back-0" && copy.get().path("spec.nodeName") == "n2");
	/* Moved ones. */
	Store one, other = std::move(one);
	one = std::move(other);
	auto a = one.snapshot(), b = std::move(a);
	a = std::move(b);
	EXPECT(a.lister("pods").get("web", "front-1"));
	a.renew();
	a.reset();
	THROWN(Error, a.lister("pods").get("web", "front-1"));
	a.renew();
	EXPECT(a.lister("pods").get("web", "front-1"));
	std::optional<WorkQueue::Item> item;
	{
		WorkQueue queue;
		queue.add("key");
		item = queue.get();
	}
	EXPECT(item->key() == "key");
}

/* Handlers added and removed, and an informer ended, in callbacks. */
void handlers()
{
	Store store;
	auto informer = std::make_unique<Informer>(store.informer("pods"));
	std::vector<std::string> seen;
	std::optional<HandlerRegistration> first, second;
	ResourceEventHandlerFuncs funcs;
	int states = 0;

	funcs.on_add = [&, kept = std::string("of the function itself")](
			       const Object &pod, bool initial) {
		EXPECT(initial);
		seen.emplace_back(pod.key());
		EXPECT(informer->remove_event_handler(*first) &&
			!informer->remove_event_handler(*first));
		EXPECT(kept == "of the function itself" && !first->has_synced());
	};
	first = informer->add_event_handler(funcs);
	(void)informer->dispatch();
	EXPECT(seen == std::vector<std::string>{"shop/back-0"});
	funcs = {};
	funcs.filter.emplace().terms.emplace_back("node", "n2");
	funcs.on_sync = [&] {
		ResourceEventHandlerFuncs last;
		last.on_add = [&, kept = std::string("kept")](const Object &, bool) {
			informer.reset();
			EXPECT(kept == "kept");
		};
		second = informer->add_event_handler(std::move(last));
	};
	funcs.on_add = [&](const Object &pod, bool) { seen.emplace_back(pod.key()); };
	(void)informer->add_event_handler(std::move(funcs));
	/* The next handler may lie where a removed one lay. */
	for (int i = 0; i < 100; i++) {
		auto removed = informer->add_event_handler({});
		EXPECT(informer->remove_event_handler(removed));
		auto next = informer->add_event_handler({});
		EXPECT(!informer->remove_event_handler(removed) &&
			informer->remove_event_handler(next));
	}
	informer->run();
	EXPECT(!informer && seen.size() == 2 && seen[1] == "shop/back-0");
	InformerOptions options;
	options.on_state = [&](const struct kinf_feed_info &) { states++; };
	options.resync = 0ms;
	auto other = store.informer("pods", std::move(options));
	auto moved = std::move(other);
	other = store.informer("pods");
	(void)moved.dispatch();
	EXPECT(states == 1 && !moved.is_stopped());
	THROWN(Error, moved.commit()); /* it has no cursor */
	std::thread stopper([&] { moved.stop(); });
	moved.run();
	stopper.join();
	EXPECT(moved.is_stopped() &&
		THROWN(Error, moved.add_event_handler({})).code() == -ECANCELED);
}

/* An event comes again if its callback threw, to the next informer with the same cursor. */
void throwing()
{
	Store store;
	InformerOptions options;
	int turn = 0;
	std::vector<std::string> changes;

	options.cursor = "wrapper";
	for (bool done = false; !done; turn++) {
		ResourceEventHandlerFuncs funcs;
		auto informer = store.informer("pods", options);
		funcs.on_sync = [&] { std::cout << "ready" << std::endl; };
		funcs.on_update = [&](const Object *, const Object &pod) {
			changes.emplace_back(pod.name());
			if (changes.size() == 1)
				throw std::out_of_range("mine");
			done = true;
			informer.stop();
		};
		(void)informer.add_event_handler(std::move(funcs));
		if (turn == 0) {
			EXPECT(std::string(THROWN(std::out_of_range, informer.run()).what()) ==
				"mine");
			EXPECT(informer.is_stopped() && informer.dispatch() == 0);
		} else {
			informer.run();
		}
	}
	EXPECT(turn == 2 && (changes == std::vector<std::string>{"front-0", "front-0"}));
}

void queue()
{
	Clock clock;
	std::vector<RateLimiter> limiters;

	limiters.push_back(RateLimiter::item_exponential_failure(1ms, 1s));
	limiters.push_back(RateLimiter::bucket(10, 100, &clock));
	WorkQueue queue(
		RateLimiter::with_max_wait(RateLimiter::max_of(std::move(limiters)), 2ms), &clock);
	EXPECT(queue.add("a") && queue.add("b") && queue.add("a") && queue.size() == 2);
	{
		auto item = queue.get();
		EXPECT(item && item->key() == "a");
		EXPECT(queue.add("a") &&
			queue.size() == 1); /* comes again when the item is destroyed */
	}
	EXPECT(queue.size() == 2 && queue.get()->key() == "b");
	EXPECT(queue.get(0ms)->key() == "a" && !queue.get(0ms) && !queue.shutting_down());
	for (int i = 0; i < 3; i++)
		EXPECT(queue.add_rate_limited("late"));
	EXPECT(queue.num_requeues("late") == 3 && !queue.get(0ms));
	clock.step(1ms);
	EXPECT(queue.get(0ms)->key() == "late" && clock.now() == 1ms);
	queue.forget("late");
	EXPECT(queue.num_requeues("late") == 0 && queue.add_after("later", 5ms));
	EXPECT(queue.metrics().adds == 4 && queue.metrics().depth == 0);
	queue.add("last");
	queue.shut_down();
	EXPECT(!queue.add("no") && queue.shutting_down());
	EXPECT(queue.get()->key() == "last" && !queue.get());
	auto limiter = RateLimiter::item_fast_slow(1ms, 1s, 1);
	EXPECT(limiter.when("k") == 1ms && limiter.when("k") == 1s &&
		limiter.num_requeues("k") == 2);
	limiter.forget("k");
	EXPECT(limiter.when("k") == 1ms);
	EXPECT(RateLimiter::default_controller().when("k") == 5ms &&
		RateLimiter::default_item_based().when("k") == 1ms);
	WorkQueue drained;
	EXPECT(drained.add("one"));
	auto item = drained.get();
	std::thread worker([&] { item->done(); });
	drained.shut_down_with_drain();
	worker.join();
	EXPECT(!drained.get());
}

} // namespace

int main(int argc, char **argv)
{
	const std::map<std::string, void (*)()> parts = {{"reads", reads}, {"queries", queries},
		{"errors", errors}, {"lifetimes", lifetimes}, {"handlers", handlers},
		{"throwing", throwing}, {"queue", queue}};

	if (argc != 2 || !parts.count(argv[1])) {
		for (const auto &part : parts)
			std::cout << part.first << '\n';
		return 2;
	}
	try {
		parts.at(argv[1])();
	} catch (const std::exception &error) {
		std::cout << argv[1] << ": " << error.what() << '\n';
		return 1;
	}
	std::cout << "ok\n";
	return 0;
}
