/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects, lists and events in the client's form: JSON, a Table, metadata, protobuf. An encoder has
 * the state of one body; to begin again, make a new one:
 *
 *	struct answer_encoder encoder = {.request = request};
 *	answer_encode_begin(&encoder, &page, &out);
 *	answer_encode_item(&encoder, body, &out) ...
 *	answer_encode_end(&encoder, &out);
 */
#ifndef SERVE_ANSWER_ENCODE_H
#define SERVE_ANSWER_ENCODE_H

#include "serve/answer/request.h"
#include "serve/api/api_protobuf.h"

/* A part of the CustomResourceDefinition of the request's resource. */
enum answer_custom_part {
	CUSTOM_COLUMNS, /* of tables */
	CUSTOM_LABELS,  /* selectable fields */
	CUSTOM_WARNING  /* that the version is deprecated */
};
/* Appends PART. Appends nothing without a feed of definitions. */
int answer_custom(struct answer_request *request, enum answer_custom_part part, struct buf *out);

/* Returns 1 if the API server passes requests for the resource on to another one (an aggregated
 * API); 0: it does not, or this is not known without feeds of apiservices and definitions;
 * AGAIN; errors. */
int answer_is_aggregated(struct answer_request *request);

/* Checks the form, and makes the printer of tables. Returns: 0; 406, 400; errors. */
int answer_form_init(struct answer_request *request);

/* ---- bodies ------------------------------------------------------------- */

struct answer_encoder {
	const struct answer_request *request;
	uint64_t items;     /* of a list */
	bool columns_given; /* of its table, or in an earlier event of the watch */
};

/* Each of these appends to OUT and returns: 0; errors. */
int answer_encode_object(struct answer_encoder *encoder, struct bytes body, struct buf *out);
int answer_encode_begin(
	struct answer_encoder *encoder, const struct api_page *page, struct buf *out);
int answer_encode_item(struct answer_encoder *encoder, struct bytes body, struct buf *out);
int answer_encode_end(struct answer_encoder *encoder, struct buf *out);
/* Append an event: a line, or a frame of protobuf. */
int answer_encode_event(struct answer_encoder *encoder, const char *type, struct bytes body,
	struct bytes rv, struct buf *out);
int answer_encode_bookmark(
	struct answer_encoder *encoder, const char *rv, bool ends_initial, struct buf *out);
void answer_encode_error(const struct answer_request *request, struct buf *out);

/* ---- the events of a change --------------------------------------------- */

/* Reads record SEQ of the feed. Returns: 0; LAPPED; errors. */
int answer_event_read(
	const struct answer_request *request, uint64_t seq, struct record *ret_record);
/* Appends the event of a record. LAST_RV stamps a deletion that was only inferred, so that a
 * returning client gets the rest. Returns: 1; 0: no event for this watch; LAPPED: the previous
 * version is not kept; errors. */
int answer_event_record(struct answer_encoder *encoder, const struct record *record,
	struct bytes last_rv, struct buf *out);

/* The changes of a relist: deletions first, the others by RV. */
struct answer_row {
	uint64_t old_seq, new_seq; /* the states before and after; 0: none */
	timeline_rv rv;
};
struct answer_bracket {
	struct timeline_entry entry;
	struct answer_row *rows;
	size_t n, room, next;
};
/* Returns: 0; LAPPED: it has more records than a watch is given; errors. */
int answer_bracket_load(struct answer_request *request, const struct timeline_entry *entry,
	struct answer_bracket **ret_bracket);
void answer_bracket_free(struct answer_bracket **bracket);
/* Appends the event of the next row, as answer_event_record() does. */
int answer_bracket_next(struct answer_encoder *encoder, struct answer_bracket *bracket,
	struct bytes last_rv, struct buf *out);

#endif
