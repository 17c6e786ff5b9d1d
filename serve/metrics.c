/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/hashtable.h"

#define METRICS_MAGIC 0x6d747263u
#define LABELS_SIZE   1024
#define NS_IN_SECOND  1e9

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

static const struct {
	const char *name, *labels, *help;
	enum metric_type type;
} metrics_table[] = {
#define METRIC(symbol, type, name, labels, help) {name, labels, help, METRIC_##type},
#include "serve/metrics.def"
#undef METRIC
};

/* kube-apiserver's buckets. */
static const double metrics_seconds[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5,
	2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60};
#define BUCKETS (ARRAY_SIZE(metrics_seconds) + 1)

struct metric_cell {
	enum metric metric;
	struct metric_cell *next; /* of the metric */
	uint64_t value;           /* atomic, as the others; of a histogram: the sum, in ns */
	uint64_t *buckets; /* of a histogram: each value in one bucket, the last has no bound */
	char labels[];     /* "verb=\"LIST\",group=\"\"", "" without labels */
};

struct metrics {
	uint32_t magic;
	pthread_mutex_t lock;
	struct hashtable table;
	size_t n_cells;
	struct metric_cell *cells[METRIC_MAX];
	struct metric_cell spare; /* without memory; never written out */
};

struct metrics_item {
	uint32_t hash;
	struct metric_cell *cell;
};

struct metrics_key {
	enum metric metric;
	const char *labels;
};

static bool metrics_is(const void *item, const void *key, const void *arg)
{
	const struct metric_cell *cell = ((const struct metrics_item *)item)->cell;
	const struct metrics_key *k = key;

	(void)arg;
	return cell->metric == k->metric && strcmp(cell->labels, k->labels) == 0;
}

/* ---- begin and end ------------------------------------------------------ */

int metrics_new(struct metrics **ret_metrics)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(-ENOMEM, "making the metrics");
	m->magic = METRICS_MAGIC;
	(void)pthread_mutex_init(&m->lock, NULL);
	m->table = HASHTABLE_INIT(struct metrics_item, metrics_is, NULL);
	*ret_metrics = m;
	return 0;
}

void metrics_free(struct metrics **metrics)
{
	struct metrics *m = TAKE(*metrics);

	if (!m)
		return;
	CHECK_OBJ(m, METRICS_MAGIC);
	for (size_t i = 0; i < METRIC_MAX; i++)
		for (struct metric_cell *cell; (cell = m->cells[i]);) {
			m->cells[i] = cell->next;
			free(cell->buckets);
			free(cell);
		}
	hashtable_release(&m->table);
	(void)pthread_mutex_destroy(&m->lock);
	m->magic = 0;
	free(m);
}

/* ---- cells -------------------------------------------------------------- */

/* Writes the labels of METRIC with VALUES (NULL: each is "other"). Too long values are cut. */
static void metrics_put_labels(
	enum metric metric, const char *const *values, char text[LABELS_SIZE])
{
	const char *name = metrics_table[metric].labels;
	size_t size = 0;

	for (size_t i = 0; *name; i++) {
		size_t n = strcspn(name, ",");
		const char *value = !values ? "other" : values[i] ? values[i] : "";

		if (size + n + 8 >= LABELS_SIZE)
			break;
		if (i)
			text[size++] = ',';
		memcpy(text + size, name, n);
		size += n;
		text[size++] = '=';
		text[size++] = '"';
		for (; *value && size + 4 < LABELS_SIZE; value++) {
			if (*value == '"' || *value == '\\')
				text[size++] = '\\';
			/* Half a character would have Prometheus refuse all metrics. */
			text[size++] = *value < ' ' || *value > '~' ? ' ' : *value;
		}
		text[size++] = '"';
		name += n + (name[n] == ',');
	}
	text[size] = '\0';
}

static struct metric_cell *metrics_new_cell(
	struct metrics *m, uint64_t hash, const struct metrics_key *key)
{
	size_t size = strlen(key->labels) + 1;
	struct metric_cell *cell = calloc(1, sizeof(*cell) + size);
	struct metrics_item *item;
	int r = cell ? 0 : -1;

	if (cell && metrics_table[key->metric].type == METRIC_HISTOGRAM) {
		cell->buckets = calloc(BUCKETS, sizeof(*cell->buckets));
		r = cell->buckets ? 0 : -1;
	}
	if (r == 0) {
		r = hashtable_add(&m->table, hash, "the metrics", &item);
		err_ignore(r, "a metric that finds no memory is not counted");
	}
	if (r < 0) {
		free(cell ? cell->buckets : NULL);
		free(cell);
		return NULL;
	}
	memcpy(cell->labels, key->labels, size);
	cell->metric = key->metric;
	cell->next = m->cells[key->metric];
	m->cells[key->metric] = cell;
	m->n_cells++;
	item->cell = cell;
	return cell;
}

