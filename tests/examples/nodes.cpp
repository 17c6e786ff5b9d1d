/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A controller in C++: prints for each node the number of pods on it and of running ones, at each
 * change.
 *
 *	c++ -std=c++17 nodes.cpp $(pkg-config --cflags --libs kinf) -pthread -o nodes
 *	nodes
 *
 * The feed pods needs the index `node: spec.nodeName`. The handler adds the names of nodes to a
 * work queue; the worker counts by the index, in the newest state. So many changes of one node are
 * counted once.
 */
#include <csignal>
#include <cstdio>
#include <iostream>
#include <kinf.hpp>
#include <map>
#include <sys/signalfd.h>
#include <thread>

using namespace kinformer;

namespace
{

using Counts = std::pair<unsigned, unsigned>;

Counts count(const Lister &pods, const std::string &node)
{
	Counts counts;

	for (const auto &pod : pods.by_index("node", node)) {
		counts.first++;
		counts.second += pod.view("status.phase") == "Running";
	}
	return counts;
}

/* Takes nodes from the queue until it is shut down. */
void work(const Store &store, WorkQueue &queue)
{
	std::map<std::string, Counts> printed;
	auto snapshot = store.snapshot();

	while (auto item = queue.get()) {
		const std::string node(item->key());
		try {
			/* waits until the cache holds the handler's change */
			snapshot.renew();
			auto counts = count(snapshot.lister("pods"), node);
			snapshot.reset(); /* holds no pages while it waits for the next key */
			if (std::exchange(printed[node], counts) != counts)
				std::cout << node << ": " << counts.first << " pods, "
					  << counts.second << " running" << std::endl;
			queue.forget(node);
		} catch (const Error &error) {
			std::cerr << node << ": " << error.what() << "; trying again\n";
			queue.add_rate_limited(node);
		}
	}
}

/* Returns a descriptor, readable at SIGTERM or SIGINT. Before threads are started. */
int stop_signals()
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, nullptr);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

void run()
{
	using namespace std::chrono_literals;
	int stop_fd = stop_signals();
	Store store;
	WorkQueue queue;
	ResourceEventHandlerFuncs funcs;
	auto enqueue = [&](const Object &pod) {
		if (auto node = pod.view("spec.nodeName"))
			queue.add(*node);
	};

	if (!store.wait_for_cache_sync({"pods"}, 60s))
		throw std::runtime_error("pods is not listed after a minute");
	(void)store.snapshot().lister("pods").index_values("node"); /* throws without this index */
	funcs.on_add = [&](const Object &pod, bool) { enqueue(pod); };
	funcs.on_update = [&](const Object *old, const Object &pod) {
		if (old)
			enqueue(*old); /* perhaps of another node */
		enqueue(pod);
	};
	funcs.on_delete = [&](const Object &pod, bool) { enqueue(pod); };
	auto informer = store.informer("pods");
	informer.add_event_handler(std::move(funcs));

	std::thread worker(work, std::cref(store), std::ref(queue));
	try {
		informer.run(stop_fd);
	} catch (...) {
		queue.shut_down();
		worker.join();
		throw;
	}
	queue.shut_down(); /* the worker still handles the keys in the queue */
	worker.join();
}

} // namespace

int main()
{
	try {
		run();
	} catch (const std::exception &error) {
		std::cerr << "nodes: " << error.what() << '\n';
		return 1;
	}
	return 0;
}
