/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client-go's informer for C++17. kinf.hpp includes this header and has the common rules.
 *
 *	kinformer::ResourceEventHandlerFuncs funcs;
 *	funcs.on_add = [&](const kinformer::Object &pod, bool initial) { queue.add(pod.key()); };
 *	auto informer = store.informer("pods");
 *	informer.add_event_handler(std::move(funcs));
 *	informer.run(stop_fd);
 *
 * Callbacks run in dispatch() and run() and nowhere else. They may add and remove handlers, also
 * their own, stop the informer, and destroy it.
 */
#ifndef KINF_INFORMER_HPP
#define KINF_INFORMER_HPP

#include "kinf.hpp"

namespace kinformer
{

/* The fields of struct kinf_informer_options. */
struct InformerOptions {
	std::string cursor; /* "": none */
	uint64_t from = 0;  /* 0: with an initial state */
	bool track_keys = false;
	bool commit_by_hand = false; /* only commit() writes the cursor, not each dispatch */
	std::optional<std::chrono::milliseconds> resync; /* empty: as kinf.yaml says; 0: none */
	uint32_t resync_jitter_percent = 0;
	std::function<void(const struct kinf_feed_info &)> on_state;
};

/* The set functions get the changes. */
struct ResourceEventHandlerFuncs {
	std::function<void(const Object &, bool is_in_initial_list)> on_add;
	/* OLD is nullptr if it is not known any more. */
	std::function<void(const Object *old, const Object &)> on_update;
	std::function<void(const Object &, bool final_state_unknown)> on_delete;
	std::function<void()> on_sync;
	std::function<void()>
		on_lapped; /* all objects follow as initial ones; others no longer exist */
	std::function<void(const Error &)> on_error; /* without it dispatch() throws the error */
	std::optional<Query> filter;
	std::optional<std::chrono::milliseconds> resync; /* empty: the informer's; 0: none */
};

namespace detail
{

struct InformerState;

/* One handler. The library has its address, so it does not move. */
struct Handler {
	InformerState *informer = nullptr;
	ResourceEventHandlerFuncs funcs;
	struct kinf_handler *raw = nullptr;
	uint64_t number =
		/* of its informer's handlers: another one may get the address of a removed one */
		0;
};

struct InformerState {
	std::shared_ptr<struct kinf> kinf;
	struct kinf_informer *raw = nullptr;
	InformerOptions options;
	std::vector<std::unique_ptr<Handler>> handlers;
	std::vector<std::unique_ptr<Handler>> removed; /* their functions may be running */
	std::exception_ptr problem;                    /* left a callback */
	bool dispatching = false;
	uint64_t added = 0; /* handlers so far */

	InformerState() = default;
	InformerState(const InformerState &) = delete;
	~InformerState()
	{
		kinf_informer_free(&raw);
	}

	auto find(uint64_t number)
	{
		return std::find_if(handlers.begin(), handlers.end(),
			[&](const auto &candidate) { return candidate->number == number; });
	}

