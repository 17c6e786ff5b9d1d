/* SPDX-License-Identifier: Apache-2.0 */
/* What feed.c (the steps) and feed_failed.c (what follows a failure) have of each other; others use
 * feed.h. ACTION is what the step will answer. */
#ifndef REFLECTOR_FEED_MACHINE_INTERNAL_H
#define REFLECTOR_FEED_MACHINE_INTERNAL_H

#include "reflector/feed/machine.h"

/* ---- feed.c ---- */

void feed_set_phase(struct feed *feed, enum feed_phase phase, struct feed_action *action);
void feed_do_wait(struct feed *feed, uint64_t until_ns, struct feed_action *action);
void feed_back_off(struct feed *feed, const struct feed_input *in, struct feed_action *action);
void feed_wait_slowly(struct feed *feed, const struct feed_input *in, struct feed_action *action);
void feed_watch_again(struct feed *feed, const struct feed_input *in, struct feed_action *action);
/* The next page, or the first one of a new attempt, which may be a stream. */
void feed_do_list(struct feed *feed, const struct feed_input *in, struct feed_action *action);
/* Whatever was listed so far: the next list begins with its first page. */
void feed_restart_list(struct feed *feed);

/* ---- feed_failed.c ---- */

/* FEED_ON_FAILED, in any state. */
void feed_failed(struct feed *feed, const struct feed_input *in, struct feed_action *action);
void feed_list_failed(struct feed *feed, const struct feed_input *in, struct feed_action *action);
void feed_stream_lost(struct feed *feed, const struct feed_input *in, struct feed_action *action);
void feed_strike(struct feed *feed, const struct feed_input *in, struct feed_action *action);
/* The watch ended as soon as it began and gave nothing. */
bool feed_was_short(const struct feed *feed, const struct feed_input *in);

#endif
