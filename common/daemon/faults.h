/* SPDX-License-Identifier: Apache-2.0 */
/* Faults in mapped files: our programs end with one line instead of a core file. */
#ifndef COMMON_DAEMON_FAULTS_H
#define COMMON_DAEMON_FAULTS_H

/* Makes SIGSEGV and SIGBUS print one line with PROGRAM and STORE (both copied), and end the process
 * with PROC_INTERNAL. For programs, not for the library. */
void faults_catch(const char *program, const char *store);

#endif
