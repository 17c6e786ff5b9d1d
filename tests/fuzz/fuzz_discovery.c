/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of the API server's discovery: any JSON makes a catalogue. Its names can be parts of a
 * path and are found in it. The first byte is the document's type. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"
#include "reflector/cluster/catalogue.h"
#include "tests/fuzz/fuzz.h"

static void check_name(const char *name, size_t room)
{
	REQUIRE(memchr(name, '\0', room));
	for (const char *p = name; *p; p++)
		REQUIRE(isalnum((unsigned char)*p) || *p == '.' || *p == '-');
}

static void check_entry(const struct catalogue *catalogue, const struct catalogue_entry *entry)
{
	const struct resource *resource = &entry->resource;
	struct resource found;
	char name[sizeof(resource->plural) + sizeof(resource->version) + sizeof(resource->group) +
		  2];

	check_name(resource->group, sizeof(resource->group));
	check_name(resource->version, sizeof(resource->version));
	check_name(resource->plural, sizeof(resource->plural));
	REQUIRE(*resource->version && *resource->plural);
	(void)snprintf(name, sizeof(name), "%s.%s.%s", resource->plural, resource->version,
		resource->group);
	int r = catalogue_find(catalogue, name, &found);
	REQUIRE(r == FOUND || *err_text(r));
}

static int add_place(void *arg, const struct catalogue_place *place)
{
	return catalogue_add_broken(arg, place->group, place->version);
}

static int read_document(uint8_t kind, struct bytes document, struct catalogue *catalogue)
{
	static const struct catalogue_place place = {.group = "apps", .version = "v1"};

	switch (kind % 3) {
	case 0:
		return catalogue_add_aggregated(catalogue, document, 0);
	case 1:
		return catalogue_add_resources(catalogue, document, &place);
	default:
		return catalogue_each_place(document, 0, add_place, catalogue);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(json_parser_free) struct json_parser *parser = NULL;
	CLEANUP(catalogue_release) struct catalogue catalogue = {0};
	CLEANUP(buf_release) struct buf document = BUF_INIT;

	REQUIRE(json_parser_new(&parser) == 0);
	if (size < 1 || json_parse(parser, BYTES(data + 1, size - 1), NULL, &document) != 0)
		return 0;
	int r = read_document(data[0], buf_bytes(&document), &catalogue);
	REQUIRE(r == 0 || *err_text(r));
	catalogue_sort(&catalogue);
	for (size_t i = 0; i < catalogue.count && i < 8; i++)
		check_entry(&catalogue, &catalogue.at[i]);
	return 0;
}
