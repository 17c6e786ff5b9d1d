/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/faults.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "common/proc.h"

/* Composed in advance: the handler only writes it. */
static struct {
	char text[512];
	size_t size;
} faults_lines[2];

static uint8_t faults_stack[64 * 1024];

static void faults_handle(int number)
{
	int i = number == SIGBUS;

	ssize_t n = write(STDERR_FILENO, faults_lines[i].text, faults_lines[i].size);

	(void)n; /* the process ends in any case */
	_exit(PROC_INTERNAL);
}

static void faults_line(int i, const char *program, const char *store, const char *what)
{
	int n = snprintf(faults_lines[i].text, sizeof(faults_lines[i].text),
		"%s: memory fault (%s run 'kinf verify'; the store is '%.300s'\n", program, what,
		store);

	faults_lines[i].size = (size_t)n < sizeof(faults_lines[i].text)
				       ? (size_t)n
				       : sizeof(faults_lines[i].text) - 1;
}

void faults_catch(const char *program, const char *store)
{
	faults_line(0, program, store, "SIGSEGV): the store may be damaged:");
	faults_line(1, program, store,
		"SIGBUS): a file was cut short, or the disk of the store or its runtime directory "
		"is full or failing: make room,");
	/* An own stack, to report stack overflows too. Without one the handler runs on the usual
	 * stack. */
	stack_t stack = {.ss_sp = faults_stack, .ss_size = sizeof(faults_stack)};
	(void)sigaltstack(&stack, NULL);
	struct sigaction action = {
		.sa_handler = faults_handle, .sa_flags = SA_ONSTACK | (int)SA_RESETHAND};
	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(SIGSEGV, &action, NULL); /* fails only for unknown signals */
	(void)sigaction(SIGBUS, &action, NULL);
}
