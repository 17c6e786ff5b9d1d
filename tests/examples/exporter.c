/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Prometheus exporter: the state of the feeds, pods by namespace, and a line for each pod.
 *
 *	cc exporter.c $(pkg-config --cflags --libs kinf) -o exporter
 *	exporter /var/lib/node_exporter/kinf.prom     (its textfile collector reads that)
 *	exporter                                      (to stdout)
 *
 * No object is copied or decoded: the values go from the mapped file of the store into the output.
 * All numbers are of one instant, the snapshot's.
 */
#define _GNU_SOURCE
#include <err.h>
#include <inttypes.h>
#include <kinf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints a label's value, escaped for the text format. */
static void put_value(FILE *out, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '\n') {
			fputs("\\n", out);
			continue;
		}
		if (text[i] == '"' || text[i] == '\\')
			fputc('\\', out);
		fputc(text[i], out);
	}
}

static void put_head(FILE *out, const char *name, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* ---- feeds -------------------------------------------------------------- */

struct feed_metric {
	FILE *out;
	const char *name, *help;
	double (*value)(const struct kinf_feed_info *status);
};

static double synced(const struct kinf_feed_info *status)
{
	return status->synced;
}

static double live(const struct kinf_feed_info *status)
{
	return !strcmp(status->state, "live");
}

static double objects(const struct kinf_feed_info *status)
{
	return (double)status->objects;
}

static int put_feed(void *arg, const struct kinf_feed_info *status)
{
	const struct feed_metric *metric = arg;

	fprintf(metric->out, "%s{feed=\"%s\",namespace=\"%s\"} %.15g\n", metric->name, status->name,
		status->namespace_, metric->value(status));
	return 0; /* go on with the next feed */
}

static int put_feeds(struct kinf_snapshot *snapshot, FILE *out)
{
	struct feed_metric metrics[] = {
		{out, "kinf_feed_synced", "Whether the feed was listed once.", synced},
		{out, "kinf_feed_live", "Whether the feed is watched right now.", live},
		{out, "kinf_feed_objects", "Objects in the cache.", objects},
	};

	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		put_head(out, metrics[i].name, metrics[i].help);
		int r = kinf_feed_status(snapshot, NULL, put_feed, &metrics[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- pods by namespace: an index has the counts, no pod is read --------- */

static int put_namespace(void *arg, const char *value, size_t size, uint64_t count)
{
	FILE *out = arg;

	fputs("kinf_pods{namespace=\"", out);
	put_value(out, value, size);
	fprintf(out, "\"} %" PRIu64 "\n", count);
	return 0;
}

static int put_namespaces(struct kinf_snapshot *snapshot, FILE *out)
{
	put_head(out, "kinf_pods", "Pods by namespace.");
	return kinf_index_values(snapshot, "pods", "namespace", NULL, put_namespace, out);
}

/* ---- each pod ----------------------------------------------------------- */

static void put_label(FILE *out, const char *label, const struct kinf_object *pod, const char *path)
{
	const char *text = "";
	size_t size = 0;

	(void)kinf_object_path(pod, path, &text, &size); /* absent: "" */
	fprintf(out, "%s=\"", label);
	put_value(out, text, size);
	fputc('"', out);
}

static int put_pods(struct kinf_snapshot *snapshot, FILE *out)
{
	struct kinf_query query = {.size = sizeof(query), .feed = "pods"};
	struct kinf_listing *list;
	struct kinf_object pod;

	put_head(out, "kube_pod_info", "A line for each pod.");
	int r = kinf_list(snapshot, &query, &list);
	if (r != 0)
		return r;
	while ((r = kinf_list_next(list, &pod)) == KINF_FOUND) {
		put_label(out, "kube_pod_info{namespace", &pod, "metadata.namespace");
		put_label(out, ",pod", &pod, "metadata.name");
		put_label(out, ",node", &pod, "spec.nodeName");
		put_label(out, ",phase", &pod, "status.phase");
		fputs("} 1\n", out);
	}
	kinf_list_close(&list);
	return r == KINF_END ? 0 : r;
}

/* ---- main --------------------------------------------------------------- */

static void put_all(struct kinf *kinf, FILE *out)
{
	struct kinf_snapshot *snapshot;

	if (kinf_snapshot_open(kinf, &snapshot) != 0)
		errx(1, "%s", kinf_error(kinf));
	if (put_feeds(snapshot, out) != 0 || put_namespaces(snapshot, out) != 0 ||
		put_pods(snapshot, out) != 0)
		errx(1, "%s", kinf_error(kinf));
	kinf_snapshot_close(&snapshot);
}

int main(int argc, char **argv)
{
	struct kinf *kinf;
	char temporary[4096];
	FILE *out = stdout;

	if (argc > 2)
		errx(2, "usage: exporter [FILE]");
	if (kinf_open(NULL, &kinf) < 0)
		errx(1, "%s", kinf_error(kinf));
	if (argc == 2) {
		snprintf(temporary, sizeof(temporary), "%s.new", argv[1]);
		out = fopen(temporary, "we");
		if (!out)
			err(1, "%s", temporary);
	}
	put_all(kinf, out);
	kinf_close(&kinf);
	if (fflush(out) != 0 || ferror(out))
		err(1, "writing");
	if (argc == 2 && (fclose(out) != 0 || rename(temporary, argv[1]) !=
						      0)) /* replaces the file in one step */
		err(1, "%s", argv[1]);
	return 0;
}
