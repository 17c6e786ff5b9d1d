/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line per state change, to stderr, in one write(2). common/log.def lists every event with its
 * level and its typed fields; each event has a struct, and the compiler checks a call:
 *
 *	LOG(feed_listed, .feed = name, .id = id, .objects = n, .rv = rv);
 *	2026-11-21T10:00:00.123Z notice feed_listed feed="pods" id=3 objects=20000 rv="4711"
 *
 * Fields appear in the order of log.def. The log quotes and escapes strings; a NULL string leaves
 * its field out. In the json format a line is one object: time, level, program, event, then the
 * fields, numbers as numbers. In systemd's journal a line begins with the level of sd-daemon(3),
 * and text has no time.
 *
 * In common (but for daemon/) and store, modules log at debug level only: they return errors,
 * and the programs log them. Levels: error, something is given up; warning, work goes on without
 * something; notice, a state changed; info, progress; debug, the rest.
 */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG, LOG_LEVEL_MAX };
enum log_format { LOG_TEXT, LOG_JSON };

/* Eight bytes a field: the log finds fields without their names. */
#define LOG_SLOT      __attribute__((aligned(8)))
#define STR(name)     const char *name LOG_SLOT;
#define U64(name)     uint64_t name LOG_SLOT;
#define I64(name)     int64_t name LOG_SLOT;
#define SECONDS(name) uint64_t name LOG_SLOT;
#define FLAG(name)    bool name LOG_SLOT;
#define EVENT(id, level, help, fields) \
	struct log_##id { \
		fields \
	};
#include "common/log.def"
#undef EVENT
#undef STR
#undef U64
#undef I64
#undef SECONDS
#undef FLAG

enum log_id {
#define EVENT(id, level, help, fields) LOG_ID_##id,
#include "common/log.def"
#undef EVENT
	LOG_IDS
};

#define LOG(id, ...) log_write(LOG_ID_##id, &(const struct log_##id){__VA_ARGS__})

/* Sets the program's name (borrowed for ever), the least important level to write, and the format.
 * The defaults are notices and text. */
void log_setup(const char *program, enum log_level max, enum log_format format);

/* Writes the event ID with its struct FIELDS unless the level is off; called by LOG(). Needs no
 * memory and keeps errno. Lines not read in time are lost and counted (log_lines_lost). */
void log_write(enum log_id id, const void *fields);

#endif
