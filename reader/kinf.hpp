/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libkinf for C++17: the functions of kinf.h as objects with destructors. Header only; link with
 * `pkg-config --libs kinf` as from C. The namespace is kinformer, because kinf is a structure of
 * kinf.h.
 *
 *	kinformer::Store store;                                     (the default store)
 *	auto snapshot = store.snapshot();
 *	auto pods = snapshot.lister("pods");
 *	if (auto pod = pods.get("web", "front-0"))
 *		std::cout << pod->path("spec.nodeName").value_or("") << '\n';
 *	for (const auto &pod : pods.by_index("node", "node-1"))
 *		std::cout << pod.key() << '\n';
 *
 * Names are client-go's: Lister, Informer, ResourceEventHandlerFuncs, WorkQueue, RateLimiter.
 *
 * Results: absence is an empty std::optional; all other failures are exceptions, Error with the
 * sentence and the code of kinf.h, NotReady for KINF_AGAIN (not listed or indexed yet), Gone for
 * KINF_GONE. std::bad_alloc can come from the standard library. Destructors and stop() throw
 * nothing.
 *
 * Handles are move-only. Each one keeps its parents alive, so the order of their destruction does
 * not matter: a Listing keeps its Snapshot, a Snapshot its Store. A moved-from handle may only be
 * destroyed or assigned to.
 *
 * Borrowed: an Object, and each std::string_view from one, points into the mapped files until its
 * snapshot is renewed, reset or destroyed, or its callback returns; copy() makes an independent
 * object. Strings are copies. Threads: as kinf.h says; a Snapshot, a Listing or an Informer is used
 * by one thread at a time, a Store and a WorkQueue by any number.
 *
 * Callbacks may throw. A walk (each, history, index_values) ends then, and its caller gets the
 * exception. An informer is stopped, dispatch() or run() throw the exception, and nothing of the
 * dispatch is committed: a new informer with the same cursor begins with it again.
 */
#ifndef KINF_HPP
#define KINF_HPP

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kinf.h"

namespace kinformer
{

/* ---- failures ----------------------------------------------------------- */

class Error : public std::runtime_error
{
      public:
	Error(int code, const std::string &text) : std::runtime_error(text), code_(code)
	{
	}
	/* A negative errno value, enum kinf_code, or KINF_AGAIN, KINF_GONE. */
	int code() const noexcept
	{
		return code_;
	}

      private:
	int code_;
};

/* Nothing has been listed or indexed so far, or a daemon is away: try again later. */
class NotReady : public Error
{
	using Error::Error;
};

/* The state of a continue token or an event number is no longer kept. */
class Gone : public Error
{
	using Error::Error;
};

namespace detail
{

[[noreturn]] inline void raise(int code, const char *text)
{
	if (code == KINF_AGAIN)
		throw NotReady(code, text);
	if (code == KINF_GONE)
		throw Gone(code, text);
	throw Error(code, text);
}

/* Throws unless the result is 0. */
inline void check(int code, const struct kinf *kinf)
{
	if (code != 0)
		raise(code, kinf_error(kinf));
}

/* The same for functions without a handle. */
inline void check(int code)
{
	if (code != 0)
		raise(code, kinf_strerror(code));
}

inline const char *text_or_null(const std::string &text)
{
	return text.empty() ? nullptr : text.c_str();
}

inline int milliseconds(std::chrono::milliseconds time)
{
	return static_cast<int>(
		std::clamp<std::chrono::milliseconds::rep>(time.count(), -1, INT_MAX));
}

/* Calls a function from C: keeps its exception, and ends the walk when it threw or returned
 * false. */
template <class Function> class Walk
{
      public:
	explicit Walk(Function &function) : function_(function)
	{
	}

	template <class... Arguments> int call(Arguments &&...arguments) noexcept
	{
		try {
			if constexpr (std::is_void_v<
					      std::invoke_result_t<Function &, Arguments...>>) {
				function_(std::forward<Arguments>(arguments)...);
				return 0;
			} else {
				return function_(std::forward<Arguments>(arguments)...) ? 0 : ENDED;
			}
		} catch (...) {
			problem_ = std::current_exception();
			return ENDED;
		}
	}

	/* Gives the walk's result, 0 if the function ended it. */
	int result(int code)
	{
		if (problem_)
			std::rethrow_exception(std::exchange(problem_, nullptr));
		return code == ENDED ? 0 : code;
	}

      private:
	static constexpr int ENDED = INT_MAX; /* no result of the library */
	Function &function_;
	std::exception_ptr problem_;
};

} // namespace detail

/* ---- objects ------------------------------------------------------------ */

class ObjectCopy;

/* An object, or a part of one, in the mapped files. */
class Object
{
      public:
	explicit Object(const struct kinf_object &raw) noexcept : raw_(raw)
	{
	}

