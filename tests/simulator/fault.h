/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults on demand. A rule says which requests it hits and what happens to their answers; the first
 * rule that matches wins. One rule, as JSON; every key may be left out:
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
 * Offsets are in the body. Called from any thread.
 */
#ifndef SIMULATOR_FAULT_H
#define SIMULATOR_FAULT_H

#include "tests/simulator/http.h"
#include "tests/simulator/world.h"

struct faults;

/* What happens to one answer; a copy, so that rules may go meanwhile. */
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

/* The new rule's id, or 0 when its regular expression is bad. */
unsigned faults_add(struct faults *faults, struct bytes rule);

/* ID 0: all. */
void faults_remove(struct faults *faults, unsigned id);

/* Appends a JSON array of the rules with "id" and "hits". */
void faults_list(struct faults *faults, struct buf *out);

/* True when a rule hits this request. Release what it gives. */
bool faults_match(struct faults *faults, const char *target, const char *resource, const char *verb,
	struct fault *ret_fault);
void fault_release(struct fault *fault);

/* Before the answer is composed: waits. Done when true: ANSWER is complete but for its body's way
 * out. */
bool fault_replaces(
	const struct faults *faults, const struct fault *fault, int fd, struct http_answer *answer);

/* After: puts itself between the body and the client. */
void fault_wrap(
	struct faults *faults, const struct fault *fault, int fd, struct http_answer *answer);

#endif
