/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMAND_COMPLETE_H
#define COMMAND_COMPLETE_H

/* From now on a command that is run prints the candidates for the last word of its command line
 * instead. */
void complete_begin(void);

/* Prints "candidate<TAB>description", as all candidates are printed. */
void complete_print(const char *candidate, const char *description);

/* Makes the output one that kubectl takes from the program kubectl_complete-kinf: complete_end()
 * prints a last line, which tells kubectl to complete names of files, or not to, or to add no
 * blank. */
void complete_for_kubectl(void);
void complete_end(void);

#endif
