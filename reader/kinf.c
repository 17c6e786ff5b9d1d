/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes handles and snapshots. */
#include "reader/kinf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/config/config.h"
#include "common/err.h"
#include "reader/handle.h"
#include "reader/handled.h"
#include "store/env/forks.h"
#include "store/read/as_of.h"
#include "store/verify/verify.h"

#define INDEX_WAIT_NS (5 * UINT64_C(1000000000))

#define SAME(name) _Static_assert((int)KINF_##name == (int)ERR_##name, "kinf.h and err.def differ")
SAME(CORRUPT);
SAME(FORMAT);
SAME(NO_FEED);
SAME(SNAPSHOT_EXPIRED);
SAME(LOCKED);
SAME(NO_STORE);
SAME(UNTRUSTED);
SAME(SYNTAX);
SAME(TOO_LARGE);
SAME(READERS_FULL);
SAME(NO_INDEX);
SAME(FORKED);
SAME(MOVED);
SAME(TIMEOUT);
SAME(UNSUPPORTED);
_Static_assert((int)KINF_NOT_FOUND == (int)NOT_FOUND && (int)KINF_END == (int)END &&
		       (int)KINF_LAPPED == (int)LAPPED && (int)KINF_GONE == (int)GONE &&
		       (int)KINF_AGAIN == (int)AGAIN,
	"outcomes differ");

const char *kinf_version(void)
{
	return KINF_VERSION;
}

const char *kinf_strerror(int code)
{
	switch (code) {
	case KINF_NOT_FOUND:
		return "not found";
	case KINF_END:
		return "no more";
	case KINF_LAPPED:
		return "the position is no longer kept";
	case KINF_GONE:
		return "replaced or removed";
	case KINF_AGAIN:
		return "nothing yet";
	default:
		return err_name(code);
	}
}

/* One for each thread, because several threads may use snapshots of one handle. */
static _Thread_local struct {
	const struct kinf *kinf;
	bool is_unlisted; /* kinf_say_unlisted() */
	/* A library loaded late has little room for thread-local variables. */
	char text[1023];
} last_error;

static void last_error_set(const struct kinf *kinf, const char *text)
{
	last_error.kinf = kinf;
	last_error.is_unlisted = false;
	(void)snprintf(last_error.text, sizeof(last_error.text), "%s", text);
}

void kinf_say_unlisted(const struct kinf *kinf, const char *text)
{
	last_error_set(kinf, text);
	last_error.is_unlisted = true;
}

void kinf_forget_unlisted(void)
{
	last_error.is_unlisted = false;
}

bool kinf_has_unlisted(const struct kinf *kinf)
{
	return last_error.kinf == kinf && last_error.is_unlisted;
}

int kinf_result(struct kinf *kinf, int code)
{
	if (code < 0)
		last_error_set(kinf, err_text(code));
	if (code == AGAIN && !kinf_has_unlisted(kinf))
		/* no errors, but a program giving up here has to report the reason */
		last_error_set(kinf,
			"not known yet: the feed is being listed for the first time, or the index "
			"is being filled; 'kinf status' shows the progress");
	else if (code == GONE)
		last_error_set(
			kinf, "the state that was read before is no longer kept: begin again");
	return code;
}

int kinf_outcome(struct kinf *kinf, int code, const char *text)
{
	last_error_set(kinf, text);
	return code;
}

int kinf_check_size(const char *structure, uint32_t given, size_t known)
{
	if (given == known)
		return 0;
	return err_set(
		ERR_UNSUPPORTED, "%s of %u bytes, this library knows %zu", structure, given, known);
}

bool kinf_is_forked(const struct kinf *kinf)
{
	return kinf->forks != forks_count();
}

int kinf_alive(struct kinf *kinf)
{
	CHECK_OBJ(kinf, KINF_MAGIC);
	if (kinf_is_forked(kinf))
		return kinf_result(kinf, err_set(ERR_FORKED, "store '%s'", kinf->directory));
	if (!kinf->store)
		return kinf_result(kinf, err_set(ERR_NO_STORE, "the store was not opened"));
	return 0;
}

int kinf_held(struct kinf_snapshot *snapshot)
{
	int r = kinf_alive(snapshot->kinf);

	if (r < 0 || snapshot->held)
		return r;
	return kinf_result(
		snapshot->kinf, err_say(-EINVAL, "the snapshot was reset: renew it first"));
}

