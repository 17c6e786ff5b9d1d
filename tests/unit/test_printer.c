/* SPDX-License-Identifier: Apache-2.0 */
/* Columns and cells of objects: forms printed without an API server. */
#include "common/bytes.h"
#include "common/value/number.h"
#include "print/table/age.h"
#include "print/table/printer.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

/* 2026-11-22T06:00:00Z */
#define NOW_NS (UINT64_C(1795327200) * 1000000000)

/* Returns the cells of the object JSON as JSON. COLUMNS: of a CRD, or NULL. */
static const char *cells_of(
	const char *group, const char *resource, const char *columns, const char *json)
{
	static struct buf text;
	struct buf body = body_of(json), crd = columns ? body_of(columns) : BUF_INIT;
	struct printer_kind kind = {.group = bytes_str(group),
		.resource = bytes_str(resource),
		.columns = buf_bytes(&crd)};
	const struct printer_cell *cells;
	struct printer *printer = NULL;
	size_t n;

	buf_reset(&text);
	cr_assert_eq(printer_new(&kind, &printer), 0);
	age_set_now(NOW_NS);
	cr_assert_eq(printer_row(printer, buf_bytes(&body), &cells, &n), 0);
	printer_put_cells(cells, n, &text);
	printer_free(&printer);
	printer_free(&printer);
	buf_release(&body);
	buf_release(&crd);
	return buf_cstr(&text);
}

Test(printer, unknown_kinds_have_name_and_age)
{
	cr_assert_str_eq(cells_of("example.com", "things", NULL,
				 "{\"metadata\":{\"name\":\"a\",\"creationTimestamp\":"
				 "\"2026-11-22T05:59:00Z\"}}"),
		"[\"a\",\"60s\"]");
	cr_assert_str_eq(
		cells_of("example.com", "things", NULL, "{}"), "[\"\",\"\\u003cunknown\\u003e\"]");
}

Test(printer, podgroups_of_1_36_have_other_fields)
{
	cr_assert_str_eq(
		cells_of("scheduling.k8s.io", "podgroups", NULL,
			"{\"metadata\":{\"name\":\"g\"},\"spec\":{\"podGroupTemplateRef\":{"
			"\"workload\":{\"workloadName\":\"w\"}}},\"status\":{\"conditions\":[{"
			"\"type\":\"PodGroupScheduled\",\"status\":\"True\"}]}}"),
		"[\"g\",\"Basic\",\"w\",\"Scheduled\",\"\\u003cunknown\\u003e\"]");
}

static const char crd_columns[] =
	"[{\"name\":\"Ready\",\"type\":\"string\","
	"\"jsonPath\":\".status.conditions[0].status\"},"
	"{\"name\":\"N\",\"type\":\"integer\",\"jsonPath\":\".spec.n\",\"priority\":1},"
	"{\"name\":\"F\",\"type\":\"number\",\"jsonPath\":\".spec.f\"},"
	"{\"name\":\"B\",\"type\":\"boolean\",\"jsonPath\":\".spec.b\"},"
	"{\"name\":\"Since\",\"type\":\"date\",\"jsonPath\":\".spec.d\",\"description\":\"d\"},"
	"{\"name\":\"Bad\",\"type\":\"string\",\"jsonPath\":\".spec[\"}]";

Test(printer, custom_resources_have_the_columns_of_their_definition)
{
	cr_assert_str_eq(cells_of("example.com", "things", crd_columns,
				 "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"n\":3,\"f\":0.5,"
				 "\"b\":true,\"d\":\"2026-11-21T06:00:00+00:00\"},"
				 "\"status\":{\"conditions\":[{\"status\":\"True\"}]}}"),
		"[\"a\",\"True\",3,0.5,true,\"24h\",null]");
	/* values of other types, as the API server converts them */
	cr_assert_str_eq(cells_of("example.com", "things", crd_columns,
				 "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"n\":\"3\",\"f\":5,"
				 "\"b\":1,\"d\":\"soon\"},\"status\":{\"conditions\":[{\"status\":"
				 "{\"a\":[1]}}]}}"),
		"[\"a\",\"{\\\"a\\\":[1]}\",null,5,null,\"\\u003cinvalid\\u003e\",null]");
	cr_assert_str_eq(cells_of("example.com", "things", crd_columns, "{\"spec\":{\"n\":3.7}}"),
		"[\"\",null,3,null,null,null,null]");
}

