/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of the readers' protocol against the reuse of pages (store/pins/pin_page.h), run
 * exhaustively: one writer and two readers, in each order of their steps, with a kill of any of
 * them at any step. Each process has a store buffer. Stores reach memory in any order allowed by
 * its barriers, weaker than x86 and as weak for stores as arm64.
 *
 * A state is a committed transaction. The writer destroys as many as LMDB may: a transaction W with
 * the floor F reuses the pages freed by transactions below F and below W - 1. So the states below
 * the smaller of the two, minus one, are gone. The model fails if a reader reads a lost state, or
 * has copied half of a meta page. Reader 0 may have no room for a pin file, and hold all states by
 * a mark (store/pins/pin_file.h). The kernel keeps the mark, so it is in memory at once. The last
 * step of a writer may be to close the page, because a copy has taken the file's place: if it sees
 * no pin, all states are gone. No process writes the file after that. The mutants leave out one
 * part of the protocol each, and the model must find out.
 */
#include <criterion/logging.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/unit/unit.h"

#define BUFFER    4
#define TABLE     ((size_t)1 << 23)
#define STACK_MAX ((size_t)1 << 21)
#define MARK      0xff
#define CLOSED    0xff /* in OLDEST */
#define CLOSING   13   /* the writer's first step of it */
#define ALL       0xfe

enum variable {
	COMMITTED,
	BEGAN,
	OLDEST,
	FLOOR,
	META_A,
	META_B = META_A + 2,
	META_ID = META_B + 2,
	PIN = META_ID + 2,
	VARIABLES = PIN + 2,
	BARRIER = 0xff
};
enum { WRITER = 2, PROCESSES = 3 };

enum mutant {
	CORRECT,
	NO_READER_FENCE, /* the pin may reach memory after the check */
	NO_WRITER_FENCE, /* the pins are read before `oldest` is in memory */
	NO_CHECK,        /* the reader does not look at `oldest` after it has pinned */
	NO_BEGAN,        /* the reader takes a half-written meta page */
	BEGAN_UNORDERED, /* the writer does not order `began` before the meta page */
	/* a starting writer trusts `oldest`, never true perhaps */
	FLOOR_IS_OLDEST,
	FLOOR_FORGOTTEN, /* a starting writer keeps the newest state only */
	BEGAN_LOWERED,   /* a starting writer sets `began` back */
	MARK_IGNORED,    /* the writer does not look for the mark */
	CLOSED_UNFENCED, /* the pins are read before the page is seen to be closed */
	CLOSED_IGNORED,  /* the reader takes a snapshot of a closed page */
	MUTANTS,
};

struct process {
	uint8_t step, n, p, t, a, b, meta, left, kills, alive;
	uint8_t variable[BUFFER], value[BUFFER];
};

struct world {
	uint8_t memory[VARIABLES];
	uint8_t gone; /* states up to this one are destroyed */
	uint8_t floor, goal,
		least; /* of the writer: LMDB's, the one published, the least pin seen */
	struct process process[PROCESSES];
};

static struct {
	uint64_t *seen;
	size_t n_seen, n_stack;
	struct world *stack;
	enum mutant mutant;
	bool has_mark; /* reader 0 */
	bool closes;   /* the writer, at its end */
	bool coarse;   /* with two readers: a meta page is written, and copied, in one step */
	uint8_t gone;  /* the most */
	const char *fault;
} run;

static uint64_t hash(const struct world *w)
{
	uint64_t words[(sizeof(*w) + 7) / 8] = {0}, h = 0x9e3779b97f4a7c15u;

	memcpy(words, w, sizeof(*w));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		h = (h ^ words[i]) * 0xbf58476d1ce4e5b9u, h ^= h >> 32;
	return h ? h : 1;
}

static void visit(const struct world *w)
{
	uint64_t h = hash(w);
	size_t i = h & (TABLE - 1);

	for (; run.seen[i]; i = (i + 1) & (TABLE - 1))
		if (run.seen[i] == h)
			return;
	run.seen[i] = h;
	cr_assert_lt(++run.n_seen, TABLE / 8 * 7, "the model has too many states");
	cr_assert_lt(run.n_stack, STACK_MAX);
	run.stack[run.n_stack++] = *w;
}

/* ---- memory ------------------------------------------------------------- */

