/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a journal, record by record, into a new generation: for `kinf compact`, which replaces
 * the journal by the copy under the same uuid, so that no follower notices; and for `kinf
 * backup`, into another store under another uuid.
 *
 * The copy has what the journal has, with one exception: a record of a feed that is removed, and
 * that the index has dropped, has no body. Nothing else of such a feed can be asked for, and its
 * values are gone.
 *
 * It goes in slices, so that the reflector can go on writing between two of them (it does not
 * trim meanwhile):
 *
 *	journal_copy_new(&options, &copy);
 *	while ((r = journal_copy_slice(copy, bytes)) == AGAIN)
 *		...
 *	r = journal_copy_end(copy, writer);	(no transaction is open)
 *	journal_copy_free(&copy);		(removes a copy that did not come to its end)
 *
 * First the log is copied, up to its end; then the heads in key order; then the records that
 * came meanwhile, each with the head of its object as it is then. The generation has a uuid of
 * zeros until it is complete, and CURRENT names it
 * last: a process that is killed leaves a directory that the next opening for writing removes.
 */
#ifndef STORE_JOURNAL_JOURNAL_COPY_H
#define STORE_JOURNAL_JOURNAL_COPY_H

#include "store/journal/journal.h"

struct journal_copy;

struct journal_copy_options {
	struct home *to; /* the store that gets the copy */
	struct journal *from;
	struct txn *txn; /* that is copied; NULL: FROM is this process's writer, which goes on */
	/* the copy is a journal of its own, whose seqs will be other ones than FROM's */
	bool new_uuid;
	uint64_t taken; /* a feed that was removed at or before this seq loses its bodies */
	struct journal_options journal; /* of the copy */
};

/* -ENOSPC: there is no room for the copy. */
int journal_copy_new(const struct journal_copy_options *options, struct journal_copy **ret_copy);
/* Copies about BYTES more. Returns: 0: only what has just come is left; AGAIN; errors, after
 * which it is over. */
int journal_copy_slice(struct journal_copy *copy, uint64_t bytes);
/* Copies the rest, and names the copy in CURRENT. With FROM as WRITER, that goes on in the copy,
 * and the generation before is removed; with NULL the copy is closed, and clean. */
int journal_copy_end(struct journal_copy *copy, struct journal *writer);
void journal_copy_free(struct journal_copy **copy);

/* Return how far it is, in bytes, and about how many there are. */
uint64_t journal_copy_done(const struct journal_copy *copy);
uint64_t journal_copy_total(const struct journal_copy *copy);

#endif
