/* SPDX-License-Identifier: Apache-2.0 */
#include "common/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"

static _Thread_local struct {
	int code; /* what the sentence is about; 0: none */
	char text[ERR_TEXT_MAX];
	char name[128];
} last;

const char *err_name(int code)
{
	switch (code) {
#define ERR(name, number, text)                                                                    \
	case number:                                                                               \
		return text;
#include "common/err.def"
#undef ERR
	default:
		break;
	}
	if (code >= 0)
		return "no error";
	return strerror_r(-code, last.name, sizeof(last.name));
}

/* Puts "<format>" or "<format>: <tail>" into the sentence; TAIL may be the sentence itself. */
static void compose(const char *format, va_list args, const char *tail)
{
	char text[ERR_TEXT_MAX];
	int n = vsnprintf(text, sizeof(text), format, args);

	if (n < 0)
		n = 0;
	if ((size_t)n < sizeof(text) - 1 && tail)
		(void)snprintf(text + n, sizeof(text) - (size_t)n, n > 0 ? ": %s" : "%s", tail);
	memcpy(last.text, text, sizeof(text));
}

int err_set(int code, const char *format, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, format);
	compose(format, args, err_name(code));
	va_end(args);
	last.code = code;
	errno = saved;
	return code;
}

int err_say(int code, const char *format, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, format);
	compose(format, args, NULL);
	va_end(args);
	last.code = code;
	errno = saved;
	return code;
}

int err_add(int code, const char *format, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, format);
	compose(format, args, err_text(code));
	va_end(args);
	last.code = code;
	errno = saved;
	return code;
}

const char *err_text(int code)
{
	return last.code == code && code ? last.text : err_name(code);
}

void err_forget(void)
{
	last.code = 0;
	last.text[0] = '\0';
}

void err_ignore(int r, const char *why)
{
	if (r >= 0)
		return;
	LOG(error_ignored, .error = err_text(r), .why = why);
	if (last.code == r)
		err_forget();
}

void err_clear(void)
{
	err_forget();
}

void err_keep(struct err_kept *ret_kept)
{
	ret_kept->code = last.code;
	memcpy(ret_kept->text, last.text, sizeof(last.text));
}

void err_restore(const struct err_kept *kept)
{
	last.code = kept->code;
	memcpy(last.text, kept->text, sizeof(last.text));
}
