/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choices and text of one generated object. All choices follow from a seed, a family and a number:
 * the N-th object of a kind is the same in every run with the seed.
 */
#ifndef SIMULATOR_MIX_H
#define SIMULATOR_MIX_H

#include "common/buf.h"

struct mix {
	struct buf *out; /* where the functions below append */
	uint64_t state;
};

void mix_init(struct mix *mix, uint64_t seed, const char *family, uint64_t n, struct buf *out);

/* Returns a number below LIMIT. */
uint64_t mix_below(struct mix *mix, uint64_t limit);
bool mix_chance(struct mix *mix, unsigned percent);

/* Returns a size from LEAST to MOST: small ones are frequent, and each doubling is rarer. */
size_t mix_size(struct mix *mix, size_t least, size_t most);

#define MIX_PICK(mix, words) ((words)[mix_below(mix, sizeof(words) / sizeof((words)[0]))])

/* Appends JSON text; ' stands for ". The arguments must have neither ' nor characters to escape in
 * JSON. */
void mix_put(struct mix *mix, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Append the inside of a JSON string. */
void mix_hex(struct mix *mix, size_t size);
void mix_base64(struct mix *mix, size_t size);
/* Lines of settings, about SIZE bytes, with quotes, ampersands and letters outside ASCII. */
void mix_settings(struct mix *mix, size_t size);

/* Appends a UID, the same for the same FAMILY and N. */
void mix_uid(struct mix *mix, unsigned family, uint64_t n);

#endif