	std::string_view key() const noexcept
	{
		return {raw_.key, raw_.key_size};
	}
	std::string_view uid() const noexcept
	{
		return {raw_.uid, raw_.uid_size};
	}
	std::string_view resource_version() const noexcept
	{
		return {raw_.resource_version, raw_.resource_version_size};
	}
	/* Returns "" for cluster-scoped kinds. */
	std::string_view namespace_() const noexcept
	{
		auto slash = key().find('/');
		return slash == std::string_view::npos ? std::string_view()
						       : key().substr(0, slash);
	}
	std::string_view name() const noexcept
	{
		return key().substr(key().find('/') + 1);
	}
	uint64_t event() const noexcept
	{
		return raw_.event;
	}
	/* False for a deletion without a kept state: it has a key alone. */
	bool has_body() const noexcept
	{
		return raw_.body != nullptr;
	}

	/* Returns the first scalar at a field path as text; nothing if it is absent, a map or a
	 * list. */
	std::optional<std::string> path(const char *path) const
	{
		auto text = view(path);
		return text ? std::optional<std::string>(*text) : std::nullopt;
	}
	/* The same without a copy; numbers and booleans are valid until this thread's next call. */
	std::optional<std::string_view> view(const char *path) const
	{
		const char *text;
		size_t size;
		int r = kinf_object_path(&raw_, path, &text, &size);
		if (r == KINF_NOT_FOUND)
			return std::nullopt;
		detail::check(r, nullptr);
		return std::string_view(text, size);
	}
	/* Returns the value at a path, also a map or a list, as an object to look into. */
	std::optional<Object> part(const char *path) const
	{
		struct kinf_object found;
		int r = kinf_object_part(&raw_, path, &found);
		if (r == KINF_NOT_FOUND)
			return std::nullopt;
		detail::check(r, nullptr);
		return Object(found);
	}
	/* Calls FUNCTION(const Object &) for each value at a path with [*] in it, until it
	 * returns false. */
	template <class Function> void each(const char *path, Function &&function) const
	{
		using Walk = detail::Walk<std::remove_reference_t<Function>>;
		Walk walk(function);
		int r = walk.result(kinf_object_each(
			&raw_, path,
			[](void *arg, const struct kinf_object *part) {
				return static_cast<Walk *>(arg)->call(Object(*part));
			},
			&walk));
		if (r != KINF_NOT_FOUND)
			detail::check(r, nullptr);
	}
	/* INDENT: spaces a level; 0: one line. */
	std::string json(int indent = 0) const
	{
		char *text;
		size_t size;
		detail::check(kinf_object_json(&raw_, indent, &text, &size), nullptr);
		std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
		return std::string(text, size);
	}
	ObjectCopy copy() const;
	const struct kinf_object &raw() const noexcept
	{
		return raw_;
	}

      private:
	struct kinf_object raw_;
};

/* An object with bytes of its own. */
class ObjectCopy
{
      public:
	explicit ObjectCopy(const Object &object)
	{
		struct kinf_object *made;
		detail::check(kinf_object_copy(&object.raw(), &made), nullptr);
		made_.reset(made);
	}
	/* Returns a view, valid as long as this copy. */
	Object get() const noexcept
	{
		return Object(*made_);
	}
	operator Object() const noexcept
	{
		return get();
	}

