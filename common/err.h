/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors. A fallible function returns int: negative is an error (an errno value negated, or a code
 * of err.def below -1000), 0 is success, positive is an outcome the caller expects and must switch
 * on (enum outcome).
 *
 * A negative result always comes with a sentence of the same call: err_set() where the error
 * arises, err_add() where a caller knows more (file, feed, key). `return -ENOMEM;` is therefore
 * forbidden; scripts/check-style.sh finds it. The sentence lies in a fixed buffer of the thread, so
 * it works without memory. It reads from the outside in: "opening store '/x': journal generation 3:
 * damaged data".
 *
 *	if (fd < 0)
 *		return err_set(-errno, "opening '%s'", path);
 *	r = env_open(...);
 *	if (r < 0)
 *		return err_add(r, "journal generation %u", gen);
 *
 * A failure ends in one of two places: at a boundary (main, a turn of a loop, the public API),
 * where err_text() is printed, or in err_ignore(), with the reason for harmlessness.
 *
 *	err_ignore(cursor_table_walk(table), "the next trimming walks again");
 */
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#include <stdbool.h>

enum err_code {
#define ERR(name, code, text) ERR_##name = code,
#include "common/err.def"
#undef ERR
};

/* Positive results. FOUND is success, beside NOT_FOUND. */
enum outcome {
	FOUND = 0,
	NOT_FOUND = 1, /* no such key */
	END = 2,       /* nothing more, ever: end of the range, of the input */
	LAPPED = 3,    /* the position is no longer kept */
	GONE = 4,      /* the target was replaced or removed */
	AGAIN = 5,     /* nothing more now */
};

/* Starts a sentence for CODE: "<format>: <text of code>". Returns CODE. errno is left as it is. */
int err_set(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* As err_set(), but the sentence is complete without the text of CODE. */
int err_say(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Puts context before the current sentence: "<format>: <sentence>". Returns CODE. When no sentence
 * was set for CODE, one is started. */
int err_add(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Returns the sentence of this thread if it was set for CODE, else the fixed text of CODE. Borrowed
 * until the next err_* call of this thread. */
const char *err_text(int code);

/* Returns true if the error R is a lack of descriptors or memory of this process or machine: no
 * fault of the data. */
bool err_is_shortage(int r);

/* Drops the failure R: forgets its sentence, so that no later failure is printed with it, and logs
 * it at debug level with WHY, one sentence of its harmlessness. Does nothing when R is not
 * negative. errno is left as it is. */
void err_ignore(int r, const char *why);

/* Forgets the sentence: a boundary has reported it and goes on. */
void err_forget(void);

/* Destructors with work of their own keep the present sentence, so that a failure of theirs does
 * not replace it.
 *
 *	struct err_kept kept; err_keep(&kept); ... err_restore(&kept); */
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
