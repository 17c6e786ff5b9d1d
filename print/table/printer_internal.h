/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internal header of the printer group: the rows of kinds_*.c for the columns of built-in
 * kinds, and the functions to read an object for a cell.
 *
 * A cell is made by its `how` of one or two field paths. Only a cell beyond such rows (the status
 * of a pod) has a function.
 */
#ifndef PRINT_TABLE_PRINTER_INTERNAL_H
#define PRINT_TABLE_PRINTER_INTERNAL_H

#include "common/bytes.h"
#include "common/err.h"
#include "common/value/path_set.h"
#include "common/value/value.h"
#include "print/table/age.h"
#include "print/table/printer.h"

#define PRINTER_FIELDS 128 /* a power of two */

/*
 * The fields for the cells of one kind. Their paths are learned from the first objects: a field
 * asked for once is found in all later objects by the one walk of SET.
 */
struct printer_fields {
	struct path_set set;
	size_t n_walked; /* paths known to the walk over the current object */
	size_t n;
	struct printer_learned {
		const char *path,
			*rest; /* the steps after its keys, which the walk does not know */
		size_t number; /* in SET */
	} learned[PRINTER_FIELDS];
};

/* The containers' part of a pod's cells (kinds_pods.c). */
struct pod_summary {
	bool made;
	struct bytes reason; /* "Running", or a container's reason to wait */
	const char *prefix;  /* before the reason: "Init:" */
	int64_t number;      /* after the reason, if it ends with a colon */
	int64_t ready, total, restarts;
	int64_t done, init_total; /* of "Init:1/3", if progress is set */
	bool progress;
	struct bytes restarted; /* when a container last ended; empty: never */
};

struct printer_row {
	struct value object;
	const struct value *second;    /* what $ means in a path; NULL: nothing */
	struct bytes key;              /* what @key means: of a member of a map */
	struct printer_fields *fields; /* found in OBJECT; NULL: each is searched for */
	const char *of;                /* `other` of the cell, for its function */
	struct pod_summary pod;
	uint64_t now_ns;
	struct buf *text; /* of all cells of the row */
	int error;        /* the first one of a read; later ones change nothing */
	unsigned numbers; /* in scratch, used in turn */
	char scratch[4][VALUE_SCRATCH];
};

/* Appends the text of a cell to ROW->text. Returns its type. */
typedef enum printer_cell_type printer_fn(struct printer_row *row);

enum printer_how {
	HOW_TEXT,    /* the text of the field; else `none` */
	HOW_INTEGER, /* the number at the field; else `none`, or 0 without it */
	HOW_BOOLEAN, /* the boolean at the field; else `none` */
	HOW_COUNT,   /* the number of items of the map or list, or of two of them */
	HOW_AGE,     /* the time since the field; else `none` */
	HOW_WORDS,   /* the template `path` */
	HOW_EACH,    /* the template `other` for each item of a list, with commas; else `none` */
	HOW_SOME,    /* the same for its first three items, " + N more..." for the others */
	HOW_FUNCTION
};

struct printer_cell_row {
	struct printer_column column;
	enum printer_how how;
	const char *path, *other; /* as in a template */
	const char *none;
	printer_fn *fn;
};

struct printer_kind_row {
	const char *group, *resource;
	const struct printer_cell_row *cells;
	size_t n, n_extra; /* columns; cells after them */
	const char *order; /* printer_order() */
};

/* Tables of kinds, each ended by a row without a resource. */
extern const struct printer_kind_row printer_kinds_pods[], printer_kinds_core[],
	printer_kinds_work[], printer_kinds_network[], printer_kinds_storage[],
	printer_kinds_access[], printer_kinds_other[];

/* ---- common rows of kinds ---------------------------------------------------- */

#define CELL(name_, type_, priority_, ...) \
	{ \
		{name_, type_, "", priority_}, __VA_ARGS__ \
	}
/* A column that people know the object by. */
#define CELL_AS_NAME(name_, priority_, ...) \
	{ \
		{name_, "string", "name", priority_}, __VA_ARGS__ \
	}