      private:
	struct Free {
		void operator()(struct kinf_object *object) const noexcept
		{
			std::free(object);
		}
	};
	std::unique_ptr<struct kinf_object, Free> made_;
};

inline ObjectCopy Object::copy() const
{
	return ObjectCopy(*this);
}

/* ---- queries and lists -------------------------------------------------- */

/* Empty texts and 0 ask for nothing. */
struct Query {
	std::string namespace_, prefix, label_selector, field_selector;
	std::vector<std::pair<std::string, std::string>> terms; /* (index, value): all must hold */
	uint64_t limit = 0;
	std::string continue_token, sort_by;
};

namespace detail
{

/* A Query for a call of C; borrows from it. */
class RawQuery
{
      public:
	RawQuery(const Query &query, const char *feed)
	{
		for (const auto &[index, value] : query.terms)
			terms_.push_back({index.c_str(), value.c_str()});
		raw_.size = sizeof(raw_);
		raw_.feed = feed;
		raw_.namespace_ = text_or_null(query.namespace_);
		raw_.prefix = text_or_null(query.prefix);
		raw_.label_selector = text_or_null(query.label_selector);
		raw_.field_selector = text_or_null(query.field_selector);
		raw_.terms = terms_.data();
		raw_.n_terms = terms_.size();
		raw_.limit = query.limit;
		raw_.continue_token = text_or_null(query.continue_token);
		raw_.sort_by = text_or_null(query.sort_by);
	}
	RawQuery(const RawQuery &) = delete;
	const struct kinf_query *get() const noexcept
	{
		return &raw_;
	}

      private:
	std::vector<struct kinf_term> terms_;
	struct kinf_query raw_ = {};
};

inline std::shared_ptr<struct kinf> own(struct kinf *raw)
{
	return {raw, [](struct kinf *kinf) { kinf_close(&kinf); }};
}

/* A snapshot and its store. */
struct SnapshotState {
	std::shared_ptr<struct kinf> kinf;
	struct kinf_snapshot *raw = nullptr;

	explicit SnapshotState(std::shared_ptr<struct kinf> of) : kinf(std::move(of))
	{
		check(kinf_snapshot_open(kinf.get(), &raw), kinf.get());
	}
	SnapshotState(const SnapshotState &) = delete;
	~SnapshotState()
	{
		kinf_snapshot_close(&raw);
	}
	void check_result(int r) const
	{
		check(r, kinf.get());
	}
};

} // namespace detail

/* The objects of a query, one after the other: a range for one walk. */
class Listing
{
      public:
	/* Returns nothing at the end. */
	std::optional<Object> next()
	{
		struct kinf_object object;
		int r = kinf_list_next(raw_.get(), &object);
		if (r == KINF_END)
			return std::nullopt;
		snapshot_->check_result(r);
		return Object(object);
	}
	/* After the end of a limited list: the token of the next page, "" when there is none. */
	std::string continue_token()
	{
		const char *token = kinf_list_continue(raw_.get());
		return token ? token : "";
	}
	std::string plan()
	{
		return kinf_list_plan(raw_.get());
	}
	std::string resource_version()
	{
		return kinf_list_resource_version(raw_.get());
	}

	class Iterator
	{
	      public:
		using iterator_category = std::input_iterator_tag;
		using value_type = Object;
		using difference_type = std::ptrdiff_t;
		using pointer = const Object *;
		using reference = const Object &;

		Iterator() = default;
		explicit Iterator(Listing *listing) : listing_(listing), object_(listing->next())
		{
		}
		reference operator*() const
		{
			return *object_;
		}
		pointer operator->() const
		{
			return &*object_;
		}
		Iterator &operator++()
		{
			object_ = listing_->next();
			return *this;
		}
		void operator++(int)
		{
			++*this;
		}
		friend bool operator==(const Iterator &a, const Iterator &b)
		{
			return a.object_.has_value() == b.object_.has_value();
		}
		friend bool operator!=(const Iterator &a, const Iterator &b)
		{
			return !(a == b);
		}

	      private:
		Listing *listing_ = nullptr;
		std::optional<Object> object_;
	};
	Iterator begin()
	{
		return Iterator(this);
	}
	Iterator end()
	{
		return {};
	}