Test(printer, numbers_are_converted_as_the_api_server_and_kubectl_do)
{
	static const struct {
		const char *value, *cells, *shown;
	} rows[] = {
		/* the columns are a string, an integer and a number */
		{"1e-7", "[\"\",\"1e-07\",0,1e-7]", "1e-07"},
		{"1e20", "[\"\",\"1e+20\",-9223372036854775808,100000000000000000000]", "1e+20"},
		{"1234567.5", "[\"\",\"1.2345675e+06\",1234567,1234567.5]", "1.2345675e+06"},
		{"1234567", "[\"\",\"1234567\",1234567,1234567]", "1234567"},
		{"1.0", "[\"\",\"1\",1,1]", "1"},
		{"9223372036854775807",
			"[\"\",\"9223372036854775807\",9223372036854775807,9223372036854776000]",
			"9.223372036854776e+18"},
		{"-0", "[\"\",\"0\",0,0]", "0"},
		{"{\"a\":1E5}", "[\"\",\"{\\\"a\\\":100000}\",null,null]", ""},
	};
	CLEANUP(buf_release)
	struct buf columns = body_of("[{\"name\":\"S\",\"type\":\"string\",\"jsonPath\":\".v\"},"
				     "{\"name\":\"I\",\"type\":\"integer\",\"jsonPath\":\".v\"},"
				     "{\"name\":\"N\",\"type\":\"number\",\"jsonPath\":\".v\"}]");
	struct printer_kind kind = {
		.resource = BYTES_LIT("things"), .columns = buf_bytes(&columns)};
	CLEANUP(printer_free) struct printer *printer = NULL;

	cr_assert_eq(printer_new(&kind, &printer), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct buf json = BUF_INIT, text = BUF_INIT;
		const struct printer_cell *cells;
		char scratch[NUMBER_TEXT_MAX];
		size_t n;

		buf_printf(&json, "{\"v\":%s}", rows[i].value);
		struct buf body = body_of(buf_cstr(&json));
		cr_assert_eq(printer_row(printer, buf_bytes(&body), &cells, &n), 0);
		printer_put_cells(cells, n, &text);
		cr_assert_str_eq(buf_cstr(&text), rows[i].cells);
		struct bytes shown = printer_cell_text(&cells[3], scratch);
		cr_assert(bytes_equal(shown, bytes_str(rows[i].shown)), "%.*s", BYTES_ARG(shown));
		buf_release(&json);
		buf_release(&text);
		buf_release(&body);
	}
}

Test(printer, a_definition_may_lack_anything)
{
	cr_assert_str_eq(cells_of("example.com", "things", "[]", "{\"metadata\":{\"name\":\"a\"}}"),
		"[\"a\",\"\\u003cunknown\\u003e\"]");
	cr_assert_str_eq(cells_of("example.com", "things", "[{},{\"jsonPath\":5},7]", "{}"),
		"[\"\",null,null,null]");
}

Test(printer, columns_that_a_feed_stores_are_used_without_a_definition)
{
	struct printer_kind kind = {.group = BYTES_LIT("example.com"),
		.resource = BYTES_LIT("things"),
		.stored = "N\tinteger\t\t1\t.spec.n\tHow "
			  "many\nShort\tstring\nT\tdate\t\t\t.spec.t\t\n"};
	CLEANUP(printer_free) struct printer *printer = NULL;
	size_t n;

	cr_assert_eq(printer_new(&kind, &printer), 0);
	const struct printer_column *columns = printer_columns(printer, &n);
	cr_assert_eq(n, 4);
	cr_assert_str_eq(columns[1].name, "N");
	cr_assert_eq(columns[1].priority, 1);
	cr_assert(bytes_equal(columns[1].description, BYTES_LIT("How many")));
	cr_assert_str_eq(columns[2].name, "Short");
	cr_assert_str_eq(columns[3].type, "date");
}

Test(printer, columns_are_those_of_a_table_column_definition)
{
	CLEANUP(buf_release) struct buf crd = body_of(crd_columns), out = BUF_INIT;
	struct printer_kind kind = {.group = BYTES_LIT("example.com"),
		.resource = BYTES_LIT("things"),
		.columns = buf_bytes(&crd)};
	CLEANUP(printer_free) struct printer *printer = NULL;
	size_t n;

	cr_assert_eq(printer_new(&kind, &printer), 0);
	const struct printer_column *columns = printer_columns(printer, &n);
	cr_assert_eq(n, 7);
	cr_assert_str_eq(columns[0].format, "name");
	cr_assert_str_eq(columns[2].name, "N");
	cr_assert_eq(columns[2].priority, 1);
	cr_assert(bytes_equal(columns[5].description, BYTES_LIT("d")));
	printer_put_columns(printer, &out);
	cr_assert(strstr(buf_cstr(&out), "{\"name\":\"N\",\"type\":\"integer\",\"format\":\"\","
					 "\"description\":\"Custom resource definition column (in "
					 "JSONPath format): .spec.n\",\"priority\":1}"));
}

