/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internal header of the describe group: the lines by which kinds_*.c lay out a kind, and
 * the functions by which a line that no template can express reads its object.
 *
 * A line is a template (table/printer_internal.h) for the part that is described: the object, or
 * the item of the list that `each` names.
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
	struct value here;             /* the described part; row.second is another one beside it */
	const struct value *container; /* of a variable */
	int level;                     /* of the lines, two blanks each */
};

/* Appends lines for the part d->here. */
typedef void describe_fn(struct describe *d);

struct describe_line {
	const char *when;   /* only if something is at this path, and it is not empty */
	const char *unless; /* only if nothing is there, or it is empty */
	/* the line for each item of the list or map (in the order of keys) at this path */
	const char *each;
	const char *order; /* the items of a list are sorted by the text at this path */
	const char *in;    /* `lines` and `fn` are for the part at this path, if it is there */
	int level;         /* deeper than the lines around it */
	const char *line;  /* the template; "": an empty line */
	const char *some;  /* a template instead, only if its first field is not empty */
	/* after `line`, in it: the items of the list at this path, in `order`, by the template
	 * `item`; `none` if there are none */
	const char *list, *item, *between, *none;
	const struct describe_line *lines; /* after `line`; the table ends with END_OF_LINES */
	describe_fn *fn;                   /* after those */
	const char *of;                    /* row.of for the function */
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

#define LINE_CONTROLLER \
	{ \
		.some = "Controlled By:\t{metadata.ownerReferences[controller=true].kind}/" \
			"{metadata.ownerReferences[controller=true].name}" \
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
void describe_volume_source(
	struct describe *d);           /* `here` is a volume, or the spec of a PersistentVolume */
void describe_any(struct describe *d); /* all fields of an object without a table */
void describe_fields(struct describe *d); /* all fields of d->here */
void describe_events(struct describe *d);

/* ---- the engine --------------------------------------------------------- */

/* Appends LINES for d->here. */
void describe_lines(struct describe *d, const struct describe_line *lines);
/* Appends a line of TEMPLATE. */
void describe_template(struct describe *d, const char *template);
/* Appends the blanks of the level, LEVEL deeper. */
void describe_indent(struct describe *d, int level);
/* Appends each line of TEXT as a line, with the blanks of the level. */
void describe_text_lines(struct describe *d, struct bytes text);

/* Functions of printer_internal.h for the part d->here. A tab in a text ends a cell and a line feed
 * a line, as in kubectl. */
#define describe_find(d, path, ret_value) printer_find(&(d)->row, &(d)->here, path, ret_value)
#define describe_get(d, path)             printer_text(&(d)->row, &(d)->here, path)
#define describe_is_empty(d, path)        printer_is_empty(&(d)->row, &(d)->here, path)
#define describe_words(d, template)       printer_put_words(&(d)->row, &(d)->here, template)
#define describe_items_at(d, path, order, ret_list) \
	printer_list_at(&(d)->row, &(d)->here, path, order, ret_list)

/* ---- other objects ------------------------------------------------------ */

/* Calls FN for each object of RESOURCE in the namespace IN ("": all) that matches both selectors,
 * with d->here as that object. IN and the selectors ("": any) are templates for the whole described
 * object; nothing is listed if LABELS gives "<none>". Returns whether RESOURCE is fed and was
 * listed. */
bool describe_each_object(struct describe *d, const char *resource, const char *in,
	const char *labels, const char *fields, void (*fn)(struct describe *d, void *arg),
	void *arg);

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
