/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api/api_accept.h"

#include <stdlib.h>
#include <string.h>

struct api_accept_clause {
	struct bytes type, subtype, parameters;
	double quality;
};

/* Takes the text of HEADER up to SEPARATOR, without the blanks around it. */
static struct bytes api_accept_take(struct bytes *header, char separator)
{
	const char *p = header->data, *end = p + header->size;
	const char *stop = p < end ? memchr(p, separator, (size_t)(end - p)) : NULL;

	stop = stop ? stop : end;
	*header = stop < end ? BYTES(stop + 1, (size_t)(end - stop - 1)) : BYTES_NONE;
	while (p < stop && (*p == ' ' || *p == '\t'))
		p++;
	while (stop > p && (stop[-1] == ' ' || stop[-1] == '\t'))
		stop--;
	return BYTES(p, (size_t)(stop - p));
}

/* The API server does not know APPLICATION/JSON. */
static bool api_accept_is(struct bytes text, const char *wanted)
{
	return bytes_equal(text, bytes_str(wanted));
}

/* Returns the value of the parameter NAME, without quotes. Not found: no data. */
static struct bytes api_accept_parameter(struct bytes parameters, const char *name)
{
	while (parameters.size) {
		struct bytes value = api_accept_take(&parameters, ';');
		struct bytes key = api_accept_take(&value, '=');

		if (!api_accept_is(key, name))
			continue;
		value = value.data ? api_accept_take(&value, '\0') : BYTES("", 0);
		const char *p = value.data;
		if (value.size > 1 && p[0] == '"' && p[value.size - 1] == '"')
			value = BYTES(p + 1, value.size - 2);
		return value;
	}
	return BYTES_NONE;
}

static double api_accept_quality(struct bytes parameters)
{
	struct bytes q = api_accept_parameter(parameters, "q");
	char text[16] = "1";
	char *end;

	if (q.data && q.size < sizeof(text)) {
		memcpy(text, q.data, q.size);
		text[q.size] = '\0';
	}
	double quality = strtod(text, &end);
	if (*end || end == text || !(quality >= 0))
		return 1e-9; /* the API server takes it for 0, without refusing it */
	return quality < 1 ? quality : 1;
}

/* Returns true if the client prefers X to Y, the earlier one. */
static bool api_accept_prefers(const struct api_accept_clause *x, const struct api_accept_clause *y)
{
	bool any_x = api_accept_is(x->type, "*"), any_y = api_accept_is(y->type, "*");
	bool sub_x = api_accept_is(x->subtype, "*"), sub_y = api_accept_is(y->subtype, "*");

	if (x->quality != y->quality)
		return x->quality > y->quality;
	return any_x != any_y ? any_y : sub_y && !sub_x;
}

struct api_accept_conversion {
	const char *as, *group, *version;
	enum api_form form;
};

static const struct api_accept_conversion api_accept_objects[] = {
	{"Table", "meta.k8s.io", "v1", API_FORM_TABLE},
	{"Table", "meta.k8s.io", "v1beta1", API_FORM_TABLE},
	{"PartialObjectMetadata", "meta.k8s.io", "v1", API_FORM_METADATA},
	{"PartialObjectMetadata", "meta.k8s.io", "v1beta1", API_FORM_METADATA},
	{"PartialObjectMetadataList", "meta.k8s.io", "v1", API_FORM_METADATA_LIST},
	{"PartialObjectMetadataList", "meta.k8s.io", "v1beta1", API_FORM_METADATA_LIST},
	{NULL, NULL, NULL, API_FORM_MAX},
};
static const struct api_accept_conversion api_accept_discovery[] = {
	{"APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2", API_FORM_DISCOVERY},
	{"APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1", API_FORM_DISCOVERY},
	{NULL, NULL, NULL, API_FORM_MAX},
};

/* Returns whether JSON is of the media type of CLAUSE. */
static bool api_accept_is_json(const struct api_accept_clause *clause)
{
	bool any = api_accept_is(clause->type, "*");

	return (any || api_accept_is(clause->type, "application")) &&
	       (api_accept_is(clause->subtype, "*") ||
		       (!any && api_accept_is(clause->subtype, "json")));
}

