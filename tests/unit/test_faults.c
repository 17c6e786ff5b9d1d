/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/faults.h"

#include <signal.h>
#include <sys/mman.h>

#include "common/proc.h"
#include "tests/unit/unit.h"

/* Waits for the child PID; its wait status. */
static int reap(pid_t pid)
{
	int status = -1;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

/* Runs CRASH in a child with faults caught; its stderr into TEXT, its exit status back. */
static int run_fault(void (*crash)(void), char *text, size_t size)
{
	int ends[2];
	size_t n = 0;

	cr_assert_eq(pipe(ends), 0);
	pid_t pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		(void)dup2(ends[1], STDERR_FILENO);
		faults_catch("kinf-test", "/some/store");
		crash();
		_exit(0);
	}
	(void)close(ends[1]);
	for (ssize_t r; n < size - 1 && (r = read(ends[0], text + n, size - 1 - n)) > 0;)
		n += (size_t)r;
	text[n] = '\0';
	(void)close(ends[0]);
	int status = reap(pid);
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void read_beyond_the_end(void)
{
	int fd = open(scratch_path("short"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	volatile char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	(void)p[100];
}

static void raise_segv(void)
{
	(void)raise(SIGSEGV);
}

Test(faults, truncated_mapped_file_is_one_line_and_an_exit_status)
{
	char text[1024];

	cr_assert_eq(run_fault(read_beyond_the_end, text, sizeof(text)), PROC_INTERNAL);
	cr_assert_str_eq(text, "kinf-test: memory fault (SIGBUS): a file was cut short, or the "
			       "disk of the store or its runtime directory is full or failing: "
			       "make room, run 'kinf verify'; the store is '/some/store'\n");
}

Test(faults, segmentation_fault_is_one_line_and_an_exit_status)
{
	char text[1024];

	cr_assert_eq(run_fault(raise_segv, text, sizeof(text)), PROC_INTERNAL);
	cr_assert_str_eq(text,
		"kinf-test: memory fault (SIGSEGV): the store may be damaged: run 'kinf verify'; "
		"the store is '/some/store'\n");
}
