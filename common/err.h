/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors. A function that can fail returns int: negative is an error (an errno value negated, or
 * a code of err.def below -1000), 0 is success, positive is an outcome the caller expects and
 * must switch on (enum outcome).
 *
 * A negative result has a sentence, set in the same call: err_set() at the origin, err_add() in
 * callers that know more (file, feed, key). scripts/check-style.sh refuses `return -ENOMEM;`. The
 * sentence is in a fixed buffer of the thread and needs no memory. It reads from the outside in:
 * "opening store '/x': journal generation 3: damaged data".
 *
 *	if (fd < 0)
 *		return err_set(-errno, "opening '%s'", path);
 *	r = env_open(...);
 *	if (r < 0)
 *		return err_add(r, "journal generation %u", gen);
 *
 * A failure ends in one of two places: at a boundary (main, a turn of a loop, the public API), with
 * err_text(), or in err_ignore() with the reason of its harmlessness.
 *
 *	err_ignore(cursor_clean(home, keeping, &n), "the next trimming tries again");
 */
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#include <stdbool.h>

enum err_code {
#define ERR(name, code, text) ERR_##name = code,
#include "common/err.def"
#undef ERR
};

/* Positive results. FOUND is success where NOT_FOUND is possible. */
enum outcome {
	FOUND = 0,
	NOT_FOUND = 1, /* no such key */
	END = 2,       /* nothing more, ever: end of the range, of the input */
	LAPPED = 3,    /* the position is older than the kept history */
	GONE = 4,      /* the referenced thing was replaced or removed */
	AGAIN = 5,     /* nothing more now */
};

/* Starts a sentence for CODE: "<format>: <text of code>". Returns CODE; keeps errno. */
int err_set(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* As err_set(), without the text of CODE. */
int err_say(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Puts context before the current sentence: "<format>: <sentence>". Starts one if CODE has none.
 * Returns CODE. */
int err_add(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Returns this thread's sentence if it is of CODE, else the fixed text of CODE. Borrowed until the
 * thread's next err_* call. */
const char *err_text(int code);

/* Returns true if R is a lack of descriptors or memory, in process or machine: it says nothing
 * about the data. */
bool err_is_shortage(int r);

/* Drops the failure R: forgets its sentence and logs it at debug level with WHY, the reason of its
 * harmlessness. Does nothing unless R is negative. Keeps errno. */
void err_ignore(int r, const char *why);

/* Forgets the sentence at a boundary that has reported it. */
void err_forget(void);

/* Keep the sentence during a destructor's own work, whose failures must not replace it.
 *
 * 	struct err_kept kept; err_keep(&kept); ... err_restore(&kept); */
#define ERR_TEXT_MAX 1024
struct err_kept {
	int code;
	char text[ERR_TEXT_MAX];
};
void err_keep(struct err_kept *ret_kept);
void err_restore(const struct err_kept *kept);

/* The fixed text of a code, never NULL. Static storage, except for errno values: those are in a
 * per-thread buffer until the next call. */
const char *err_name(int code);

#endif
