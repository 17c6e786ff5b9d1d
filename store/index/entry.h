/* SPDX-License-Identifier: Apache-2.0 */
/* An entry of the index: points to a version in the journal. */
#ifndef STORE_INDEX_ENTRY_H
#define STORE_INDEX_ENTRY_H

#include <stdint.h>

/* The version is in the journal under SEQ, and perhaps at PLACE of its file (journal_get_at). */
struct index_entry {
	uint64_t object; /* object id: given once, never reused */
	uint64_t seq;
	uint64_t place; /* 0: none */
	uint32_t place_size;
	uint32_t generation; /* journal generation of place */
};

#endif
