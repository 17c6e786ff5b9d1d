/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line per state change, to stderr: time, level, tag, event, then key=value pairs.
 *
 *	log_event(LOG_NOTICE, "feed", "listed", "feed=%s objects=%" PRIu64, name, n);
 *	2026-11-21T10:00:00.123Z notice feed listed feed=pods objects=20000
 *
 * With the json format the same as one object a line, the pairs as strings. Values with spaces or
 * quotes go through log_quote(). Only main.c and the loop files of a process log above debug.
 * Errors: we give something up; warning: we go on; notice: state change; info: progress.
 */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG, LOG_LEVEL_MAX };
enum log_format { LOG_TEXT, LOG_JSON };

void log_setup(const char *program, enum log_level max, enum log_format format);

void log_event(enum log_level level, const char *tag, const char *event, const char *pairs, ...)
	__attribute__((format(printf, 4, 5)));

/* TEXT in double quotes with escapes, in one of four per-thread buffers used in turn; cut at 500
 * bytes. */
const char *log_quote(const char *text);

#endif