Test(printer, a_row_is_the_same_whichever_rows_came_before_it)
{
	static const char *const pods[] = {
		"{\"metadata\":{\"name\":\"a\"}}",
		"{}",
		"{\"metadata\":{\"name\":\"b\",\"deletionTimestamp\":\"2026-11-22T05:59:00Z\"},"
		"\"spec\":"
		"{\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\"}]},\"status\":{\"phase\":"
		"\"Running\"}}",
		"{\"metadata\":{\"name\":\"c\"},\"spec\":{\"initContainers\":[{\"name\":\"i\","
		"\"restartPolicy\":"
		"\"Always\"}],\"containers\":[{\"name\":\"c\"}],\"readinessGates\":[{"
		"\"conditionType\":\"g\"}]},"
		"\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"g\",\"status\":"
		"\"True\"}],"
		"\"podIPs\":[{\"ip\":\"10.0.0.1\"}],\"containerStatuses\":[{\"name\":\"c\","
		"\"restartCount\":2,"
		"\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}}]}}",
		"{\"spec\":5,\"status\":{\"phase\":\"Pending\",\"phase\":\"Failed\"}}",
	};
	struct printer_kind kind = {.resource = BYTES_LIT("pods")};
	CLEANUP(printer_free) struct printer *printer = NULL;

	cr_assert_eq(printer_new(&kind, &printer), 0);
	age_set_now(NOW_NS);
	for (size_t i = 0; i < 3 * ARRAY_SIZE(pods); i++) {
		const char *json = pods[i * 3 % ARRAY_SIZE(pods)];
		struct buf body = body_of(json), text = BUF_INIT;
		const struct printer_cell *cells;
		size_t n;

		cr_assert_eq(printer_row(printer, buf_bytes(&body), &cells, &n), 0);
		printer_put_cells(cells, n, &text);
		cr_assert_str_eq(buf_cstr(&text), cells_of("", "pods", NULL, json));
		buf_release(&text);
		buf_release(&body);
	}
}

Test(printer, labels_are_ordered_by_their_texts_and_requirements_by_their_keys)
{
	static const char labels[] =
		"{\"app\":\"a\",\"app.kubernetes.io/name\":\"b\",\"app-x\":\"c\",\"app1\":\"\"}";
	struct buf json = BUF_INIT;

	buf_printf(
		&json, "{\"metadata\":{\"labels\":%s},\"spec\":{\"selector\":%s}}", labels, labels);
	cr_assert(strstr(cells_of("", "services", NULL, buf_cstr(&json)),
		"\"app-x=c,app.kubernetes.io/name=b,app1=,app=a\""));
	struct buf body = body_of(buf_cstr(&json)), text = BUF_INIT;
	cr_assert_eq(printer_put_labels_of(buf_bytes(&body), &text), 0);
	cr_assert_str_eq(buf_cstr(&text), "app-x=c,app.kubernetes.io/name=b,app1=,app=a");
	buf_reset(&json);
	buf_printf(&json, "{\"spec\":{\"selector\":{\"matchLabels\":%s}}}", labels);
	cr_assert(strstr(cells_of("apps", "deployments", NULL, buf_cstr(&json)),
		"\"app=a,app-x=c,app.kubernetes.io/name=b,app1=\""));
	buf_release(&json);
	buf_release(&body);
	buf_release(&text);
}

Test(printer, damaged_objects_are_reported)
{
	CLEANUP(buf_release)
	struct buf body = body_of("{\"metadata\":{\"name\":\"a\",\"labels\":{\"a\":\"b\"}},"
				  "\"spec\":{\"containers\":[{\"name\":\"c\"}]},"
				  "\"status\":{\"phase\":\"Running\"}}");
	struct printer_kind kind = {.resource = BYTES_LIT("pods")};
	const struct printer_cell *cells;
	CLEANUP(printer_free) struct printer *printer = NULL;
	size_t n;

	cr_assert_eq(printer_new(&kind, &printer), 0);
	for (size_t size = 0; size < body.size; size++)
		cr_assert_eq(printer_row(printer, BYTES(body.data, size), &cells, &n), ERR_CORRUPT,
			"%zu", size);
	cr_assert_eq(printer_row(printer, buf_bytes(&body), &cells, &n), 0);
	cr_assert_eq(n, 9);
}

static const char *age_of(const char *from)
{
	static char text[AGE_SIZE];

	age_between(bytes_str(from), NOW_NS, "none", text);
	return text;
}

Test(age, texts_of_times_have_all_forms_of_rfc_3339)
{
	cr_assert_str_eq(age_of("2026-11-22T05:59:59Z"), "1s");
	cr_assert_str_eq(age_of("2026-11-22T05:59:58.500000Z"), "1s");
	cr_assert_str_eq(age_of("2026-11-22T06:59:00+01:00"), "60s");
	cr_assert_str_eq(age_of("2026-11-22T04:30:00-01:30"), "0s");
	cr_assert_str_eq(age_of("2026-11-22T06:00:01Z"), "0s");
	cr_assert_str_eq(age_of("2026-11-22T06:00:10Z"), "<invalid>");
	cr_assert_str_eq(age_of("0001-01-01T00:00:00Z"), "<unknown>");
	cr_assert_str_eq(age_of("0500-01-01T00:00:00Z"), "292y");
	cr_assert_str_eq(age_of(""), "none");
	cr_assert_str_eq(age_of("2026-11-22"), "none");
	cr_assert_str_eq(age_of("2026-11-22T05:59:59"), "none");
	cr_assert_str_eq(age_of("2026-13-22T05:59:59Z"), "none");
	cr_assert_str_eq(age_of("2026-11-22T05:59:59Zx"), "none");
	cr_assert_str_eq(age_of("2026-11-22T05:59:59+1:00"), "none");
}
