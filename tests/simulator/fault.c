/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/fault.h"

#include <inttypes.h>
#include <regex.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/decimal.h"
#include "tests/simulator/jsontext.h"
#include "tests/simulator/memory.h"

struct fault_rule {
	struct fault_rule *next;
	unsigned id;
	char *text;
	regex_t path;
	bool has_path;
	char *resource, *verb; /* NULL: any */
	uint64_t after, count, seen, hits;
};

struct faults {
	struct world *world;
	pthread_mutex_t lock;
	struct fault_rule *rules; /* in the order of their addition */
	unsigned last_id;
};

struct faults *faults_new(struct world *world)
{
	struct faults *faults = memory_take(sizeof(*faults));

	REQUIRE(pthread_mutex_init(&faults->lock, NULL) == 0);
	faults->world = world;
	return faults;
}

/* ---- rules -------------------------------------------------------------- */

static int64_t fault_rule_number(struct bytes rule, const char *key, int64_t missing)
{
	uint64_t n;
	int r = decimal_parse(jsontext_get(rule, key), INT64_MAX, &n);

	err_ignore(r, "it has no such number");
	return r < 0 ? missing : (int64_t)n;
}

static bool fault_rule_flag(struct bytes rule, const char *key)
{
	return bytes_equal(jsontext_get(rule, key), BYTES_LIT("true"));
}

static void fault_rule_free(struct fault_rule *rule)
{
	if (rule->has_path)
		regfree(&rule->path);
	free(rule->text);
	free(rule->resource);
	free(rule->verb);
	free(rule);
}

unsigned faults_add(struct faults *faults, struct bytes text)
{
	struct fault_rule *rule = memory_take(sizeof(*rule));
	AUTO_FREE char *path = jsontext_dup(jsontext_get(text, "path"));
	struct fault_rule **link = &faults->rules;
	unsigned id;

	if (path && regcomp(&rule->path, path, REG_EXTENDED | REG_NOSUB)) {
		free(rule);
		return 0;
	}
	rule->has_path = path != NULL;
	rule->text = memory_text(text);
	rule->resource = jsontext_dup(jsontext_get(text, "resource"));
	rule->verb = jsontext_dup(jsontext_get(text, "verb"));
	rule->after = (uint64_t)fault_rule_number(text, "after", 0);
	rule->count = (uint64_t)fault_rule_number(text, "count", 0);
	pthread_mutex_lock(&faults->lock);
	id = rule->id = ++faults->last_id;
	while (*link)
		link = &(*link)->next;
	*link = rule;
	pthread_mutex_unlock(&faults->lock);
	return id;
}

void faults_remove(struct faults *faults, unsigned id)
{
	pthread_mutex_lock(&faults->lock);
	for (struct fault_rule **link = &faults->rules; *link;) {
		struct fault_rule *rule = *link;

		if (id && rule->id != id) {
			link = &rule->next;
			continue;
		}
		*link = rule->next;
		fault_rule_free(rule);
	}
	pthread_mutex_unlock(&faults->lock);
}

void faults_list(struct faults *faults, struct buf *out)
{
	pthread_mutex_lock(&faults->lock);
	buf_byte(out, '[');
	for (const struct fault_rule *rule = faults->rules; rule; rule = rule->next)
		buf_printf(out, "%s{\"id\":%u,\"hits\":%" PRIu64 ",\"rule\":%s}",
			rule == faults->rules ? "" : ",", rule->id, rule->hits, rule->text);
	buf_str(out, "]\n");
	pthread_mutex_unlock(&faults->lock);
}

void faults_free(struct faults **faults)
{
	if (!*faults)
		return;
	faults_remove(*faults, 0);
	pthread_mutex_destroy(&(*faults)->lock);
	free(*faults);
	*faults = NULL;
}

static bool fault_rule_matches(
	struct fault_rule *rule, const char *target, const char *resource, const char *verb)
{
	if ((rule->resource && strcmp(rule->resource, resource)) ||
		(rule->verb && strcmp(rule->verb, verb)) ||
		(rule->has_path && regexec(&rule->path, target, 0, NULL, 0)))
		return false;
	if (rule->count && rule->hits >= rule->count)
		return false;
	return rule->seen++ >= rule->after;
}

static struct fault fault_from_rule(struct bytes rule)
{
	struct bytes headers = jsontext_get(rule, "headers"), body = jsontext_get(rule, "body");

	return (struct fault){
		.delay_ms = (uint64_t)fault_rule_number(rule, "delayMs", 0),
		.gap_ms = (uint64_t)fault_rule_number(rule, "gapMs", 0),
		.chunk = (size_t)fault_rule_number(rule, "chunk", 0),
		.length = fault_rule_number(rule, "length", -1),
		.garble_at = fault_rule_number(rule, "garbleAt", -1),
		.cut_at = fault_rule_number(rule, "cutAt", -1),
		.stall_at = fault_rule_number(rule, "stallAt", -1),
		.status = (unsigned)fault_rule_number(rule, "status", body.data ? 200 : 0),
		.body = jsontext_dup(body),
		.headers = headers.data ? memory_text(headers) : NULL,
		.close = fault_rule_flag(rule, "close"),
		.reset = fault_rule_flag(rule, "reset"),
		.clean = fault_rule_flag(rule, "clean"),
		.hold = fault_rule_flag(rule, "hold"),
	};
}

