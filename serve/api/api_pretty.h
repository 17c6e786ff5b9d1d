/* SPDX-License-Identifier: Apache-2.0 */
/* Indents compact JSON by two spaces, as the API server does for people (docs/protocol.md 2.3),
 * piece by piece: a piece may end anywhere. */
#ifndef SERVE_API_API_PRETTY_H
#define SERVE_API_API_PRETTY_H

#include "common/buf.h"

struct api_pretty {
	size_t depth;
	bool in_string, after_escape;
	bool opened; /* the last character has opened a container: it may be empty */
};

/* Appends JSON, the next piece, to OUT. The line break after a document is left out. */
void api_pretty_put(struct api_pretty *pretty, struct bytes json, struct buf *out);

#endif