#define CELL_NAME    CELL_AS_NAME("Name", 0, HOW_TEXT, "metadata.name")
#define CELL_CREATED CELL("Created At", "date", 0, HOW_TEXT, "metadata.creationTimestamp")
#define CELL_AGE \
	CELL("Age", "string", 0, HOW_AGE, "metadata.creationTimestamp", .none = "<unknown>")
#define CELL_TEXT(name_, path_, none_) CELL(name_, "string", 0, HOW_TEXT, path_, .none = none_)
#define CELL_WIDE(name_, path_, none_) CELL(name_, "string", 1, HOW_TEXT, path_, .none = none_)
/* TYPE is the API server's of the column, string for some numbers. */
#define CELL_INTEGER(name_, type_, path_) CELL(name_, type_, 0, HOW_INTEGER, path_)

#define CELL_NUMBER(name_, path_) CELL(name_, "string", 0, HOW_INTEGER, path_, .none = "<none>")

#define CELL_COUNT(name_, type_, path_, other_) CELL(name_, type_, 0, HOW_COUNT, path_, other_)
#define CELL_BOOLEAN(name_, path_, none_) \
	CELL(name_, "boolean", 0, HOW_BOOLEAN, path_, .none = none_)
#define CELL_CONTAINERS(priority_, pod_) \
	CELL("Containers", "string", priority_, HOW_EACH, pod_ ".spec.containers", "{name}"), \
		CELL("Images", "string", priority_, HOW_EACH, pod_ ".spec.containers", "{image}")
#define CELL_SELECTOR(path_, form_) \
	CELL("Selector", "string", 1, HOW_WORDS, "{" path_ ":" form_ "}")
#define CELL_FUNCTION(name_, type_, priority_, fn_) \
	CELL(name_, type_, priority_, HOW_FUNCTION, .fn = fn_)
#define CELL_WORDS(name_, template_) CELL(name_, "string", 0, HOW_WORDS, template_)
/* Several cells share the function, which finds OF in row->of. */
#define CELL_FUNCTION_OF(name_, priority_, fn_, of_) \
	CELL(name_, "string", priority_, HOW_FUNCTION, .other = of_, .fn = fn_)
/* The old annotation counts before the field. */
#define STORAGE_CLASS \
	"[{metadata.annotations[volume.beta.kubernetes.io/" \
	"storage-class]}|{spec.storageClassName}]"
/* A kind with these cells, or with those of an array for several kinds. */
#define KIND(group_, resource_, ...) \
	{ \
		.group = group_, .resource = resource_, \
		.cells = (const struct printer_cell_row[]){__VA_ARGS__}, \
		.n = sizeof((const struct printer_cell_row[]){__VA_ARGS__}) / \
		     sizeof(struct printer_cell_row) \
	}
#define KIND_OF(group_, resource_, cells_) \
	{ \
		.group = group_, .resource = resource_, .cells = cells_, .n = ARRAY_SIZE(cells_) \
	}

/* ---- reading an object -------------------------------------------------- */

/* Finds the value at PATH, as in a template; in the object itself PATH is a lasting text unless
 * FIELDS is NULL. A damaged object sets ROW->error and has no such value. Returns whether it is
 * there. */
bool printer_find(
	struct printer_row *row, const struct value *in, const char *path, struct value *ret_value);

/* Returns the text of the scalar at PATH; empty if there is none. Texts of numbers last for three
 * further ones. */
struct bytes printer_text(struct printer_row *row, const struct value *in, const char *path);

/* Returns the integer at PATH, or 0. */
int64_t printer_integer(struct printer_row *row, const struct value *in, const char *path);

/* Returns whether the text at PATH is TEXT. */
bool printer_is(
	struct printer_row *row, const struct value *in, const char *path, const char *text);

/* Returns whether the boolean at PATH is true. */
bool printer_is_true(struct printer_row *row, const struct value *in, const char *path);

/* Begins a walk over the list or map at PATH, perhaps absent, and gives the next item. */
struct value_iter printer_items(struct printer_row *row, const struct value *in, const char *path);
bool printer_next(struct printer_row *row, struct value_iter *iter, struct value *ret_item);

