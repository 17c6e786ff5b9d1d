/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file `damaged` of a generation: a daemon met damage in it, as the sentence in the file
 * says. Its writer gives the generation up: no check at the opening finds all that damaged bytes
 * may do, and each start would end at them.
 */
#ifndef STORE_ENV_DAMAGED_H
#define STORE_ENV_DAMAGED_H

#define DAMAGED_FILE "damaged"

/* Makes the file in the generation's directory. Returns: 0; errors. */
int damaged_note(int folder_fd, const char *sentence);
/* Returns: 0; ERR_CORRUPT, with the sentence, if the file is there; errors. */
int damaged_check(int folder_fd);

#endif
