/* SPDX-License-Identifier: Apache-2.0 */
#include "common/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/text/utf8.h"

static _Thread_local struct {
	int code; /* code of the sentence; 0: no sentence */
	char text[ERR_TEXT_MAX];
	char name[128];
} err_last;

const char *err_name(int code)
{
	switch (code) {
#define ERR(name, number, text) \
	case number: \
		return text;
#include "common/err.def"
#undef ERR
	default:
		break;
	}
	if (code >= 0)
		return "no error";
	if (code == -EMFILE)
		return "Too many open files (raise the limit of this process: ulimit -n, "
		       "LimitNOFILE= of a service)";
	if (code == -EFBIG)
		return "File too large (raise the limit of this process: ulimit -f, LimitFSIZE= of "
		       "a service)";
	return strerror_r(-code, err_last.name, sizeof(err_last.name));
}

/* Makes "<format>" or "<format>: <tail>" the sentence of CODE; TAIL may be the sentence itself.
 * Keeps errno. */
static void err_compose(int code, const char *format, va_list args, const char *tail)
{
	int saved = errno;
	char text[ERR_TEXT_MAX];
	int n = vsnprintf(text, sizeof(text), format, args);

	if (n < 0)
		n = 0;
	if ((size_t)n < sizeof(text) - 1 && tail)
		(void)snprintf(text + n, sizeof(text) - (size_t)n, n > 0 ? ": %s" : "%s", tail);
	utf8_make_printable(text); /* it may quote outside text: a name in a backup, an answer */
	memcpy(err_last.text, text, sizeof(text));
	err_last.code = code;
	errno = saved;
}

int err_set(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err_compose(code, format, args, err_name(code));
	va_end(args);
	return code;
}

int err_say(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err_compose(code, format, args, NULL);
	va_end(args);
	return code;
}

int err_add(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err_compose(code, format, args, err_text(code));
	va_end(args);
	return code;
}

const char *err_text(int code)
{
	return err_last.code == code && code ? err_last.text : err_name(code);
}

void err_forget(void)
{
	err_last.code = 0;
	err_last.text[0] = '\0';
}

bool err_is_shortage(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

void err_ignore(int r, const char *why)
{
	if (r >= 0)
		return;
	LOG(error_ignored, .error = err_text(r), .why = why);
	if (err_last.code == r)
		err_forget();
}

void err_keep(struct err_kept *ret_kept)
{
	ret_kept->code = err_last.code;
	memcpy(ret_kept->text, err_last.text, sizeof(err_last.text));
}

void err_restore(const struct err_kept *kept)
{
	err_last.code = kept->code;
	memcpy(err_last.text, kept->text, sizeof(err_last.text));
}
