/* SPDX-License-Identifier: Apache-2.0 */
/* The generation group's internal header: generation.c opens and closes generations,
 * generation_folders.c finds, publishes and removes them. */
#ifndef STORE_ENV_GENERATION_INTERNAL_H
#define STORE_ENV_GENERATION_INTERNAL_H

#include <stdint.h>

/* "gen-N". */
void generation_folder_name(uint32_t number, char name[32]);
int generation_open_folder(int directory_fd, uint32_t number, int *ret_fd);
/* Calls FN for each generation in DIRECTORY_FD, until it returns non-zero. */
typedef int generation_fn(void *arg, int directory_fd, uint32_t number);
int generation_each(int directory_fd, generation_fn *fn, void *arg);
/* Removes the parts of a generation that could not be made: else a full disk leaves a directory at
 * each attempt. Keeps the sentence of the failure. */
void generation_remove_failed(int directory_fd, uint32_t number);

#endif