/* The items of a list in its order, or of a map in the order of keys. */
struct printer_list {
	struct printer_item {
		struct bytes key;
		struct value value;
	} * items;
	size_t n, room;
};
/* ORDER: the items of a list are sorted by the text at this path; NULL: not. */
void printer_list_at(struct printer_row *row, const struct value *in, const char *path,
	const char *order, struct printer_list *ret_list);
void printer_list_release(struct printer_list *list);

/* Returns whether nothing is at PATH, or an empty text, list or map. */
bool printer_is_empty(struct printer_row *row, const struct value *in, const char *path);

/* Keeps R, if it is the first error. */
void printer_note(struct printer_row *row, int r);

/* ---- writing a cell ----------------------------------------------------- */

enum printer_cell_type printer_put(struct printer_row *row, const char *text);
enum printer_cell_type printer_put_bytes(struct printer_row *row, struct bytes text);

/* Appends the time since the RFC 3339 text at PATH, or NONE. */
void printer_put_since(
	struct printer_row *row, const struct value *in, const char *path, const char *none);

/* Appends the map at PATH as KEY=VALUE,... in the order of these texts, or <none>. */
void printer_put_labels(struct printer_row *row, const struct value *in, const char *path);

/* Appends the LabelSelector at PATH in the grammar of -l, or <none>. */
void printer_put_selector(struct printer_row *row, const struct value *in, const char *path);

/* Forms of fields (words.c) with cells of their own: the roles of a node with these labels; the
 * addresses at PATH of a load balancer, each once, in order; the access modes at PATH. */
void printer_put_roles(struct printer_row *row, const struct value *in, const char *path);
void printer_put_balancer(struct printer_row *row, const struct value *in, const char *path);
void printer_put_access_modes(struct printer_row *row, const struct value *in, const char *path);

/* Appends TEXT, after a comma unless the cell, begun at START, is still empty. */
void printer_put_more(struct printer_row *row, size_t start, struct bytes text);

/* Appends the N texts in order, each once, with commas. Changes their order. */
void printer_put_sorted(struct printer_row *row, struct bytes *texts, size_t n);

#define PRINTER_SHOWN 3 /* items of a list */
/* Ends a list of N items in the cell begun at START; NONE: it is empty. */
enum printer_cell_type printer_put_rest(
	struct printer_row *row, size_t start, size_t n, const char *none);

/* Appends each line of TEXT between BEFORE and AFTER, cut after MAX bytes. */
void printer_put_lines(struct printer_row *row, struct bytes text, const char *before,
	const char *after, size_t max);

/* ---- templates (words.c) ------------------------------------------------ */

/*
 * `{PATH}` in a template is the text of the field at PATH, names separated by dots; `{PATH|TEXT}`
 * is TEXT if it is absent or empty; `{PATH:FORM}` has another form than its text, `{PATH:if}` none.
 * `[PART]` is left out if the first field in it is absent or empty, `[PART|PART...]` is the first
 * of them that is not; one without a field never is. A path begins at the part of the object that
 * is printed; `@` is that part itself, `@key` its key in a map, and `$` before a path means the
 * second part (the status of a container).
 *
 * A path also has steps in brackets: `list[KEY=TEXT]`, the first item with that member; `list[0]`,
 * an item by its number, a digit; `map[KEY=TEXT]`, the map itself if it has that member;
 * `map[KEY]`, for a KEY with dots. KEY or TEXT may be `@key`.
 *
 *	"{kind:lower}[/{name}]", "Replicas:\t{status.replicas|0} current"
 *	"[{status.conditions[type=Ready][status=True]:if}Ready|NotReady]"
 */
void printer_put_words(struct printer_row *row, const struct value *in, const char *template);
/* Does so unless the first field in it is absent or empty. Returns whether it did. */
bool printer_put_some(struct printer_row *row, const struct value *in, const char *template);
/* Does so for each item of the list at PATH. Returns how many there are. */
size_t printer_put_each(struct printer_row *row, const struct value *in, const char *path,
	const char *template, const char *between);

#endif
