/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults on demand. A rule selects requests and changes their answers; the first one to match a
 * request applies. A rule is a JSON object with these keys, all optional:
 *
 *	which:	"path"      regular expression (POSIX extended) on path and query as sent
 *		"resource"  pods, deployments.apps
 *		"verb"      list, watch, get, discovery
 *		"after"     let that many matching requests pass first
 *		"count"     then hit that many; 0 (default): all
 *	what:	"delayMs"   before the headers
 *		"close"     true: close instead of answering; "reset": the same with an RST
 *		"status", "headers" (object of texts), "body" (text)
 *		            another answer altogether; status 200 when only the body is given
 *		"length"    Content-Length to claim
 *		"chunk"     at most that many bytes at a time
 *		"gapMs"     wait before each of them but the first
 *		"garbleAt"  offset of one byte to change
 *		"cutAt"     end the body there: connection cut, or with "clean": true a proper end
 *		"stallAt"   send nothing from there on, connection open
 *		"hold"      true: the body stays open after its last byte
 *
 * Offsets are in the body. Any thread may call these functions.
 */
#ifndef SIMULATOR_FAULT_H
#define SIMULATOR_FAULT_H

#include "tests/simulator/http.h"
#include "tests/simulator/world.h"

struct faults;

/* The fault of one answer. It is a copy, since the rule may be removed meanwhile. */
struct fault {
	uint64_t delay_ms, gap_ms;
	size_t chunk;                                /* 0: as it comes */
	int64_t length, garble_at, cut_at, stall_at; /* -1: not */
	unsigned status;                             /* 0: the true answer */
	char *body;
	char *headers; /* JSON object */
	bool close, reset, clean, hold;
};

struct faults *faults_new(struct world *world);
void faults_free(struct faults **faults);

/* Adds a rule. Returns its id, or 0 if its regular expression is invalid. */
unsigned faults_add(struct faults *faults, struct bytes rule);

/* Removes the rule ID; 0: all rules. */
void faults_remove(struct faults *faults, unsigned id);

/* Appends a JSON array of the rules with "id" and "hits". */
void faults_list(struct faults *faults, struct buf *out);

/* Returns true if a rule applies to this request. The caller releases RET_FAULT. */
bool faults_match(struct faults *faults, const char *target, const char *resource, const char *verb,
	struct fault *ret_fault);
void fault_release(struct fault *fault);

/* Applies the fault before the answer is composed: waits for delayMs. Returns true if the fault has
 * replaced the answer; the caller then composes none, but still calls fault_wrap. */
bool fault_replaces(
	const struct faults *faults, const struct fault *fault, int fd, struct http_answer *answer);

/* Applies the fault to the composed answer: adds headers, and puts itself between the body and the
 * client. */
void fault_wrap(
	struct faults *faults, const struct fault *fault, int fd, struct http_answer *answer);

#endif
