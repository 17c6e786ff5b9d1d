/* SPDX-License-Identifier: Apache-2.0 */
/* The watches of a worker by feed and group, and the frames shared by a group. */
#ifndef SERVE_ANSWER_GROUP_H
#define SERVE_ANSWER_GROUP_H

#include "serve/answer/request.h"

struct answer_group;

/* A watch in its group. */
struct answer_member {
	struct answer_request *request;
	struct answer_group *group; /* NULL: none */
	struct answer_member *next, **at;
	uint64_t position;
	bool caught_up; /* no backlog: the group's later position counts */
};

int answer_groups_open(struct answer_worker *worker);
void answer_groups_close(struct answer_worker *worker);
/* Shows the news to their groups, and wakes the watches. */
void answer_groups_news(struct answer_worker *worker);

/* Joins the group of the member's request. */
int answer_group_join(struct answer_member *member);
void answer_group_leave(struct answer_member *member);
/* Sets whether the member has caught up. One that had goes on from the group's later position. */
void answer_group_set_caught_up(struct answer_member *member, bool caught_up);

/* The lines of record SEQ for the watches of a group. */
struct answer_frame {
	struct answer_group *group;
	uint64_t seq;
	struct answer_frame *newer, *older; /* of the worker's */
	struct answer_frame *next, **at;    /* of the group's */
	unsigned n;                         /* events: 0 or 1 */
	bool of_watch;             /* the event bears an RV of the watch: LINES are not for it */
	char rv[TIMELINE_RV_SIZE]; /* of the record */
	size_t size;
	uint8_t lines[];
};
/* Returns the frame of record SEQ for GROUP, on behalf of its member REQUEST. Valid until the next
 * call. Sets *HELD if it had to hold the log. Returns: 0; LAPPED, AGAIN; errors. */
int answer_frame(struct answer_request *request, struct answer_group *group, uint64_t seq,
	bool *held, const struct answer_frame **ret_frame);

#endif