struct kinf_check {
	kinf_fault_fn *fault;
	void *arg;
	char first[512];
};

static void kinf_note_fault(void *arg, const char *sentence)
{
	struct kinf_check *check = arg;

	if (!check->first[0])
		(void)snprintf(check->first, sizeof(check->first), "%s", sentence);
	if (check->fault)
		check->fault(check->arg, sentence);
}

/* Checks an untrusted store: it was copied while its daemons ran or after they were killed, or the
 * machine stopped. Returns: 0: it is as good as any; ERR_CORRUPT: FAULT got each fault. */
static int kinf_check_store(struct kinf *kinf, kinf_fault_fn *fault, void *arg)
{
	struct kinf_check check = {.fault = fault, .arg = arg};
	struct verify_options options = {.fault = kinf_note_fault, .arg = &check};
	struct verify_report report = {0};
	int r = verify_store(kinf->directory, &options, &report);

	if (r < 0 || report.faults == 0)
		return r;
	return err_say(ERR_CORRUPT,
		"the store '%s' was copied while its daemons wrote to it, or the machine stopped: "
		"%" PRIu64 " fault%s: %s; 'kinf verify' lists them",
		kinf->directory, report.faults, report.faults == 1 ? "" : "s, the first",
		check.first);
}

int kinf_open(const char *store, struct kinf **ret_kinf)
{
	int r = kinf_open_checked(store, NULL, NULL, false, ret_kinf);

	if (r == 0 && (*ret_kinf)->is_damaged) {
		r = kinf_result(*ret_kinf, ERR_CORRUPT);
		store_close(&(*ret_kinf)->store);
		return r;
	}
	return r;
}

int kinf_open_checked(
	const char *store, kinf_fault_fn *fault, void *arg, bool is_command, struct kinf **ret_kinf)
{
	struct kinf *kinf = calloc(1, sizeof(*kinf));

	*ret_kinf = kinf;
	if (!kinf)
		return kinf_result(NULL, err_set(-ENOMEM, "store"));
	kinf->magic = KINF_MAGIC;
	kinf->index_wait_ns = INDEX_WAIT_NS;
	int r = 0;
	if (!store)
		r = config_default_store(&kinf->directory);
	else if (!(kinf->directory = strdup(store)))
		r = err_set(-ENOMEM, "store '%s'", store);
	if (r == 0)
		r = store_open(kinf->directory,
			&(struct store_options){.unchecked = true, .check = is_command},
			&kinf->store);
	kinf->check = is_command;
	kinf->forks = forks_count();
	kinf->is_untrusted = r == 0 && store_is_untrusted(kinf->store);
	if (kinf->is_untrusted)
		r = kinf_check_store(kinf, fault, arg);
	kinf->is_damaged = r == ERR_CORRUPT && kinf->is_untrusted;
	if (kinf->is_damaged)
		(void)snprintf(kinf->damage, sizeof(kinf->damage), "%s", err_text(r));
	return kinf->is_damaged ? 0 : kinf_result(kinf, r);
}

void kinf_close(struct kinf **kinf)
{
	if (!kinf || !*kinf)
		return;
	struct kinf *k = TAKE(*kinf);

	CHECK_OBJ(k, KINF_MAGIC);
	if (last_error.kinf == k)
		last_error_set(NULL, ""); /* another handle may get this address */
	store_close(&k->store);
	free(k->directory);
	k->magic = 0;
	free(k);
}

const char *kinf_error(const struct kinf *kinf)
{
	return last_error.kinf == kinf ? last_error.text : "";
}

int kinf_set_check(struct kinf *kinf, int on)
{
	int r = kinf_alive(kinf);

	if (r < 0 || kinf->check == !!on)
		return r;
	struct store *store = NULL; /* if it can't be opened now, the present one stays */
	/* The directory as it was given may be relative, and the program be elsewhere by now. */
	r = store_open(home_path(store_home(kinf->store)),
		&(struct store_options){.check = on != 0, .unchecked = kinf->is_untrusted}, &store);
	if (r < 0)
		return kinf_result(kinf, r);
	store_close(&kinf->store);
	kinf->store = store;
	kinf->check = !!on;
	return kinf_result(kinf, r);
}

int kinf_is_copy(const struct kinf *kinf)
{
	return kinf && kinf->store && store_is_copy(kinf->store);
}

