/* SPDX-License-Identifier: Apache-2.0 */
/* Content negotiation (docs/protocol.md 2.1): the form of objects for a request. */
#ifndef SERVE_API_API_ACCEPT_H
#define SERVE_API_API_ACCEPT_H

#include "serve/api/api_status.h"

enum api_form {
	API_FORM_OBJECT,        /* JSON as it is */
	API_FORM_TABLE,         /* meta.k8s.io/v1 Table */
	API_FORM_METADATA,      /* PartialObjectMetadata: of single objects and watches */
	API_FORM_METADATA_LIST, /* PartialObjectMetadataList: of lists */
	API_FORM_DISCOVERY,     /* apidiscovery.k8s.io APIGroupDiscoveryList */
	API_FORM_MAX
};

struct api_accept {
	enum api_form form;
	const char *version; /* of the conversion: "v1", "v1beta1", "v2", "v2beta1"; static */
	bool protobuf;       /* in place of JSON; of metadata of v1 only */
	bool pretty;
};

/* Chooses a form for the Accept HEADER; no data: there is none. DISCOVERY: with the conversions of
 * /api and /apis. Returns: 0; 406. */
int api_accept_parse(struct bytes header, bool discovery, struct api_accept *ret_accept,
	struct api_status *status);

/* Refuses a form of one object for a list, or the reverse, of KIND in group PACKAGE. Returns: 0,
 * 406. */
int api_accept_check(const struct api_accept *accept, bool is_list, const char *package,
	const char *kind, struct api_status *status);

/* Returns whether Accept-Encoding has the token gzip. */
bool api_accept_gzip(struct bytes header);

#endif
