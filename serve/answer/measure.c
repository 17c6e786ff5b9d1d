/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of answers: those that are counted often have their cells at hand. */
#include "common/check.h"
#include "common/decimal.h"
#include "common/err.h"
#include "serve/answer/answer_internal.h"

void answer_measure_open(struct answer *answer)
{
	static const char *const forms[API_FORM_MAX] = {[API_FORM_OBJECT] = "object",
		[API_FORM_TABLE] = "table",
		[API_FORM_METADATA] = "metadata",
		[API_FORM_METADATA_LIST] = "metadata"};

	for (unsigned i = 0; i < API_FORM_MAX; i++)
		if (forms[i])
			answer->renders[i] =
				metrics_cell(answer->metrics, METRIC_RENDERS, &forms[i]);
	answer->groups = metrics_cell(answer->metrics, METRIC_GROUPS, NULL);
	answer->lagging = metrics_cell(answer->metrics, METRIC_LAGGING, NULL);
}

static int answer_measure_feed(void *argument, struct catalog_feed *feed)
{
	const struct feed_definition *d = &feed->definition;
	struct answer *answer = argument;
	uint64_t rv;

	if (decimal_parse(bytes_str(feed->timeline.newest_text), UINT64_MAX, &rv) == 0)
		metric_set(metrics_cell(answer->metrics, METRIC_CACHE_RV,
				   (const char *[]){d->group, d->resource}),
			rv);
	else
		err_ignore(ERR_SYNTAX, "an RV that is no number can't be shown as one");
	return 0;
}

void answer_measure(struct answer *answer)
{
	CHECK_OBJ(answer, ANSWER_MAGIC);
	err_ignore(catalog_each(answer->catalog, answer_measure_feed, answer), "none fails");
}

struct metric_cell *answer_cell(const struct answer_request *request, enum metric metric)
{
	const struct feed_definition *d = &request->feed->definition;

	return metrics_cell(
		request->worker->answer->metrics, metric, (const char *[]){d->group, d->resource});
}
