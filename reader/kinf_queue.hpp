/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client-go's work queue for C++17. kinf.hpp includes this header and has the common rules.
 *
 *	kinformer::WorkQueue queue;
 *	while (auto item = queue.get()) {       (in each worker; empty once the queue is shut down)
 *		if (reconcile(item->key()))
 *			queue.forget(item->key());
 *		else
 *			queue.add_rate_limited(item->key());
 *	}                                       (the item's destructor is Done)
 *
 * Join the workers before the queue is destroyed. An order of one's own (struct
 * kinf_queue_order) and limiters of one's own (struct kinf_limiter_operations) are made with
 * kinf_queue.h.
 */
#ifndef KINF_QUEUE_HPP
#define KINF_QUEUE_HPP

#include "kinf.hpp"

namespace kinformer
{

/* A clock for tests; must outlive its queues and limiters. */
class Clock
{
      public:
	Clock()
	{
		struct kinf_clock *made;
		detail::check(kinf_clock_new(&made), nullptr);
		raw_.reset(made);
	}
	void step(std::chrono::nanoseconds time)
	{
		kinf_clock_step(raw_.get(), static_cast<uint64_t>(time.count()));
	}
	std::chrono::nanoseconds now() const
	{
		return std::chrono::nanoseconds(kinf_clock_now(raw_.get()));
	}
	struct kinf_clock *raw() const noexcept
	{
		return raw_.get();
	}

      private:
	struct Free {
		void operator()(struct kinf_clock *clock) const noexcept
		{
			kinf_clock_free(&clock);
		}
	};
	std::unique_ptr<struct kinf_clock, Free> raw_;
};

/* Delays of failed keys: client-go's limiters. */
class RateLimiter
{
      public:
	using Time = std::chrono::nanoseconds;

	/* Takes over RAW. */
	explicit RateLimiter(struct kinf_limiter *raw) noexcept : raw_(raw)
	{
	}

	static RateLimiter item_exponential_failure(Time base, Time max)
	{
		return make(kinf_limiter_item_exponential_failure, base.count(), max.count());
	}
	static RateLimiter item_fast_slow(Time fast, Time slow, uint64_t n_fast)
	{
		return make(kinf_limiter_item_fast_slow, fast.count(), slow.count(), n_fast);
	}
	static RateLimiter bucket(double qps, uint32_t burst, const Clock *clock = nullptr)
	{
		return make(kinf_limiter_bucket, qps, burst, clock ? clock->raw() : nullptr);
	}
	static RateLimiter default_controller(const Clock *clock = nullptr)
	{
		return make(kinf_limiter_default_controller, clock ? clock->raw() : nullptr);
	}
	static RateLimiter default_item_based()
	{
		return make(kinf_limiter_default_item_based);
	}
	static RateLimiter max_of(std::vector<RateLimiter> limiters)
	{
		std::vector<struct kinf_limiter *> raw;
		for (const auto &limiter : limiters)
			raw.push_back(limiter.raw());
		auto made = make(kinf_limiter_max_of, raw.data(), raw.size());
		for (auto &limiter : limiters)
			(void)limiter.release();
		return made;
	}
	static RateLimiter with_max_wait(RateLimiter limiter, Time max)
	{
		auto made = make(kinf_limiter_with_max_wait, limiter.raw(), max.count());
		(void)limiter.release();
		return made;
	}

	/* Returns how long KEY waits now, and counts it. */
	Time when(std::string_view key)
	{
		int64_t ns;
		detail::check(kinf_limiter_when(raw_.get(), key.data(), key.size(), &ns), nullptr);
		return Time(ns);
	}
	void forget(std::string_view key)
	{
		kinf_limiter_forget(raw_.get(), key.data(), key.size());
	}
	uint64_t num_requeues(std::string_view key) const
	{
		return kinf_limiter_num_requeues(raw_.get(), key.data(), key.size());
	}
	struct kinf_limiter *raw() const noexcept
	{
		return raw_.get();
	}
	/* Gives the limiter away. */
	struct kinf_limiter *release() noexcept
	{
		return raw_.release();
	}

