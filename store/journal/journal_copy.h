/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a journal, record by record, into a new generation: for `kinf compact`, where the copy
 * replaces the journal under the same uuid and no follower notices; and for `kinf backup`, into
 * another store under another uuid.
 *
 * The copy is complete but for one thing: records of a removed feed have no body once the index has
 * dropped the feed. Nothing reads those bodies any more.
 *
 * It goes in slices; the reflector writes on between two of them, but does not trim:
 *
 *	journal_copy_new(&options, &copy);
 *	while ((r = journal_copy_slice(copy, bytes)) == AGAIN)
 *		...
 *	r = journal_copy_end(copy, writer);	(no transaction is open)
 *	journal_copy_free(&copy);		(removes an unfinished copy)
 *
 * First comes the log; then the heads in key order; then the records written meanwhile, each with
 * its object's present head. The uuid is all zeros until the generation is complete, and CURRENT
 * names it last: the next opening for writing removes the directory of a killed copy.
 */
#ifndef STORE_JOURNAL_JOURNAL_COPY_H
#define STORE_JOURNAL_JOURNAL_COPY_H

#include "store/journal/journal.h"

struct journal_copy;

struct journal_copy_options {
	struct home *to; /* the copy's store */
	struct journal *from;
	struct txn *txn; /* to read FROM in; NULL: FROM is this process's writer */
	/* the copy is a journal of its own, with other seqs than FROM's */
	bool new_uuid;
	uint64_t taken;                 /* a feed removed at or before this seq loses its bodies */
	struct journal_options journal; /* of the copy */
};

/* -ENOSPC: there is no room for the copy. */
int journal_copy_new(const struct journal_copy_options *options, struct journal_copy **ret_copy);
/* Copies about BYTES more. Returns: 0: only the newest records are left; AGAIN; errors, final
 * ones. */
int journal_copy_slice(struct journal_copy *copy, uint64_t bytes);
/* Copies the rest, and names the copy in CURRENT. WRITER (FROM or NULL) goes on in the copy, and
 * its old generation is removed; with NULL the copy is closed in order. */
int journal_copy_end(struct journal_copy *copy, struct journal *writer);
void journal_copy_free(struct journal_copy **copy);

/* Return the bytes copied, and about how many there are. */
uint64_t journal_copy_done(const struct journal_copy *copy);
uint64_t journal_copy_total(const struct journal_copy *copy);

#endif