/* Writes why the store can't be read: a daemon has not made WHAT yet. */
static void snapshot_say_missing(
	const struct kinf *kinf, enum home_role role, const char *what, char *text, size_t size)
{
	const char *daemon = role == HOME_REFLECTOR ? "kinf-reflector" : "kinf-processor";
	CLEANUP(daemon_view_release) struct daemon_view view = {.page = NULL};

	daemon_view_take(store_home(kinf->store), role, &view);
	if (view.alive)
		(void)snprintf(text, size, "%s: %s runs, and has to make it", what, daemon);
	else
		(void)snprintf(text, size, "%s, and %s does not run: %s", what, daemon,
			daemon_view_remedy(&view));
}

/* Says why the snapshot was not taken: r is AGAIN. */
static int snapshot_result_again(struct kinf *kinf, const struct handled *handled)
{
	CLEANUP(journal_close) struct journal *journal = NULL;
	char text[STORE_MISMATCH_SIZE + 320], mismatch[STORE_MISMATCH_SIZE],
		what[STORE_MISMATCH_SIZE + 96];
	bool copy = store_is_copy(kinf->store);

	store_mismatch(kinf->store, mismatch, sizeof(mismatch));
	int r = handled->event || *mismatch
			? 0
			: journal_open_read(store_home(kinf->store), NULL, &journal);
	if (r == ERR_FORMAT) /* a newer version wrote it, and no index goes with it */
		return kinf_result(kinf, r);
	err_ignore(r < 0 ? r : 0, "it is said below");
	if (handled->event) {
		(void)snprintf(text, sizeof(text),
			"the index has not taken event %llu yet: kinf-processor is not running, or "
			"is behind; 'kinf status' shows it",
			(unsigned long long)handled->event);
	} else if (*mismatch && copy) {
		(void)snprintf(text, sizeof(text),
			"the index does not go with the journal: %s: copy the store again while "
			"its daemons are stopped, or by 'kinf backup'",
			mismatch);
	} else if (*mismatch) {
		(void)snprintf(what, sizeof(what),
			"the index does not go with the journal (%s), and there is no other yet",
			mismatch);
		snapshot_say_missing(kinf, HOME_PROCESSOR, what, text, sizeof(text));
	} else if (kinf->is_untrusted) {
		(void)snprintf(text, sizeof(text),
			"the copy has no index, by which objects are found: copy the whole store "
			"again; 'kinf dump journal' shows its journal");
	} else if (r == ERR_NO_STORE) {
		snapshot_say_missing(
			kinf, HOME_REFLECTOR, "the store has no journal yet", text, sizeof(text));
	} else {
		snapshot_say_missing(
			kinf, HOME_PROCESSOR, "the store has no index yet", text, sizeof(text));
	}
	last_error_set(kinf, text);
	return AGAIN;
}

/* Renews the snapshot, and waits for the calling thread's events in the index. */
static int snapshot_renew_handled(struct kinf_snapshot *snapshot, const struct handled *handled)
{
	if (!handled->event)
		return snapshot_renew(snapshot->snapshot);
	return snapshot_renew_at(snapshot->snapshot, handled->journal, handled->event,
		snapshot->kinf->index_wait_ns);
}

static int snapshot_open_at(
	struct kinf *kinf, const struct handled *handled, struct kinf_snapshot **ret_snapshot)
{
	int r = kinf_alive(kinf);

	if (r < 0)
		return r;
	struct kinf_snapshot *s = calloc(1, sizeof(*s));
	if (!s)
		return kinf_result(kinf, err_set(-ENOMEM, "snapshot"));
	s->magic = KINF_SNAPSHOT_MAGIC;
	s->kinf = kinf;
	s->state = 1; /* there are no sets of it */
	r = snapshot_open(kinf->store, &s->snapshot);
	if (r == 0 && snapshot_taken(s->snapshot) < handled->event)
		r = snapshot_renew_handled(s, handled);
	s->held = r == 0;
	if (r != 0)
		kinf_snapshot_close(&s);
	else
		*ret_snapshot = s;
	return r == AGAIN ? snapshot_result_again(kinf, handled) : kinf_result(kinf, r);
}

int kinf_snapshot_open(struct kinf *kinf, struct kinf_snapshot **ret_snapshot)
{
	const struct handled handled = handled_get();

	return snapshot_open_at(kinf, &handled, ret_snapshot);
}