      private:
	friend class Lister;
	struct Close {
		void operator()(struct kinf_listing *list) const noexcept
		{
			kinf_list_close(&list);
		}
	};
	Listing(std::shared_ptr<detail::SnapshotState> snapshot, struct kinf_listing *raw)
	    : snapshot_(std::move(snapshot)), raw_(raw)
	{
	}
	/* In this order: the list is closed before its snapshot. */
	std::shared_ptr<detail::SnapshotState> snapshot_;
	std::unique_ptr<struct kinf_listing, Close> raw_;
};

struct IndexValue {
	std::string value;
	uint64_t count;
};

/* A version of an object: raw.type, raw.event, raw.time_ns; the object is borrowed until the
 * callback returns. */
struct Change {
	const struct kinf_change &raw;
	Object object;
};

/* One feed in one snapshot: client-go's lister and indexer. */
class Lister
{
      public:
	/* NAMESPACE: "" for cluster-scoped kinds. */
	std::optional<Object> get(const std::string &namespace_, const std::string &name) const
	{
		struct kinf_object object;
		int r = kinf_get(
			snapshot_->raw, feed_.c_str(), namespace_.c_str(), name.c_str(), &object);
		if (r == KINF_NOT_FOUND)
			return std::nullopt;
		snapshot_->check_result(r);
		return Object(object);
	}
	/* KEY: "namespace/name", or "name". */
	std::optional<Object> get_by_key(std::string_view key) const
	{
		auto slash = key.find('/');
		if (slash == std::string_view::npos)
			return get("", std::string(key));
		return get(std::string(key.substr(0, slash)), std::string(key.substr(slash + 1)));
	}
	Listing list(const Query &query = {}) const
	{
		detail::RawQuery raw(query, feed_.c_str());
		struct kinf_listing *list;
		snapshot_->check_result(kinf_list(snapshot_->raw, raw.get(), &list));
		return Listing(snapshot_, list);
	}
	Listing by_index(const std::string &index, const std::string &value) const
	{
		Query query;
		query.terms.emplace_back(index, value);
		return list(query);
	}
	/* The values of an index with the prefix PREFIX, in byte order, each with its number of
	 * objects. */
	std::vector<IndexValue> index_values(
		const std::string &index, const std::string &prefix = "") const
	{
		std::vector<IndexValue> values;
		auto add = [&](const char *value, size_t size, uint64_t count) {
			values.push_back({std::string(value, size), count});
		};
		detail::Walk walk(add);
		snapshot_->check_result(walk.result(kinf_index_values(
			snapshot_->raw, feed_.c_str(), index.c_str(), detail::text_or_null(prefix),
			[](void *arg, const char *value, size_t size, uint64_t count) {
				return static_cast<decltype(walk) *>(arg)->call(value, size, count);
			},
			&walk)));
		return values;
	}
	/* Calls FUNCTION(const Change &) for the kept versions of an object, oldest first, until
	 * it returns false. Returns false when nothing is kept. */
	template <class Function>
	bool history(
		const std::string &namespace_, const std::string &name, Function &&function) const
	{
		using Walk = detail::Walk<std::remove_reference_t<Function>>;
		Walk walk(function);
		int r = walk.result(kinf_history(
			snapshot_->raw, feed_.c_str(), namespace_.c_str(), name.c_str(),
			[](void *arg, const struct kinf_change *change) {
				return static_cast<Walk *>(arg)->call(
					Change{*change, Object(change->object)});
			},
			&walk));
		if (r == KINF_NOT_FOUND)
			return false;
		snapshot_->check_result(r);
		return true;
	}

