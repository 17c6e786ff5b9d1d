/* SPDX-License-Identifier: Apache-2.0 */
/* What feed.c (the steps) and feed_failed.c (what follows a failure) have of each other; others use
 * feed.h. ACTION is what the step will answer. */
#ifndef REFLECTOR_FEED_MACHINE_INTERNAL_H
#define REFLECTOR_FEED_MACHINE_INTERNAL_H

#include "reflector/feed/machine.h"

/* ---- feed.c ---- */

void machine_set_phase(struct feed_machine *feed, enum feed_phase phase, struct feed_action *action);
void machine_do_wait(struct feed_machine *feed, uint64_t until_ns, struct feed_action *action);
void machine_back_off(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action);
void machine_wait_slowly(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action);
void machine_watch_again(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action);
/* The next page, or the first one of a new attempt, which may be a stream. */
void machine_do_list(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action);
/* Whatever was listed so far: the next list begins with its first page. */
void machine_restart_list(struct feed_machine *feed);

/* ---- feed_failed.c ---- */

/* FEED_ON_FAILED, in any state. */
void machine_failed(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action);
void machine_list_failed(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action);
void machine_stream_lost(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action);
void machine_strike(struct feed_machine *feed, const struct feed_input *in, struct feed_action *action);
/* The watch ended as soon as it began and gave nothing. */
bool machine_was_short(const struct feed_machine *feed, const struct feed_input *in);

#endif
