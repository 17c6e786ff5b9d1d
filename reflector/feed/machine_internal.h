/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the machine group, which machine.h lists. */
#ifndef REFLECTOR_FEED_MACHINE_INTERNAL_H
#define REFLECTOR_FEED_MACHINE_INTERNAL_H

#include "reflector/feed/machine.h"

#define SECOND 1000000000ull

/* ---- machine.c: what is to be done -------------------------------------- */

void machine_set_phase(struct feed_machine *machine, enum feed_phase phase);
void machine_wait(struct feed_machine *machine, uint64_t until_ns);
/* Counts a failure and waits, longer after each. */
void machine_back_off(struct feed_machine *machine, const struct feed_input *in);
/* Waits for `recheck`, after an answer that will not change soon. */
void machine_wait_slowly(struct feed_machine *machine, const struct feed_input *in);
/* Opens the watch again: at once, unless many other feeds do so in the same second. */
void machine_watch_again(struct feed_machine *machine, const struct feed_input *in);
/* Requests the next page, or the first one of a new attempt. */
void machine_list(struct feed_machine *machine, const struct feed_input *in);
/* Makes the next list begin with its first page. */
void machine_restart_list(struct feed_machine *machine);

/* ---- machine_failure.c -------------------------------------------------- */

/* The list, or what it brought, is of no use. */
void machine_list_failed(struct feed_machine *machine, const struct feed_input *in);
void machine_on_failed(struct feed_machine *machine, const struct feed_input *in);
/* The server ended a stream or a watch. */
void machine_on_ended(struct feed_machine *machine, const struct feed_input *in);

#endif
