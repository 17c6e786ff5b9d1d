/* SPDX-License-Identifier: Apache-2.0 */
/* What an open generation (generation.c) needs of the folders that there are (generation_folders.c). Nobody
 * else includes this. */
#ifndef STORE_ENV_GENERATION_INTERNAL_H
#define STORE_ENV_GENERATION_INTERNAL_H

#include <stdint.h>

/* "gen-N". */
void generation_folder_name(uint32_t number, char name[32]);
int generation_open_folder(int directory_fd, uint32_t number, int *ret_fd);
/* Calls FN for each generation there is, until it returns non-zero. */
typedef int generation_fn(void *arg, int directory_fd, uint32_t number);
int generation_each(int directory_fd, generation_fn *fn, void *arg);
/* One that could not be made: a full disk must not leave a folder at each attempt. Keeps the sentence. */
void generation_remove_failed(int directory_fd, uint32_t number);

#endif
