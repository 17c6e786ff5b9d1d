/* SPDX-License-Identifier: Apache-2.0 */
/* The path and the query of a request for resources, and its Accept header: refused with a Status,
 * or usable; the first byte chooses between a watch and a list. */
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "serve/api/api_accept.h"
#include "serve/api/api_options.h"
#include "serve/api/api_path.h"
#include "tests/fuzz/fuzz.h"

static void check_status(int r, const struct api_status *status)
{
	CLEANUP(buf_release) struct buf json = BUF_INIT;

	if (r <= 0)
		return;
	REQUIRE(r >= 400 && r < 600 && status->code == r);
	REQUIRE(api_status_write(status, &json) == 0 && json.size > 2);
	const uint8_t *p = json.data;
	REQUIRE(p[0] == '{');
	for (size_t i = 0; i < json.size; i++)
		REQUIRE(p[i] >= ' ' || p[i] == '\n');
}

static void check_query(struct bytes query, bool is_watch)
{
	CLEANUP(api_options_release) struct api_options options = {0};
	CLEANUP(api_status_release) struct api_status status = API_STATUS_INIT;
	int r = api_options_parse(query, true, &options, &status);

	check_status(r, &status);
	if (r != 0)
		return;
	REQUIRE(options.rv && options.token && options.match_text && options.limit >= 0);
	r = api_options_validate(&options, is_watch, &status);
	check_status(r, &status);
	if (r == 0)
		check_status(api_options_include(&options, &status), &status);
}

static void check_path(struct bytes text)
{
	CLEANUP(api_path_release) struct api_path path = {0};

	if (api_path_parse(text, &path) != 0 || path.kind != API_PATH_RESOURCE)
		return;
	REQUIRE(*path.version && *path.resource && !strchr(path.name, '/') &&
		!strchr(path.namespace_, '/'));
}

static void check_accept(struct bytes header, bool discovery)
{
	CLEANUP(api_status_release) struct api_status status = API_STATUS_INIT;
	struct api_accept accept = {.version = "v1"};
	int r = api_accept_parse(header, discovery, &accept, &status);

	check_status(r, &status);
	REQUIRE(r != 0 || (accept.form < API_FORM_MAX && accept.version && *accept.version));
	(void)api_accept_gzip(header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	uint8_t *copy = malloc(size); /* a copy: each byte beyond it is reported */

	REQUIRE(copy);
	memcpy(copy, data + 1, size - 1);
	const struct bytes text = BYTES(copy, size - 1);

	check_query(text, data[0] & 1);
	check_path(text);
	check_accept(text, data[0] & 2);
	free(copy);
	return 0;
}
