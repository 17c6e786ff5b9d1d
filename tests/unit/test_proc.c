/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>

#include "common/proc.h"
#include "tests/unit/unit.h"

static char directory[64];
static int directory_fd = -1;

static void make_directory(void)
{
	(void)snprintf(directory, sizeof(directory), "/tmp/kinf-proc-XXXXXX");
	cr_assert(mkdtemp(directory));
	directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(directory_fd, 0);
}

static void remove_directory(void)
{
	(void)unlinkat(directory_fd, "role.lock", 0);
	(void)close(directory_fd);
	cr_assert_eq(rmdir(directory), 0);
}

TestSuite(proc, .init = make_directory, .fini = remove_directory);

Test(proc, what_is_written_gets_no_number_of_a_standard_descriptor)
{
	int input = dup(STDIN_FILENO);

	(void)close(STDIN_FILENO);
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int above = proc_above_standard(fd);
	bool is_free = fcntl(STDIN_FILENO, F_GETFD) < 0;
	(void)dup2(input, STDIN_FILENO);
	(void)close(input);
	cr_assert_eq(fd, STDIN_FILENO);
	cr_assert(is_free);
	cr_assert_gt(above, STDERR_FILENO);
	cr_assert_eq(fcntl(above, F_GETFD), FD_CLOEXEC);
	cr_assert_eq(proc_above_standard(above), above);
	cr_assert_eq(close(above), 0);
	cr_assert_eq(proc_above_standard(-1), -1);
}