/* Returns whether we can serve CLAUSE, and how. */
static bool api_accept_clause(
	const struct api_accept_clause *clause, bool discovery, struct api_accept *ret_accept)
{
	struct bytes as = api_accept_parameter(clause->parameters, "as");
	struct bytes group = api_accept_parameter(clause->parameters, "g");
	struct bytes version = api_accept_parameter(clause->parameters, "v");
	struct bytes pretty = api_accept_parameter(clause->parameters, "pretty");
	const struct api_accept_conversion *c =
		discovery ? api_accept_discovery : api_accept_objects;

	bool is_protobuf = !discovery && api_accept_is(clause->type, "application") &&
			   api_accept_is(clause->subtype, "vnd.kubernetes.protobuf");

	if (!api_accept_is_json(clause) && !is_protobuf)
		return false;
	*ret_accept = (struct api_accept){.form = API_FORM_OBJECT,
		.version = "v1",
		.protobuf = is_protobuf,
		.pretty = bytes_equal(pretty, BYTES_LIT("1"))};
	if (!as.data && !group.data && !version.data)
		return !is_protobuf;
	for (; c->as; c++)
		if (bytes_equal(as, bytes_str(c->as)) && bytes_equal(group, bytes_str(c->group)) &&
			bytes_equal(version, bytes_str(c->version))) {
			ret_accept->form = c->form;
			ret_accept->version = c->version;
			return !is_protobuf ||
			       (c->form != API_FORM_TABLE && strcmp(c->version, "v1") == 0);
		}
	return false;
}

int api_accept_parse(struct bytes header, bool discovery, struct api_accept *ret_accept,
	struct api_status *status)
{
	struct api_accept_clause best;
	bool is_given = false, is_chosen = false, any_json = false;

	*ret_accept = (struct api_accept){.form = API_FORM_OBJECT, .version = "v1"};
	while (header.size) {
		struct bytes parameters = api_accept_take(&header, ',');
		bool is_blank = !parameters.size;
		struct bytes type = api_accept_take(&parameters, ';');
		struct api_accept found;

		is_given |= !is_blank;
		if (!type.size)
			continue;
		struct api_accept_clause clause = {.type = api_accept_take(&type, '/'),
			.subtype = type.data ? type : BYTES_LIT("*"),
			.parameters = parameters,
			.quality = api_accept_quality(parameters)};
		any_json |= api_accept_is_json(&clause);
		if (clause.quality <= 0 || !api_accept_clause(&clause, discovery, &found))
			continue;
		if (is_chosen && !api_accept_prefers(&clause, &best))
			continue;
		is_chosen = true;
		best = clause;
		*ret_accept = found;
	}
	if (is_chosen || !is_given)
		return 0;
	if (any_json)
		return api_status_set(status, 406, "NotAcceptable",
			"only the following media types are accepted: application/json");
	api_status_set(status, 406, "NotAcceptable",
		"406: Not Acceptable\n\nAvailable representations: application/json, "
		"application/json;stream=watch");
	status->has_details = true;
	return 406;
}

int api_accept_check(const struct api_accept *accept, bool is_list, const char *package,
	const char *kind, struct api_status *status)
{
	bool fits = is_list ? accept->form != API_FORM_METADATA
			    : accept->form != API_FORM_METADATA_LIST;

	if (fits)
		return 0;
	/* The API server names its own structure: *core.PodList, *apps.Deployment. */
	api_status_set(status, 406, "NotAcceptable",
		is_list ? "you requested PartialObjectMetadata, but the requested object is a list "
			  "(*%.*s.%s)"
			: "you requested PartialObjectMetadataList, but the requested object is "
			  "not a list (*%.*s.%s)",
		(int)strcspn(package, "."), package, kind);
	return 406;
}

bool api_accept_gzip(struct bytes header)
{
	while (header.size)
		if (bytes_equal(api_accept_take(&header, ','), BYTES_LIT("gzip")))
			return true;
	return false;
}
