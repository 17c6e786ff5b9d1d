/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of /metrics (metrics.def). A cell is one metric with one set of label values. The
 * owner asks for it once and keeps the pointer, which is valid as long as the metrics; changing
 * a cell is an atomic addition and can be done from any thread.
 *
 *	struct metric_cell *events = metrics_cell(metrics, METRIC_WATCH_EVENTS,
 *		(const char *[]){group, version, resource});
 *	metric_add(events, 1);
 *
 * At most METRICS_CELLS_MAX cells are made; after that each metric counts what is new in one
 * cell with the label values "other", so that clients can't fill the memory.
 */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include <stdint.h>

#define METRICS_CELLS_MAX 20000

enum metric {
#define METRIC(symbol, type, name, labels, help) METRIC_##symbol,
#include "serve/metrics.def"
#undef METRIC
	METRIC_MAX
};

struct buf;
struct metrics;
struct metric_cell;

int metrics_new(struct metrics **ret_metrics);
void metrics_free(struct metrics **metrics);

/* Returns the cell of METRIC with VALUES, one for each of its labels in their order (NULL counts
 * as ""). VALUES may be NULL if it has no labels. Never NULL: without memory the cell counts
 * nothing. */
struct metric_cell *metrics_cell(
	struct metrics *metrics, enum metric metric, const char *const *values);

void metric_add(struct metric_cell *cell, uint64_t n); /* counter, gauge */
void metric_sub(struct metric_cell *cell, uint64_t n); /* gauge */
uint64_t metric_get(const struct metric_cell *cell);
void metric_observe_ns(struct metric_cell *cell, uint64_t ns); /* histogram of seconds */

/* Appends all cells in Prometheus' text format. */
void metrics_write(struct metrics *metrics, struct buf *out);

#endif