static uint8_t load(const struct world *w, int process, int variable)
{
	const struct process *p = &w->process[process];

	for (int i = p->n; i-- > 0;)
		if (p->variable[i] == variable)
			return p->value[i];
	return w->memory[variable];
}

static bool room(const struct world *w, int process, int stores)
{
	return w->process[process].n + stores <= BUFFER;
}

static void store(struct world *w, int process, int variable, uint8_t value)
{
	struct process *p = &w->process[process];

	if (variable == BARRIER && !p->n) /* an empty buffer needs no barrier */
		return;
	p->variable[p->n] = (uint8_t)variable;
	p->value[p->n++] = value;
}

static void take_out(struct process *p, int at)
{
	p->n--;
	for (int i = at; i < p->n; i++) {
		p->variable[i] = p->variable[i + 1];
		p->value[i] = p->value[i + 1];
	}
	p->variable[p->n] = p->value[p->n] = 0;
}

/* Lets one store reach memory: any without a barrier or a store to the same place before it. */
static void visit_flushes(const struct world *w, int process)
{
	const struct process *p = &w->process[process];

	for (int i = 0; i < p->n && p->variable[i] != BARRIER; i++) {
		bool first = true;
		for (int j = 0; j < i; j++)
			first &= p->variable[j] != p->variable[i];
		if (!first)
			continue;
		struct world next = *w;
		next.memory[p->variable[i]] = p->value[i];
		take_out(&next.process[process], i);
		while (next.process[process].n && next.process[process].variable[0] == BARRIER)
			take_out(&next.process[process], 0);
		visit(&next);
	}
}

static void flush(struct world *w, int process)
{
	struct process *p = &w->process[process];

	for (; p->n; take_out(p, 0))
		if (p->variable[0] != BARRIER)
			w->memory[p->variable[0]] = p->value[0];
}

/* A killed process has retired its stores: they are in memory before its death is known. */
static void die(struct world *w, int process)
{
	struct process *p = &w->process[process];
	uint8_t left = p->left, kills = (uint8_t)(p->kills - 1);
	bool closing = process == WRITER && p->step >= CLOSING;

	flush(w, process);
	*p = (struct process){.left = closing ? 0 : left, .kills = kills};
}

/* ---- the reader --------------------------------------------------------- */

/* The first two steps of reader 0 without a pin file. */
static void step_marker(struct world *w, int me)
{
	struct process *p = &w->process[me];

	if (p->step == 1)
		p->p = load(w, me, COMMITTED);
	else
		w->memory[PIN + me] = MARK;
	p->step++;
}

static void step_reader(struct world *w, int me)
{
	struct process *p = &w->process[me];

	if (run.has_mark && me == 0 && p->step < 2) {
		step_marker(w, me);
		return;
	}
	switch (p->step) {
	case 0:
		p->p = load(w, me, COMMITTED);
		break;
	case 1:
		store(w, me, PIN + me, p->p);
		break;
	case 2: /* the fence: visit_steps() waits for an empty buffer */
		break;
	case 3:
		if (load(w, me, OLDEST) == CLOSED && run.closes) {
			if (run.mutant == CLOSED_IGNORED)
				break;
			p->left = 0; /* it goes to the copy */
			return;
		}
		if (load(w, me, OLDEST) > p->p && run.mutant != NO_CHECK) {
			p->step = 0;
			return;
		}
		break;
	case 4:
		p->t = load(w, me, META_ID);
		break;
	case 5: /* LMDB chooses the newer page, */
		p->meta = load(w, me, META_ID + 1) > p->t;
		break;
	case 6: /* reads its number again, */
		p->t = load(w, me, META_ID + p->meta);
		p->a = load(w, me, META_A + p->meta);
		break;
	case 7: /* and copies it */
		p->b = load(w, me, META_B + p->meta);
		break;
	case 8:
		if (load(w, me, BEGAN) > p->t + 1 && run.mutant != NO_BEGAN) {
			p->step = 4;
			p->t = p->a = p->b = p->meta = 0;
			return;
		}
		if (p->a != p->t || p->b != p->t)
			run.fault = "a torn meta page was taken";
		if (p->t < p->p)
			run.fault = "the state is older than the pin";
		p->a = p->b = p->meta = 0;
		break;
	case 9: /* reading; visit_steps() has two ends of it */
		p->step = 0;
		p->left--;
		p->t = p->p = 0;
		return;
	default:
		abort();
	}
	p->step++;
}

/* ---- the writer --------------------------------------------------------- */