_Static_assert(sizeof(struct store_state) == 48, "compared as bytes: no padding");

/* Takes the state after a renewal with the result R. */
static int snapshot_renewed(struct kinf_snapshot *snapshot, int r, const struct handled *handled)
{
	struct snapshot *s = snapshot->snapshot;

	snapshot->held = r == 0;
	if (r == GONE) {
		last_error_set(
			snapshot->kinf, "the event is of another journal than the store has now");
		return r;
	}
	if (r != 0)
		return r == AGAIN ? snapshot_result_again(snapshot->kinf, handled)
				  : kinf_result(snapshot->kinf, r);
	/* Feed sets and the past are of another state if anything was committed. `taken` is
	 * compared because LMDB may give a newer tree than the transaction's number says. */
	struct store_state now = {
		.index_txn = txn_id(snapshot_index_txn(s)),
		.journal_txn = txn_id(snapshot_journal_txn(s)),
		.taken = snapshot_taken(s),
		.index_generation = index_generation(snapshot_index(s)),
		.journal_generation = journal_generation(snapshot_journal(s)),
	};
	memcpy(now.journal, snapshot_uuid(s), sizeof(now.journal));
	if (memcmp(&now, &snapshot->store, sizeof(now)) != 0) {
		as_of_free(&snapshot->past);
		snapshot->state++;
		snapshot->store = now;
	}
	return 0;
}

static int snapshot_renew_to(struct kinf_snapshot *snapshot, const struct handled *handled)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	int r = kinf_alive(snapshot->kinf);

	if (r < 0)
		return r;
	snapshot->taken_as++;
	return snapshot_renewed(snapshot, snapshot_renew_handled(snapshot, handled), handled);
}

int kinf_snapshot_renew(struct kinf_snapshot *snapshot)
{
	const struct handled handled = handled_get();

	return snapshot_renew_to(snapshot, &handled);
}

int kinf_snapshot_take(struct kinf *kinf, struct kinf_snapshot **snapshot)
{
	static const struct handled nothing;

	return *snapshot ? snapshot_renew_to(*snapshot, &nothing)
			 : snapshot_open_at(kinf, &nothing, snapshot);
}

int kinf_snapshot_renew_at(struct kinf_snapshot *snapshot, uint64_t event)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	const struct handled handled = {.event = event};
	int r = kinf_alive(snapshot->kinf);

	if (r < 0)
		return r;
	snapshot->taken_as++;
	r = event ? snapshot_renew_at(
			    snapshot->snapshot, NULL, event, snapshot->kinf->index_wait_ns)
		  : snapshot_renew(snapshot->snapshot);
	return snapshot_renewed(snapshot, r, &handled);
}

uint64_t kinf_handled_event(void)
{
	return handled_get().event;
}

int kinf_result_of(struct kinf_snapshot *snapshot, int code)
{
	if ((code == GONE || code == AGAIN) && *snapshot->past_reason)
		return kinf_outcome(snapshot->kinf, code, snapshot->past_reason);
	return kinf_result(
		snapshot->kinf, snapshot->held ? snapshot_result(snapshot->snapshot, code) : code);
}

int kinf_snapshot_reset(struct kinf_snapshot *snapshot)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	int r = kinf_alive(snapshot->kinf);

	if (r < 0)
		return r;
	snapshot->taken_as++;
	snapshot->held = false;
	return kinf_result(snapshot->kinf, snapshot_reset_pins(snapshot->snapshot));
}

int kinf_snapshot_check(struct kinf_snapshot *snapshot)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	int r = kinf_held(snapshot);

	return r < 0 ? r : kinf_result(snapshot->kinf, snapshot_check_pins(snapshot->snapshot));
}

void kinf_snapshot_close(struct kinf_snapshot **snapshot)
{
	if (!snapshot || !*snapshot)
		return;
	struct kinf_snapshot *s = TAKE(*snapshot);

	CHECK_OBJ(s, KINF_SNAPSHOT_MAGIC);
	feed_sets_release(s);
	as_of_free(&s->past);
	if (s->snapshot)
		snapshot_close(&s->snapshot);
	s->magic = 0;
	free(s);
}

uint64_t kinf_snapshot_event(const struct kinf_snapshot *snapshot)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	return !snapshot->held      ? 0
	       : snapshot->at_event ? snapshot->at_event
				    : snapshot_taken(snapshot->snapshot);
}
