/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file `damaged` of a generation: a sentence a line for each time that its writer had to end
 * because it is damaged. No check at the opening knows all that damaged bytes may do, and a
 * writer that ends at them would end at each start. After DAMAGED_MOST times the generation is
 * given up. Once could be the memory.
 */
#ifndef STORE_ENV_DAMAGED_H
#define STORE_ENV_DAMAGED_H

#define DAMAGED_FILE "damaged"
#define DAMAGED_MOST 2

/* Adds SENTENCE to the file in the generation's directory. Returns: 0; errors. */
int damaged_note(int folder_fd, const char *sentence);
/* Returns how many sentences there are; 0 also if that is not known. */
int damaged_count(int folder_fd);

#endif