/* The steps from CLOSING on. */
static void step_closing(struct world *w)
{
	struct process *p = &w->process[WRITER];

	switch (p->step) {
	case CLOSING:
		store(w, WRITER, OLDEST, CLOSED);
		w->goal = 1;
		break;
	case CLOSING + 1: /* the fence */
		break;
	case CLOSING + 2:
	case CLOSING + 4:
		p->p = load(w, WRITER, PIN + (p->step - CLOSING) / 2 - 1);
		break;
	case CLOSING + 3:
	case CLOSING + 5:
		if (p->p && w->process[(p->step - CLOSING) / 2 - 1].alive)
			w->goal = 0;
		p->p = 0;
		break;
	case CLOSING + 6:
		if (w->goal)
			w->gone = ALL;
		p->left = 0;
		p->step = w->goal = 0;
		return;
	default:
		abort();
	}
	p->step++;
}

static void step_writer(struct world *w)
{
	struct process *p = &w->process[WRITER];
	uint8_t next = (uint8_t)(load(w, WRITER, COMMITTED) + 1), most;

	if (p->step >= CLOSING) {
		step_closing(w);
		return;
	}
	switch (p->step) {
	case 0:
		w->goal = w->least = load(w, WRITER, COMMITTED);
		store(w, WRITER, OLDEST, w->goal);
		break;
	case 1: /* the fence */
		break;
	case 2:
	case 4: /* reads a pin; asks for the lock of its file afterwards */
		p->p = load(w, WRITER, PIN + p->step / 2 - 1);
		break;
	case 3:
	case 5:
		if (p->p == MARK && w->process[p->step / 2 - 1].alive && run.mutant != MARK_IGNORED)
			w->least = w->floor;
		else if (p->p != MARK && p->p >= w->floor && p->p < w->least &&
			 w->process[p->step / 2 - 1].alive)
			w->least = p->p;
		p->p = 0;
		break;
	case 6:
		if (w->least < w->goal)
			store(w, WRITER, OLDEST, w->least);
		store(w, WRITER, FLOOR, w->least);
		break;
	case 7: /* begins the transaction: LMDB's reusable pages are overwritten */
		w->floor = w->least;
		w->goal = w->least = 0;
		most = w->floor < next - 1 ? w->floor : (uint8_t)(next - 1);
		if (most > w->gone + 2)
			w->gone = (uint8_t)(most - 2);
		break;
	case 8:
		store(w, WRITER, BEGAN, next);
		if (run.mutant != BEGAN_UNORDERED)
			store(w, WRITER, BARRIER, 0);
		break;
	case 9:
		store(w, WRITER, META_A + (next & 1), next);
		break;
	case 10:
		store(w, WRITER, META_B + (next & 1), next);
		break;
	case 11:
		store(w, WRITER, BARRIER, 0);
		store(w, WRITER, META_ID + (next & 1), next);
		break;
	case 12:
		store(w, WRITER, BARRIER, 0);
		store(w, WRITER, COMMITTED, next);
		p->left--;
		p->step = run.closes && p->left == 0 ? CLOSING : 0;
		p->left += p->step == CLOSING;
		return;
	default:
		abort();
	}
	p->step++;
}

static void start_writer(struct world *w)
{
	uint8_t newest = w->memory[META_ID] > w->memory[META_ID + 1] ? w->memory[META_ID]
								     : w->memory[META_ID + 1];

	w->process[WRITER].alive = 1;
	w->process[WRITER].step = 0;
	w->goal = w->least = 0;
	w->memory[COMMITTED] = newest;
	w->floor = w->memory[FLOOR];
	if (run.mutant == FLOOR_IS_OLDEST)
		w->floor = w->memory[OLDEST];
	if (run.mutant == FLOOR_FORGOTTEN)
		w->floor = newest;
	if (run.mutant == BEGAN_LOWERED)
		w->memory[BEGAN] = newest;
}

/* ---- all orders --------------------------------------------------------- */

static bool can_step(const struct world *w, int process)
{
	const struct process *p = &w->process[process];
	bool fence = process != WRITER        ? p->step == 2 && run.mutant != NO_READER_FENCE
		     : p->step == CLOSING + 1 ? run.mutant != CLOSED_UNFENCED
					      : p->step == 1 && run.mutant != NO_WRITER_FENCE;

	return p->alive && p->left && room(w, process, 2) && !(fence && p->n);
}