	/* Runs a callback, unless one before it threw: then the informer ends. */
	template <class Function> void call(Function &&function) noexcept
	{
		if (problem)
			return;
		try {
			function();
		} catch (...) {
			problem = std::current_exception();
			kinf_informer_stop(raw);
		}
	}
};

inline Handler &handler_of(void *arg)
{
	return *static_cast<Handler *>(arg);
}

/* The functions of HANDLER as the library calls them; NULL for the unset ones. */
inline struct kinf_handler_options raw_handler(Handler &handler)
{
	const auto &funcs = handler.funcs;
	struct kinf_handler_options raw = {};
	raw.size = sizeof(raw);
	raw.arg = &handler;
	if (funcs.on_add)
		raw.on_add = [](void *arg, const struct kinf_object *object, int initial) {
			auto &h = handler_of(arg);
			h.informer->call([&] { h.funcs.on_add(Object(*object), initial != 0); });
		};
	if (funcs.on_update)
		raw.on_update = [](void *arg, const struct kinf_object *old,
					const struct kinf_object *object) {
			auto &h = handler_of(arg);
			auto before = old ? std::optional<Object>(*old) : std::nullopt;
			h.informer->call([&] {
				h.funcs.on_update(before ? &*before : nullptr, Object(*object));
			});
		};
	if (funcs.on_delete)
		raw.on_delete = [](void *arg, const struct kinf_object *object, int unknown) {
			auto &h = handler_of(arg);
			h.informer->call([&] { h.funcs.on_delete(Object(*object), unknown != 0); });
		};
	if (funcs.on_sync)
		raw.on_sync = [](void *arg) {
			auto &h = handler_of(arg);
			h.informer->call([&] { h.funcs.on_sync(); });
		};
	if (funcs.on_lapped)
		raw.on_lapped = [](void *arg) {
			auto &h = handler_of(arg);
			h.informer->call([&] { h.funcs.on_lapped(); });
		};
	if (funcs.on_error)
		raw.on_error = [](void *arg, int error, const char *text) {
			auto &h = handler_of(arg);
			h.informer->call([&] { h.funcs.on_error(Error(error, text)); });
		};
	if (funcs.resync) {
		raw.flags = KINF_OWN_RESYNC;
		raw.resync_ms = static_cast<uint64_t>(funcs.resync->count());
	}
	return raw;
}

} // namespace detail

/* The result of add_event_handler; it may outlive the informer. */
class HandlerRegistration
{
      public:
	/* Returns true when on_add has returned for all objects of the initial state; false once
	 * it is removed. */
	bool has_synced() const
	{
		auto state = state_.lock();
		return state && state->find(number_) != state->handlers.end() &&
		       kinf_handler_synced(raw_) != 0;
	}
	/* Returns the last event number examined by the handler; 0 before the walk and after its
	 * removal. */
	uint64_t event() const
	{
		auto state = state_.lock();
		return state && state->find(number_) != state->handlers.end()
			       ? kinf_handler_event(raw_)
			       : 0;
	}

      private:
	friend class Informer;
	HandlerRegistration(
		const std::shared_ptr<detail::InformerState> &state, const detail::Handler &handler)
	    : state_(state), raw_(handler.raw), number_(handler.number)
	{
	}
	std::weak_ptr<detail::InformerState> state_;
	struct kinf_handler *raw_;
	uint64_t number_;
};

class Informer
{
      public:
	Informer(Informer &&) noexcept = default;
	Informer &operator=(Informer &&other) noexcept
	{
		stop();
		state_ = std::move(other.state_);
		return *this;
	}
	/* In a callback of this informer also: the dispatch ends then. */
	~Informer()
	{
		stop();
	}

	HandlerRegistration add_event_handler(ResourceEventHandlerFuncs funcs)
	{
		auto handler = std::make_unique<detail::Handler>();
		handler->informer = state_.get();
		handler->number = ++state_->added;
		handler->funcs = std::move(funcs);
		auto options = detail::raw_handler(*handler);
		std::optional<detail::RawQuery> filter;
		if (handler->funcs.filter)
			options.filter = filter.emplace(*handler->funcs.filter, nullptr).get();
		auto *added = handler.get();
		state_->handlers.push_back(std::move(handler));
		int r = kinf_informer_add_handler(state_->raw, &options, &added->raw);
		if (r != 0)
			state_->handlers.pop_back();
		detail::check(r, state_->kinf.get());
		return {state_, *added};
	}
	/* None of its callbacks begins after this returns. Returns false if it is not this
	 * informer's any more. */
	bool remove_event_handler(const HandlerRegistration &registration)
	{
		auto found = state_->find(registration.number_);
		if (registration.state_.lock() != state_ || found == state_->handlers.end())
			return false;
		if (state_->dispatching)
			state_->removed.push_back(nullptr); /* may throw: first */
		(void)kinf_informer_remove_handler(state_->raw, registration.raw_);
		if (state_->dispatching)
			state_->removed.back() = std::move(*found);
		state_->handlers.erase(found);
		return true;
	}