static struct metric_cell *metrics_find_cell(struct metrics *m, const struct metrics_key *key)
{
	uint64_t hash = hash_bytes(bytes_str(key->labels), (uint64_t)key->metric);
	struct metrics_item *item = hashtable_find(&m->table, hash, key);

	if (item)
		return item->cell;
	/* Cells without labels and "other" are few; they are made in any case. */
	if (m->n_cells >= METRICS_CELLS_MAX && *key->labels && !strstr(key->labels, "\"other\""))
		return NULL;
	return metrics_new_cell(m, hash, key);
}

struct metric_cell *metrics_cell(struct metrics *m, enum metric metric, const char *const *values)
{
	char labels[LABELS_SIZE];
	struct metrics_key key = {metric, labels};

	CHECK_OBJ(m, METRICS_MAGIC);
	metrics_put_labels(metric, values, labels);
	(void)pthread_mutex_lock(&m->lock);
	struct metric_cell *cell = metrics_find_cell(m, &key);
	if (!cell) {
		metrics_put_labels(metric, NULL, labels);
		cell = metrics_find_cell(m, &key);
	}
	(void)pthread_mutex_unlock(&m->lock);
	return cell ? cell : &m->spare;
}

void metric_add(struct metric_cell *cell, uint64_t n)
{
	__atomic_fetch_add(&cell->value, n, __ATOMIC_RELAXED);
}

void metric_sub(struct metric_cell *cell, uint64_t n)
{
	__atomic_fetch_sub(&cell->value, n, __ATOMIC_RELAXED);
}

uint64_t metric_get(const struct metric_cell *cell)
{
	return __atomic_load_n(&cell->value, __ATOMIC_RELAXED);
}

void metric_observe_ns(struct metric_cell *cell, uint64_t ns)
{
	size_t i = 0;

	if (!cell->buckets)
		return;
	while (i < ARRAY_SIZE(metrics_seconds) && (double)ns / NS_IN_SECOND > metrics_seconds[i])
		i++;
	__atomic_fetch_add(&cell->buckets[i], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&cell->value, ns, __ATOMIC_RELAXED);
}

/* ---- text --------------------------------------------------------------- */

static void metrics_write_histogram(const struct metric_cell *cell, struct buf *out)
{
	const char *name = metrics_table[cell->metric].name, *comma = *cell->labels ? "," : "";
	const char *open = *cell->labels ? "{" : "", *close = *cell->labels ? "}" : "";
	uint64_t count = 0, sum = __atomic_load_n(&cell->value, __ATOMIC_RELAXED);

	for (size_t i = 0; i < BUCKETS; i++) {
		count += __atomic_load_n(&cell->buckets[i], __ATOMIC_RELAXED);
		buf_printf(out, "%s_bucket{%s%sle=\"", name, cell->labels, comma);
		if (i < ARRAY_SIZE(metrics_seconds))
			buf_printf(out, "%g", metrics_seconds[i]);
		else
			buf_str(out, "+Inf");
		buf_printf(out, "\"} %" PRIu64 "\n", count);
	}
	buf_printf(out, "%s_sum%s%s%s %.9f\n", name, open, cell->labels, close,
		(double)sum / NS_IN_SECOND);
	buf_printf(out, "%s_count%s%s%s %" PRIu64 "\n", name, open, cell->labels, close, count);
}

void metrics_write(struct metrics *m, struct buf *out)
{
	static const char *const types[] = {[METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_HISTOGRAM] = "histogram"};

	CHECK_OBJ(m, METRICS_MAGIC);
	(void)pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < METRIC_MAX; i++) {
		if (!m->cells[i])
			continue;
		buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics_table[i].name,
			metrics_table[i].help, metrics_table[i].name, types[metrics_table[i].type]);
		for (const struct metric_cell *cell = m->cells[i]; cell; cell = cell->next) {
			if (metrics_table[i].type == METRIC_HISTOGRAM)
				metrics_write_histogram(cell, out);
			else
				buf_printf(out, "%s%s%s%s %" PRIu64 "\n", metrics_table[i].name,
					*cell->labels ? "{" : "", cell->labels,
					*cell->labels ? "}" : "",
					__atomic_load_n(&cell->value, __ATOMIC_RELAXED));
		}
	}
	(void)pthread_mutex_unlock(&m->lock);
}