static void visit_steps(const struct world *w, int process)
{
	const struct process *p = &w->process[process];
	struct world next = *w;

	visit_flushes(w, process);
	if (p->alive && p->kills) {
		die(&next, process);
		visit(&next);
	}
	next = *w;
	if (!p->alive && p->left) {
		next.process[process].alive = 1;
		if (process == WRITER)
			start_writer(&next);
		else
			next.memory[PIN + process] = 0; /* the slot of another file */
		visit(&next);
		return;
	}
	if (!can_step(w, process))
		return;
	if (process == WRITER) {
		do {
			step_writer(&next);
			if (run.coarse && next.process[WRITER].step > 8 &&
				next.process[WRITER].step < CLOSING)
				flush(&next, WRITER);
		} while (run.coarse && next.process[WRITER].step > 8 &&
			 next.process[WRITER].step < CLOSING);
		visit(&next);
		return;
	}
	do
		step_reader(&next, process);
	while (run.coarse && next.process[process].step > 4 && next.process[process].step < 9);
	visit(&next); /* after reading: a renewal leaves the pin to the next snapshot */
	if (p->step == 9 && room(&next, process, 1)) {
		if (run.has_mark && process == 0)
			next.memory[PIN] = 0;
		else
			store(&next, process, PIN + process, 0);
		visit(&next);
	}
}

static const char *explore(enum mutant mutant, bool two, bool has_mark, bool closes)
{
	struct world w = {.memory = {[COMMITTED] = 1,
				  [BEGAN] = 1,
				  [OLDEST] = 1,
				  [FLOOR] = 1,
				  [META_ID + 1] = 1,
				  [META_A + 1] = 1,
				  [META_B + 1] = 1},
		.floor = 1};

	const char *deeper = getenv("KINF_PINS_COMMITS"); /* in `make check-all` */
	int commits = deeper ? (int)strtol(deeper, NULL, 10) : 4;

	run.mutant = mutant;
	run.coarse = two;
	run.has_mark = has_mark;
	run.closes = closes;
	run.fault = NULL;
	run.n_seen = run.n_stack = run.gone = 0;
	run.seen = calloc(TABLE, sizeof(*run.seen));
	run.stack = malloc(STACK_MAX * sizeof(*run.stack));
	cr_assert(run.seen && run.stack);
	for (int i = 0; i < PROCESSES; i++)
		w.process[i] = (struct process){.left = two ? 1 : 2, .kills = 1, .alive = 1};
	w.process[WRITER].left = closes ? 2 : (uint8_t)(two ? commits - 1 : commits);
	if (!two)
		w.process[1] = (struct process){0};
	visit(&w);
	while (run.n_stack && !run.fault) {
		struct world now = run.stack[--run.n_stack];
		run.gone = now.gone > run.gone ? now.gone : run.gone;
		for (int i = 0; i < WRITER; i++)
			if (now.process[i].step == 9 && now.process[i].t <= now.gone)
				run.fault = "a state was read after its pages were reused";
		for (int i = 0; i < PROCESSES; i++)
			visit_steps(&now, i);
	}
	free(run.seen);
	free(run.stack);
	return run.fault;
}

Test(pins_model, no_order_of_steps_and_no_kill_breaks_a_snapshot, .timeout = 120)
{
	for (int i = 0; i < 8; i++) {
		bool two = i & 1, has_mark = i & 2, closes = i & 4;
		const char *fault = explore(CORRECT, two, has_mark, closes);

		cr_assert_null(fault, "%s", fault);
		cr_assert_gt(run.gone, 0, "no state was ever destroyed");
		cr_log_info("%s%s%s: %zu states", two ? "two readers" : "one reader",
			has_mark ? ", one without a pin file" : "",
			closes ? ", the file is replaced" : "", run.n_seen);
	}
}

Test(pins_model, each_part_of_the_protocol_is_needed, .timeout = 120)
{
	for (enum mutant mutant = CORRECT + 1; mutant < MUTANTS; mutant++) {
		bool has_mark = mutant == MARK_IGNORED,
		     closes = mutant == CLOSED_UNFENCED || mutant == CLOSED_IGNORED;
		const char *fault = explore(mutant, false, has_mark, closes);
		if (!fault)
			fault = explore(mutant, true, has_mark, closes);
		cr_assert_not_null(fault, "mutant %d: the model does not notice", mutant);
	}
}