	/* Readable whenever there may be something to dispatch; for poll and the like, never to
	 * be read. */
	int fd() const
	{
		return kinf_informer_fd(state_->raw);
	}
	/* Runs at most MAX callbacks (0: as many as there is work for); returns how many ran. */
	int dispatch(int max = 0)
	{
		return dispatch(state_, max);
	}
	/* Dispatches and sleeps until STOP_FD is readable or the informer is stopped. */
	void run(int stop_fd = -1)
	{
		const auto state = state_; /* a callback may destroy this informer */
		for (;;) {
			struct pollfd fds[] = {
				{kinf_informer_fd(state->raw), POLLIN, 0}, {stop_fd, POLLIN, 0}};
			int n = turn(state, 1000);
			/* As kinf_informer_run: the informer goes on with the lapse, unless a
			 * copy is read. */
			if (n < 0 &&
				(n != KINF_SNAPSHOT_EXPIRED || kinf_is_copy(state->kinf.get())))
				detail::check(n, state->kinf.get());
			if (kinf_informer_phase(state->raw) == KINF_INFORMER_STOPPED)
				return;
			if (poll(fds, 2, -1) < 0 && errno != EINTR)
				detail::check(-errno);
			else if (fds[1].revents != 0)
				return;
		}
	}
	/* For good; from any thread or callback. */
	void stop() noexcept
	{
		if (state_)
			kinf_informer_stop(state_->raw);
	}
	bool is_stopped() const
	{
		return kinf_informer_phase(state_->raw) == KINF_INFORMER_STOPPED;
	}
	/* Writes the cursor. Returns false while a handler is not synced. */
	bool commit()
	{
		return commit(*state_);
	}
	struct kinf_informer *raw() const noexcept
	{
		return state_->raw;
	}

      private:
	friend class Store;
	Informer(
		std::shared_ptr<struct kinf> kinf, const std::string &feed, InformerOptions options)
	    : state_(std::make_shared<detail::InformerState>())
	{
		struct kinf_informer_options raw = {};
		auto &own = state_->options;
		own = std::move(options);
		state_->kinf = std::move(kinf);
		raw.size = sizeof(raw);
		/* dispatch() commits by itself, if no callback threw. */
		raw.flags = KINF_COMMIT_BY_HAND;
		raw.flags |= own.track_keys ? uint32_t{KINF_TRACK_KEYS} : 0;
		raw.flags |= own.resync ? uint32_t{KINF_OWN_DEFAULT_RESYNC} : 0;
		raw.cursor = detail::text_or_null(own.cursor);
		raw.from = own.from;
		raw.resync_ms = own.resync ? static_cast<uint64_t>(own.resync->count()) : 0;
		raw.resync_jitter_percent = own.resync_jitter_percent;
		raw.arg = state_.get();
		if (own.on_state)
			raw.on_state = [](void *arg, const struct kinf_feed_info *info) {
				auto &state = *static_cast<detail::InformerState *>(arg);
				state.call([&] { state.options.on_state(*info); });
			};
		detail::check(
			kinf_informer_new(state_->kinf.get(), feed.c_str(), &raw, &state_->raw),
			state_->kinf.get());
	}

	static bool commit(detail::InformerState &state)
	{
		int r = kinf_informer_commit(state.raw);
		if (r == KINF_AGAIN)
			return false;
		detail::check(r, state.kinf.get());
		return true;
	}
	static int dispatch(const std::shared_ptr<detail::InformerState> &state, int max)
	{
		const auto kinf = state->kinf; /* a callback may destroy the informer */
		int n = turn(state, max);
		if (n < 0)
			detail::check(n, kinf.get());
		return n;
	}
	/* Returns how many callbacks ran, or an error of the library. STATE by value: a callback
	 * may destroy the informer. */
	static int turn(std::shared_ptr<detail::InformerState> state, int max)
	{
		bool outermost = !std::exchange(state->dispatching, true);
		int n = kinf_informer_dispatch(state->raw, max);
		if (outermost) {
			state->dispatching = false;
			state->removed.clear();
		}
		if (outermost && state->problem)
			std::rethrow_exception(std::exchange(state->problem, nullptr));
		if (n > 0 && !state->options.cursor.empty() && !state->options.commit_by_hand)
			(void)commit(*state);
		return n;
	}

	std::shared_ptr<detail::InformerState> state_;
};

inline Informer Store::informer(const std::string &feed, InformerOptions options) const
{
	return Informer(kinf_, feed, std::move(options));
}

inline Informer Store::informer(const std::string &feed) const
{
	return Informer(kinf_, feed, InformerOptions());
}

} // namespace kinformer

#endif
