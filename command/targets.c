/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of commands that show objects. */
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "common/array.h"
#include "common/err.h"

int targets_add(struct targets *targets, const char *feed, char **names, size_t n)
{
	const struct target target = {.feed = feed, .names = names, .n_names = n};

	return ARRAY_ADD(
		targets->items, targets->n, targets->room, target, "the feeds that are asked for");
}

void targets_release(struct targets *targets)
{
	free(targets->items);
}

/* Reads FEED/NAME..., the output of -o name: adjacent names of one feed are one target. */
static int targets_read_slashed(struct targets *targets, char **operands, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *slash = strchr(operands[i], '/');
		struct target *last = targets->n ? &targets->items[targets->n - 1] : NULL;
		int r = 0;

		if (!slash)
			return err_say(ERR_SYNTAX,
				"'%s': write each as FEED/NAME, or 'FEED NAME...'", operands[i]);
		*slash = '\0';
		if (last && strcmp(last->feed, operands[i]) == 0)
			last->n_names++;
		else
			r = targets_add(targets, operands[i], operands + i, 1);
		if (r < 0)
			return r;
		operands[i] = slash + 1;
	}
	return 0;
}

/* Reads the feeds of FEED,FEED..., each with the NAMES. */
static int targets_read_feeds(struct targets *targets, char *feeds, char **names, size_t n)
{
	int r = 0;

	for (char *feed; r == 0 && (feed = strsep(&feeds, ","));) {
		if (!*feed)
			return err_say(ERR_SYNTAX,
				"the name of a feed is empty: write them as pods,services");
		r = targets_add(targets, feed, names, n);
	}
	return r;
}

/* Checks a name: NAME or NAMESPACE/NAME. */
static int targets_check_name(const char *name, const char *in)
{
	const char *slash = strchr(name, '/');

	if (!*name)
		return err_say(ERR_SYNTAX, "a name is empty");
	if (in && slash && !bytes_equal(BYTES(name, (size_t)(slash - name)), bytes_str(in)))
		return err_say(ERR_SYNTAX, "'%s' is not in the namespace '%s'", name, in);
	return 0;
}

int targets_read(struct targets *targets, char **operands, size_t n, const struct query_args *query)
{
	int r = strchr(operands[0], '/')
			? targets_read_slashed(targets, operands, n)
			: targets_read_feeds(targets, operands[0], operands + 1, n - 1);

	if (r == 0 && targets->items[0].n_names &&
		(query->labels || query->fields || query->prefix || query->index.n))
		return err_say(ERR_SYNTAX, "names are given: -l, --field-selector, --index and "
					   "--prefix can't be used with them");
	for (size_t t = 0; r == 0 && t < targets->n; t++)
		for (size_t i = 0; r == 0 && i < targets->items[t].n_names; i++)
			r = targets_check_name(targets->items[t].names[i], query->namespace_);
	return r;
}