Test(proc, what_is_kept_open_gets_a_number_that_no_file_gets_by_itself)
{
	AUTO_FD int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct rlimit limit, low;
	int apart = proc_apart(fd);

	cr_assert_geq(apart, 256);
	cr_assert_eq(fcntl(fd, F_GETFD), -1);
	cr_assert_eq(fcntl(apart, F_GETFD), FD_CLOEXEC);
	cr_assert_eq(proc_apart(apart), apart);
	cr_assert_eq(close(apart), 0);
	cr_assert_eq(proc_apart(-1), -1);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = (struct rlimit){.rlim_cur = 100, .rlim_max = limit.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	cr_assert_eq(proc_apart(fd), fd, "there is no such number");
}

Test(proc, begins_with_a_umask_that_leaves_the_owner_its_rights)
{
	(void)umask(0725);
	proc_begin();
	cr_assert_eq(umask(0), 0025);
}

/* kinf-reflector ended by SIGBUS at the first growth of the journal if its parent had blocked all
 * signals. */
Test(proc, signals_of_faults_that_were_blocked_are_not)
{
	sigset_t set, before;

	(void)sigfillset(&set);
	cr_assert_eq(sigprocmask(SIG_SETMASK, &set, &before), 0);
	proc_begin();
	cr_assert_eq(sigprocmask(SIG_SETMASK, &before, &set), 0);
	cr_assert_not(sigismember(&set, SIGBUS));
	cr_assert_not(sigismember(&set, SIGSEGV));
	cr_assert(sigismember(&set, SIGTERM), "this one is the caller's choice");
}

Test(proc, exit_statuses_tell_a_supervisor_what_helps)
{
	cr_assert_eq(proc_exit_of(ERR_CONFIG), PROC_CONFIG);
	cr_assert_eq(proc_exit_of(ERR_CORRUPT), PROC_INTERNAL);
	cr_assert_eq(proc_exit_of(ERR_LOCKED), PROC_IN_USE);
	cr_assert_eq(proc_exit_of(-ENOSPC), PROC_TEMPORARY);
}

/* Waits for the child PID; its wait status. */
static int reap(pid_t pid)
{
	int status = -1;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

/* Holds the lock in another process until the pipe is closed; returns its pid. */
static pid_t hold_lock(int *ret_go)
{
	int ready[2], go[2];
	char byte = 0;

	cr_assert_eq(pipe(ready), 0);
	cr_assert_eq(pipe(go), 0);
	pid_t pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		(void)close(go[1]);
		if (proc_lock(directory_fd, "role.lock") < 0)
			_exit(1);
		(void)!write(ready[1], "", 1);
		(void)!read(go[0], &byte, 1);
		_exit(0);
	}
	(void)close(ready[1]);
	(void)close(go[0]);
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	*ret_go = go[1];
	return pid;
}

Test(proc, second_instance_is_told_the_first_ones_pid)
{
	int go;
	char wanted[64];

	cr_assert_not(proc_is_locked(directory_fd, "role.lock"));
	pid_t pid = hold_lock(&go);
	cr_assert(proc_is_locked(directory_fd, "role.lock"));
	cr_assert_eq(proc_lock(directory_fd, "role.lock"), ERR_LOCKED);
	(void)snprintf(wanted, sizeof(wanted), "'role.lock' is held by process %d", (int)pid);
	cr_assert_str_eq(err_text(ERR_LOCKED), wanted);
	(void)close(go);
	cr_assert_eq(reap(pid), 0);
	cr_assert_not(proc_is_locked(directory_fd, "role.lock"));
	AUTO_FD int fd = proc_lock(directory_fd, "role.lock");
	cr_assert_geq(fd, 0);
}

Test(proc, lock_of_a_killed_process_is_free)
{
	int go;
	pid_t pid = hold_lock(&go);

	cr_assert_eq(kill(pid, SIGKILL), 0);
	(void)reap(pid);
	AUTO_FD int fd = proc_lock(directory_fd, "role.lock");
	cr_assert_geq(fd, 0);
	(void)close(go);
}

Test(proc, lock_file_holds_the_pid_and_is_private)
{
	char text[32] = "", wanted[32];
	struct stat st;

	AUTO_FD int fd = proc_lock(directory_fd, "role.lock");
	cr_assert_geq(fd, 0);
	cr_assert_gt(pread(fd, text, sizeof(text) - 1, 0), 0);
	(void)snprintf(wanted, sizeof(wanted), "%d\n", (int)getpid());
	cr_assert_str_eq(text, wanted);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	/* Also as seen by the lock's owner. */
	cr_assert(proc_is_locked(directory_fd, "role.lock"));
	cr_assert_eq(proc_lock(directory_fd, "role.lock"), ERR_LOCKED);
}

Test(proc, looking_at_a_lock_waits_for_nobody, .timeout = 5)
{
	/* In a directory of several users each of these may be another one's. */
	cr_assert_eq(mkfifoat(directory_fd, "role.lock", 0600), 0);
	(void)proc_is_locked(directory_fd, "role.lock");
	cr_assert_eq(unlinkat(directory_fd, "role.lock", 0), 0);
	AUTO_FD int fd = openat(directory_fd, "role.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(sigaction(SIGIO, &(struct sigaction){.sa_handler = SIG_IGN}, NULL), 0);
	if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0) /* else the file system has no leases */
		cr_assert(proc_is_locked(directory_fd, "role.lock"));
}

Test(proc, the_path_of_an_open_directory)
{
	char path[sizeof(directory)], small[8];

	cr_assert_eq(proc_path_of(directory_fd, path, sizeof(path)), 0);
	cr_assert_str_eq(path, directory);
	cr_assert_eq(proc_path_of(directory_fd, small, sizeof(small)), -ENAMETOOLONG);
	cr_assert_eq(proc_path_of(-1, path, sizeof(path)), -ENOENT);
}

Test(proc, lock_in_a_missing_directory_is_an_error)
{
	cr_assert_eq(proc_lock(directory_fd, "no/role.lock"), -ENOENT);
	cr_assert_str_eq(
		err_text(-ENOENT), "opening lock 'no/role.lock': No such file or directory");
	cr_assert_not(proc_is_locked(directory_fd, "no/role.lock"));
}

Test(proc, boot_id_is_the_kernels_and_a_test_can_choose_one_in_builds_with_failpoints)
{
	char id[33], again[33];

	cr_assert_eq(unsetenv("KINF_BOOT_ID"), 0);
	cr_assert_eq(proc_boot_id(id), 0);
	cr_assert_eq(strlen(id), 32);
	cr_assert_eq(proc_boot_id(again), 0);
	cr_assert_str_eq(id, again);
	cr_assert_eq(setenv("KINF_BOOT_ID", "00112233-4455-6677-8899-aabbccddeeff", 1), 0);
	cr_assert_eq(proc_boot_id(again), 0);
#ifndef KINF_FAILPOINTS
	cr_assert_str_eq(again, id, "a stray variable must not discard a journal");
	return;
#endif
	cr_assert_str_eq(again, "00112233445566778899aabbccddeeff");
	cr_assert_eq(setenv("KINF_BOOT_ID", "00112233", 1), 0);
	cr_assert_eq(proc_boot_id(again), ERR_SYNTAX);
	cr_assert_str_eq(err_text(ERR_SYNTAX), "not a boot id: '00112233'");
	cr_assert_eq(setenv("KINF_BOOT_ID", "00112233445566778899aabbccddeeff0", 1), 0);
	cr_assert_eq(proc_boot_id(again), ERR_SYNTAX);
	cr_assert_str_eq(again, "00112233445566778899aabbccddeeff", "written only on success");
}

Test(proc, start_ticks_name_a_living_process_only)
{
	uint64_t mine, again, other;
	struct proc_stat stat;

	cr_assert_eq(proc_start_ticks(getpid(), &mine), 0);
	cr_assert_eq(proc_start_ticks(getpid(), &again), 0);
	cr_assert_eq(mine, again);
	cr_assert_eq(proc_read_stat(getpid(), &stat), 0);
	cr_assert_eq(stat.state, 'R');
	cr_assert_eq(stat.start_ticks, mine);
	cr_assert_eq(proc_read_stat(0x7ffffffe, &stat), -ESRCH);
	cr_assert_eq(proc_start_ticks(0x7ffffffe, &other), -ESRCH);
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	siginfo_t info;
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	cr_assert_eq(proc_start_ticks(pid, &other), -ESRCH, "a zombie is not alive");
	cr_assert_eq(proc_read_stat(pid, &stat), 0);
	cr_assert_eq(stat.state, 'Z');
	(void)reap(pid);
}

Test(proc, memory_of_a_process_is_that_of_files_and_its_own)
{
	size_t size = 64 << 20;
	struct proc_memory before, after;
	char *mine = malloc(size);

	cr_assert_not_null(mine);
	cr_assert_eq(proc_read_memory(getpid(), &before), 0);
	memset(mine, 1, size);
	cr_assert_eq(proc_read_memory(getpid(), &after), 0);
	cr_assert_leq(after.anonymous, after.resident);
	cr_assert_gt(after.anonymous, before.anonymous + size / 2);
	free(mine);
	cr_assert_eq(proc_read_memory(0x7ffffffe, &after), -ESRCH);
}

Test(proc, milliseconds_until_a_time_are_never_less_than_what_is_left)
{
	uint64_t now = proc_monotonic_ns(), hour = 3600 * UINT64_C(1000000000);

	cr_assert_eq(proc_ms_until(UINT64_MAX), -1);
	cr_assert_eq(proc_ms_until(0), 0);
	cr_assert_eq(proc_ms_until(now), 0);
	cr_assert_eq(proc_ms_until(now + 25 * 24 * hour), INT_MAX, "more than poll() can wait");
	int left = proc_ms_until(now + hour);
	cr_assert(left > 3000000 && left <= 3600000, "%d", left);
}
