/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_COMMAND_COMPLETE_H
#define READER_COMMAND_COMPLETE_H

/* From now on a command that is run prints the candidates for the last word of its command line
 * instead. */
void complete_begin(void);

#endif