bool faults_match(struct faults *faults, const char *target, const char *resource, const char *verb,
	struct fault *ret_fault)
{
	struct fault_rule *rule;

	pthread_mutex_lock(&faults->lock);
	for (rule = faults->rules; rule; rule = rule->next)
		if (fault_rule_matches(rule, target, resource, verb))
			break;
	if (rule) {
		rule->hits++;
		*ret_fault = fault_from_rule(bytes_str(rule->text));
	}
	pthread_mutex_unlock(&faults->lock);
	return rule != NULL;
}

void fault_release(struct fault *fault)
{
	free(fault->body);
	free(fault->headers);
}

/* ---- effects ------------------------------------------------------------ */

/* Waits for MS. Returns false as soon as the client has closed the connection. */
static bool fault_wait(struct world *world, uint64_t ms, int fd)
{
	uint64_t deadline = world_now_ms() + ms;
	bool alive = true;

	pthread_mutex_lock(&world->lock);
	while (world_now_ms() < deadline && (alive = http_alive(fd)))
		world_wait(world, deadline);
	pthread_mutex_unlock(&world->lock);
	return alive;
}

static void fault_wait_for_ever(struct world *world, int fd)
{
	while (fault_wait(world, 3600 * 1000, fd))
		;
}

static void fault_put_headers(const struct fault *fault, struct http_answer *answer)
{
	struct jsontext_iter iter;
	struct jsontext_member member;

	jsontext_iter_init(&iter, bytes_str(fault->headers));
	while (jsontext_iter_next(&iter, &member)) {
		AUTO_FREE char *name = memory_text(member.key);
		AUTO_FREE char *value = jsontext_dup(member.value);

		http_answer_header(answer, name, value);
	}
}

bool fault_replaces(
	const struct faults *faults, const struct fault *fault, int fd, struct http_answer *answer)
{
	if (fault->delay_ms)
		(void)fault_wait(faults->world, fault->delay_ms,
			fd); /* sending the answer fails if the client has gone */
	if (fault->close || fault->reset) {
		answer->hang_up = true;
		answer->reset = fault->reset;
		return true;
	}
	if (!fault->status)
		return false;
	answer->status = fault->status;
	http_answer_header(answer, "Content-Type", "application/json");
	if (fault->body)
		buf_str(&answer->body, fault->body);
	return true;
}

struct fault_stream {
	struct http_stream inner;
	struct world *world;
	struct fault fault; /* its texts are not used any more */
	int fd;
	uint64_t pos;
};

/* Returns ROOM, or the bytes up to OFFSET if these are fewer. */
static size_t fault_up_to(const struct fault_stream *stream, int64_t offset, size_t room)
{
	if (offset < 0 || (uint64_t)offset <= stream->pos)
		return room;
	return (uint64_t)offset - stream->pos < room ? (size_t)((uint64_t)offset - stream->pos)
						     : room;
}

static bool fault_is_at(const struct fault_stream *stream, int64_t offset)
{
	return offset >= 0 && (uint64_t)offset == stream->pos;
}

static ssize_t fault_stream_read(void *arg, char *out, size_t room)
{
	struct fault_stream *stream = arg;
	const struct fault *fault = &stream->fault;

	if (fault->gap_ms && stream->pos && !fault_wait(stream->world, fault->gap_ms, stream->fd))
		return -1;
	if (fault_is_at(stream, fault->stall_at)) {
		fault_wait_for_ever(stream->world, stream->fd);
		return -1;
	}
	if (fault_is_at(stream, fault->cut_at))
		return fault->clean ? 0 : -1;
	if (fault->chunk && fault->chunk < room)
		room = fault->chunk;
	room = fault_up_to(stream, fault->cut_at, fault_up_to(stream, fault->stall_at, room));

	ssize_t n = stream->inner.read(stream->inner.arg, out, room);

	if (n == 0 && fault->hold) {
		fault_wait_for_ever(stream->world, stream->fd);
		return -1;
	}
	if (n <= 0)
		return n;
	if (fault->garble_at >= 0 && (uint64_t)fault->garble_at >= stream->pos &&
		(uint64_t)fault->garble_at < stream->pos + (uint64_t)n)
		out[(uint64_t)fault->garble_at - stream->pos] ^= 0x11;
	stream->pos += (uint64_t)n;
	return n;
}

static void fault_stream_free(void *arg)
{
	struct fault_stream *stream = arg;

	stream->inner.free(stream->inner.arg);
	free(stream);
}

void fault_wrap(
	struct faults *faults, const struct fault *fault, int fd, struct http_answer *answer)
{
	if (answer->hang_up)
		return;
	if (fault->headers)
		fault_put_headers(fault, answer);
	if (!(fault->gap_ms || fault->chunk || fault->hold) && fault->length < 0 &&
		fault->garble_at < 0 && fault->cut_at < 0 && fault->stall_at < 0)
		return;

	struct fault_stream *stream = memory_take(sizeof(*stream));

	http_answer_to_stream(answer);
	*stream = (struct fault_stream){
		.inner = answer->stream, .world = faults->world, .fault = *fault, .fd = fd};
	answer->stream = (struct http_stream){
		.read = fault_stream_read, .free = fault_stream_free, .arg = stream};
	answer->length = fault->length;
}
