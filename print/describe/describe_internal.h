/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internal header of the describe group: the lines by which kinds_*.c lay out a kind, and
 * the functions by which a line that no template can express reads its object.
 *
 * A line is a template. `{PATH}` is the text of the field at PATH, names separated by dots;
 * `{PATH|TEXT}` is TEXT if it is absent or empty; `{PATH:FORM}` has another form than its text.
 * A path begins at the part that is
 * described: the object, or the item of the list that `each` names. `@` is that part itself,
 * `@key` its key in a map, and `$` before a path means the second part (the status of a
 * container).
 *
 *	{.line = "Replicas:\t{status.replicas|0} current / {spec.replicas|0} desired"},
 *	{.when = "status.conditions", .line = "Conditions:\n  Type\tStatus"},
 *	{.each = "status.conditions", .level = 1, .line = "{type} \t{status} "},
 *
 * Tabs are aligned at the end (tabstops_put()).
 */
#ifndef PRINT_DESCRIBE_DESCRIBE_INTERNAL_H
#define PRINT_DESCRIBE_DESCRIBE_INTERNAL_H

#include "common/buf.h"
#include "print/describe/describe.h"
#include "print/table/printer_internal.h"

struct describe {
	struct printer_row row; /* the object, the text, the clock, the error */
	const struct describe_object *object;
	struct value here, second; /* the described part, and another one beside it */
	bool has_second;
	struct value container; /* of a variable */
	struct bytes key;       /* of `here`, if it is the member of a map */
	int level;              /* of the lines, two blanks each */
	/* before the names of containers and volumes: a blank in a template of pods */
	const char *margin;
	int error; /* of other reads: sticky */
};

/* Appends lines for the part d->here. */
typedef void describe_fn(struct describe *d);

struct describe_line {
	const char *when;   /* only if something is at this path, and it is not empty */
	const char *unless; /* only if nothing is there, or it is empty */
	/* the line for each item of the list or map (in the order of keys) at this path */
	const char *each;
	const char *in;   /* `lines` and `fn` are for the part at this path, if it is there */
	int level;        /* deeper than the lines around it */
	const char *line; /* the template; "": an empty line */
	const struct describe_line *lines; /* after `line`; the table ends with END_OF_LINES */
	describe_fn *fn;                   /* after those */
};
#define END_OF_LINES \
	{ \
		.level = -1 \
	}
#define LINES (const struct describe_line[])

/* Lines of many kinds. */
#define LINES_NAME \
	{.line = "Name:\t{metadata.name}"}, \
	{ \
		.line = "Namespace:\t{metadata.namespace}" \
	}
#define LINES_LABELS \
	{.line = "Labels:\t{metadata.labels:labels}"}, \
	{ \
		.line = "Annotations:\t{metadata.annotations:annotations}" \
	}

struct describe_kind {
	const char *resource; /* "deployments.apps" */
	const struct describe_line *lines;
};
/* Tables of kinds, each ended by one without a resource. */
extern const struct describe_kind describe_kinds_pods[], describe_kinds_work[],
	describe_kinds_core[], describe_kinds_storage[], describe_kinds_network[],
	describe_kinds_nodes[];

/* Common lines of kinds. */
extern const struct describe_line describe_pod_template[]; /* of a spec */
extern const struct describe_line describe_resources[];    /* limits, requests */
extern const struct describe_line describe_controller[];   /* its controlling owner */
void describe_volume_source(
	struct describe *d);           /* `here` is a volume, or the spec of a PersistentVolume */
void describe_any(struct describe *d); /* all fields of an object without a table */
void describe_fields(struct describe *d); /* all fields of d->here */
void describe_events(struct describe *d);

/* ---- the engine --------------------------------------------------------- */

/* Appends LINES for d->here. */
void describe_lines(struct describe *d, const struct describe_line *lines);
/* Appends TEMPLATE inside a line. */
void describe_words(struct describe *d, const char *template);
/* Appends a line of TEMPLATE. */
void describe_template(struct describe *d, const char *template);
/* Appends the blanks of the level, LEVEL deeper. */
void describe_indent(struct describe *d, int level);
/* Appends TEXT. A tab in it ends a cell and a line feed a line, as in kubectl. */
void describe_text(struct describe *d, struct bytes text);
/* Appends each line of TEXT as a line, with the blanks of the level. */
void describe_text_lines(struct describe *d, struct bytes text);

/* Keeps R, if it is the first error. */
void describe_note(struct describe *d, int r);

/* Finds the value at PATH of d->here. */
bool describe_find(struct describe *d, const char *path, struct value *ret_value);
/* Returns its text, empty if there is none. */
struct bytes describe_get(struct describe *d, const char *path);
bool describe_is_empty(struct describe *d, const char *path);

/* The items of a list in its order, or of a map in the order of keys. */
struct describe_items {
	struct describe_item {
		struct bytes key;
		struct value value;
	} * items;
	size_t n, room;
};
/* ORDER: the items of a list are sorted by the text at this path; NULL: not. */
void describe_items_at(
	struct describe *d, const char *path, const char *order, struct describe_items *ret_items);
void describe_items_release(struct describe_items *items);

/* ---- other objects ------------------------------------------------------ */

/* Calls FN for each object of RESOURCE in NAMESPACE_ ("": all) that matches both selectors (NULL:
 * any), with d->here as that object. Returns whether RESOURCE is fed and was listed. */
bool describe_each_object(struct describe *d, const char *resource, const char *namespace_,
	const char *labels, const char *fields, void (*fn)(struct describe *d, void *arg),
	void *arg);
/* Copies a field of the object into TEXT; "" if it is absent or too long. */
void describe_copy(struct describe *d, const char *path, char *text, size_t size);

/* ---- amount.c ----------------------------------------------------------- */

/* A sum of Kubernetes quantities (100m, 1.5Gi, 1e3). It is printed as by kubectl: in the form of
 * the first that was not zero, with the largest unit that needs no fraction. */
struct amount {
	int64_t milli;  /* thousandths; those beyond the range count as the end of it */
	bool is_binary; /* Ki, Mi, ... */
};

/* Reads TEXT. Returns whether it is a quantity; smaller parts than a thousandth are rounded up. */
bool amount_parse(struct bytes text, struct amount *ret_amount);
void amount_add(struct amount *sum, const struct amount *more);
/* Makes *LARGEST the larger one. */
void amount_max(struct amount *largest, const struct amount *other);
void amount_put(const struct amount *quantity, struct buf *out);
/* Returns how many hundredths of WHOLE that is; 0 if WHOLE is 0. */
int64_t amount_percent(const struct amount *part, const struct amount *whole);

/* ---- tabstops.c --------------------------------------------------------- */

/* Appends TEXT, whole lines, to OUT, aligned at tabs as by Go's text/tabwriter for kubectl: cells
 * below each other in consecutive lines have the width of the widest and two blanks. Other
 * controls are made visible. Returns: 0, -ENOMEM. */
int tabstops_put(struct bytes text, struct buf *out);

#endif