      private:
	struct Free {
		void operator()(struct kinf_limiter *limiter) const noexcept
		{
			kinf_limiter_free(&limiter);
		}
	};
	template <class Function, class... Arguments>
	static RateLimiter make(Function function, Arguments... arguments)
	{
		struct kinf_limiter *made;
		detail::check(function(arguments..., &made), nullptr);
		return RateLimiter(made);
	}
	std::unique_ptr<struct kinf_limiter, Free> raw_;
};

class WorkQueue
{
      public:
	/* A key in work until this is destroyed. */
	class Item
	{
	      public:
		Item(Item &&other) noexcept : queue_(std::move(other.queue_)), key_(other.key_)
		{
		}
		Item &operator=(Item &&other) noexcept
		{
			done();
			queue_ = std::move(other.queue_);
			key_ = other.key_;
			return *this;
		}
		~Item()
		{
			done();
		}
		/* Ends with an extra NUL; valid until done(). */
		std::string_view key() const noexcept
		{
			return key_;
		}
		void done() noexcept
		{
			if (auto queue = std::exchange(queue_, nullptr))
				(void)kinf_queue_done(queue.get(), key_.data(), key_.size());
		}

	      private:
		friend class WorkQueue;
		Item(std::shared_ptr<struct kinf_queue> queue, std::string_view key)
		    : queue_(std::move(queue)), key_(key)
		{
		}
		std::shared_ptr<struct kinf_queue> queue_;
		std::string_view key_;
	};

	WorkQueue() : WorkQueue(nullptr, nullptr)
	{
	}
	explicit WorkQueue(RateLimiter limiter, const Clock *clock = nullptr)
	    : WorkQueue(&limiter, clock)
	{
	}
	explicit WorkQueue(const Clock &clock) : WorkQueue(nullptr, &clock)
	{
	}

	/* Returns false if the queue is shutting down; so do the next two. */
	bool add(std::string_view key)
	{
		return added(kinf_queue_add(raw_.get(), key.data(), key.size()));
	}
	bool add_after(std::string_view key, std::chrono::nanoseconds delay)
	{
		return added(
			kinf_queue_add_after(raw_.get(), key.data(), key.size(), delay.count()));
	}
	bool add_rate_limited(std::string_view key)
	{
		return added(kinf_queue_add_rate_limited(raw_.get(), key.data(), key.size()));
	}
	void forget(std::string_view key)
	{
		kinf_queue_forget(raw_.get(), key.data(), key.size());
	}
	uint64_t num_requeues(std::string_view key) const
	{
		return kinf_queue_num_requeues(raw_.get(), key.data(), key.size());
	}

	/* Waits for a key. Returns nothing once the queue is shut down and all keys were handed
	 * out. */
	std::optional<Item> get()
	{
		return take(-1);
	}
	/* The same, but waits for TIMEOUT at most; returns nothing then also (see
	 * shutting_down). */
	std::optional<Item> get(std::chrono::milliseconds timeout)
	{
		return take(std::max(0, detail::milliseconds(timeout)));
	}
	size_t size() const
	{
		return kinf_queue_len(raw_.get());
	}
	void shut_down() noexcept
	{
		kinf_queue_shut_down(raw_.get());
	}
	void shut_down_with_drain()
	{
		kinf_queue_shut_down_with_drain(raw_.get());
	}
	bool shutting_down() const
	{
		return kinf_queue_shutting_down(raw_.get()) != 0;
	}
	struct kinf_queue_counts metrics() const
	{
		struct kinf_queue_counts counts = {};
		counts.size = sizeof(counts);
		detail::check(kinf_queue_metrics(raw_.get(), &counts), nullptr);
		return counts;
	}
	struct kinf_queue *raw() const noexcept
	{
		return raw_.get();
	}

	WorkQueue(const WorkQueue &) = delete;
	WorkQueue &operator=(const WorkQueue &) = delete;
	WorkQueue(WorkQueue &&) noexcept = default;
	WorkQueue &operator=(WorkQueue &&) noexcept = default;

      private:
	WorkQueue(RateLimiter *limiter, const Clock *clock)
	{
		struct kinf_queue_options options = {};
		struct kinf_queue *made;
		options.size = sizeof(options);
		options.limiter = limiter ? limiter->raw() : nullptr;
		options.clock = clock ? clock->raw() : nullptr;
		detail::check(kinf_queue_new(&options, &made), nullptr);
		if (limiter)
			(void)limiter->release();
		raw_ = {made, [](struct kinf_queue *queue) { kinf_queue_free(&queue); }};
	}
	static bool added(int r)
	{
		if (r == KINF_END)
			return false;
		detail::check(r, nullptr);
		return true;
	}
	std::optional<Item> take(int timeout_ms)
	{
		const char *key;
		size_t size;
		int r = kinf_queue_get(raw_.get(), timeout_ms, &key, &size);
		if (r == KINF_AGAIN || r == KINF_END)
			return std::nullopt;
		detail::check(r, nullptr);
		return Item(raw_, {key, size});
	}
	std::shared_ptr<struct kinf_queue> raw_;
};

} // namespace kinformer

#endif
