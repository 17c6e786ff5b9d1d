/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the machine's time to wake a second process from a first and a third from the second:
 * the lower bound for the latency of a pipeline of three processes. usage: hops COUNT RATE
 */
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/proc.h"
#include "tests/bench/measure.h"

struct chain {
	_Atomic uint32_t first, second; /* counters; a process waits for each */
	_Atomic uint64_t sent_ns;
	uint64_t took_ns[];
};

static void wake(_Atomic uint32_t *word)
{
	(*word)++;
	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void wait_past(_Atomic uint32_t *word, uint32_t seen)
{
	while (*word == seen)
		(void)syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static void pass_on(struct chain *chain, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		wait_past(&chain->first, i);
		wake(&chain->second);
	}
}

static void receive(struct chain *chain, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		wait_past(&chain->second, i);
		chain->took_ns[i] = proc_monotonic_ns() - chain->sent_ns;
	}
}

static pid_t start(void (*run)(struct chain *, uint32_t), struct chain *chain, uint32_t count)
{
	pid_t pid = fork();

	must_true(pid >= 0, "fork");
	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* only tidiness */
	run(chain, count);
	_exit(0);
}

int main(int argc, char **argv)
{
	must_true(argc == 3, "usage: hops COUNT RATE");
	uint32_t count = (uint32_t)must_number(argv[1], 1, "COUNT");
	uint64_t rate = must_number(argv[2], 1, "RATE");
	size_t size = sizeof(struct chain) + count * sizeof(uint64_t);
	struct chain *chain =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must_true(chain != MAP_FAILED, "no memory");
	pid_t last = start(receive, chain, count);
	(void)start(pass_on, chain, count);
	for (uint32_t i = 0; i < count; i++) {
		struct timespec pause = {.tv_nsec = (long)(SECOND_NS / rate) % SECOND_NS};

		(void)nanosleep(&pause, NULL); /* a shorter pause does no harm */
		chain->sent_ns = proc_monotonic_ns();
		wake(&chain->first);
	}
	must_true(waitpid(last, NULL, 0) == last, "the last process");
	result_begin();
	result_samples("two_hops", chain->took_ns, count);
	result_end();
	return 0;
}
