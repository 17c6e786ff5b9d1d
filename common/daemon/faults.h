/* SPDX-License-Identifier: Apache-2.0 */
/* Faults in mapped files: a program of ours ends with one line instead of a core file. */
#ifndef COMMON_DAEMON_FAULTS_H
#define COMMON_DAEMON_FAULTS_H

/* From now on SIGSEGV and SIGBUS print one line with PROGRAM and STORE, and end the process with
 * PROC_INTERNAL. For programs, not for the library. Both texts are copied. */
void faults_catch(const char *program, const char *store);

#endif