      private:
	friend class Snapshot;
	Lister(std::shared_ptr<detail::SnapshotState> snapshot, std::string feed)
	    : snapshot_(std::move(snapshot)), feed_(std::move(feed))
	{
	}
	std::shared_ptr<detail::SnapshotState> snapshot_;
	std::string feed_;
};

/* ---- the store ---------------------------------------------------------- */

/* One instant of the store. Keep it briefly: the disk space of objects deleted meanwhile is not
 * freed. */
class Snapshot
{
      public:
	/* Takes the newest state; borrowed data ends. */
	void renew()
	{
		state_->check_result(kinf_snapshot_renew(state_->raw));
	}
	/* The same, and waits until it shows EVENT. */
	void renew_at(uint64_t event)
	{
		state_->check_result(kinf_snapshot_renew_at(state_->raw, event));
	}
	/* Gives the pages back until renew(). */
	void reset()
	{
		state_->check_result(kinf_snapshot_reset(state_->raw));
	}
	/* Throws if the data read until now may be wrong (kinf_snapshot_check). */
	void check()
	{
		state_->check_result(kinf_snapshot_check(state_->raw));
	}
	uint64_t event() const
	{
		return kinf_snapshot_event(state_->raw);
	}
	/* FEED: its name or its resource. The lister keeps the snapshot alive. */
	Lister lister(std::string feed) const
	{
		return {state_, std::move(feed)};
	}
	/* The feeds of a name, or all of them (""). */
	std::vector<struct kinf_feed_info> feeds(const std::string &feed = "") const
	{
		std::vector<struct kinf_feed_info> found;
		auto add = [&](const struct kinf_feed_info &info) { found.push_back(info); };
		detail::Walk walk(add);
		state_->check_result(walk.result(kinf_feed_status(
			state_->raw, detail::text_or_null(feed),
			[](void *arg, const struct kinf_feed_info *info) {
				return static_cast<decltype(walk) *>(arg)->call(*info);
			},
			&walk)));
		return found;
	}
	/* Calls FUNCTION(const Object &pod, uint64_t until_ns) for the pods found by kinf_who for
	 * WHAT, until it returns false. Returns false if there are none. */
	template <class Function>
	bool who(const std::string &what, enum kinf_who_when when, Function &&function) const
	{
		using Walk = detail::Walk<std::remove_reference_t<Function>>;
		Walk walk(function);
		int r = walk.result(kinf_who(
			state_->raw, what.c_str(), when,
			[](void *arg, const struct kinf_object *pod, uint64_t until_ns) {
				return static_cast<Walk *>(arg)->call(Object(*pod), until_ns);
			},
			&walk));
		if (r == KINF_NOT_FOUND)
			return false;
		state_->check_result(r);
		return true;
	}
	struct kinf_snapshot *raw() const noexcept
	{
		return state_->raw;
	}

	Snapshot(const Snapshot &) = delete;
	Snapshot &operator=(const Snapshot &) = delete;
	Snapshot(Snapshot &&) noexcept = default;
	Snapshot &operator=(Snapshot &&) noexcept = default;

      private:
	friend class Store;
	explicit Snapshot(const std::shared_ptr<struct kinf> &kinf)
	    : state_(std::make_shared<detail::SnapshotState>(kinf))
	{
	}
	std::shared_ptr<detail::SnapshotState> state_;
};

class Informer;
struct InformerOptions;

class Store
{
      public:
	/* DIRECTORY: "" for the default store. */
	explicit Store(const std::string &directory = "")
	{
		struct kinf *raw = nullptr;
		int r = kinf_open(detail::text_or_null(directory), &raw);
		kinf_ = detail::own(raw); /* after a failure too: it has the sentence */
		detail::check(r, raw);
	}
	Store(const Store &) = delete;
	Store &operator=(const Store &) = delete;
	Store(Store &&) noexcept = default;
	Store &operator=(Store &&) noexcept = default;

	Snapshot snapshot() const
	{
		return Snapshot(kinf_);
	}
	/* Returns false if not all feeds have been listed within TIMEOUT (negative: waits for
	 * ever). */
	bool wait_for_cache_sync(
		const std::vector<std::string> &feeds, std::chrono::milliseconds timeout) const
	{
		std::vector<const char *> names;
		for (const auto &feed : feeds)
			names.push_back(feed.c_str());
		return waited(kinf_wait_synced(
			kinf_.get(), names.data(), names.size(), detail::milliseconds(timeout)));
	}
	/* Returns false if the feed does not hold RESOURCE_VERSION within TIMEOUT: to read one's
	 * own writes. */
	bool wait_rv(const std::string &feed, const std::string &resource_version,
		std::chrono::milliseconds timeout) const
	{
		return waited(kinf_wait_rv(kinf_.get(), feed.c_str(), resource_version.c_str(),
			detail::milliseconds(timeout)));
	}
	/* Verifies the checksum of each record before it is given out. Before the first
	 * snapshot. */
	void set_check(bool on)
	{
		detail::check(kinf_set_check(kinf_.get(), on), kinf_.get());
	}
	bool is_copy() const
	{
		return kinf_is_copy(kinf_.get()) != 0;
	}
	Informer informer(const std::string &feed, InformerOptions options) const;
	Informer informer(const std::string &feed) const;
	struct kinf *raw() const noexcept
	{
		return kinf_.get();
	}

      private:
	bool waited(int r) const
	{
		if (r == KINF_TIMEOUT)
			return false;
		detail::check(r, kinf_.get());
		return true;
	}
	std::shared_ptr<struct kinf> kinf_;
};

} // namespace kinformer

#include "kinf_informer.hpp"
#include "kinf_queue.hpp"

#endif
