/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/cluster/discovery.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/value/json.h"
#include "reflector/cluster/catalogue.h"
#include "reflector/net/fetch.h"
#include "reflector/net/http.h"
#include "reflector/net/status.h"

#define DISCOVERY_MAGIC 0x44495343u
#define BELIEVED_NS     (600 * SECOND_NS)
#define RECHECK_NS      (10 * SECOND_NS)
#define ANSWER_NS       (32 * SECOND_NS) /* as client-go */
/* A resource has a few hundred bytes; parsed it takes several times as much. */
#define ANSWER_MAX ((size_t)16 << 20)
#define PLACES_MAX 4096 /* requests to a server without aggregated discovery */
#define N_ROOTS    2    /* /api and /apis */

#define ACCEPT \
	"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," \
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList," \
	"application/json"

/* One running request: /api, /apis, or one group and version of a server without aggregated
 * discovery. */
struct discovery_part {
	struct discovery *discovery;
	struct discovery_part *next, **link;
	struct fetch *fetch;
	bool root;
	uint64_t group_at, version_at;
	char group[254], version[64];
};

struct discovery {
	uint32_t magic;
	struct http *http;
	discovery_ready_fn *on_ready;
	void *arg;
	struct json_parser *parser;
	struct buf document;

	struct catalogue catalogue;
	char etags[N_ROOTS][HTTP_ETAG_SIZE]; /* of the documents it was made from */
	bool keep;
	struct buf kept[N_ROOTS]; /* aggregated documents, as they came; empty: none */
	char kept_etags[N_ROOTS][HTTP_ETAG_SIZE];
	bool known, expired;
	uint64_t known_ns; /* monotonic: when its fetch began */
	uint64_t ended_ns; /* ... and ended */
	uint64_t recheck_ns;

	/* The running fetch. */
	struct discovery_part *parts;
	struct catalogue filling;
	char filling_etags[N_ROOTS][HTTP_ETAG_SIZE];
	unsigned unchanged; /* documents answered 304 */
	unsigned places;    /* requests for groups and versions */
	uint64_t began_ns;
	int result; /* the first error, which ends the whole fetch */
	char *sentence;
};

/* ---- requests ----------------------------------------------------------- */

static void part_free(struct discovery_part **part)
{
	struct discovery_part *p = *part;

	*part = NULL;
	if (!p)
		return;
	if (p->link) {
		*p->link = p->next;
		if (p->next)
			p->next->link = p->link;
	}
	fetch_cancel(&p->fetch);
	free(p);
}

static void part_done(void *arg, const struct fetch_answer *answer);

static int part_start(
	struct discovery *discovery, const char *path, const struct catalogue_place *place)
{
	CLEANUP(part_free) struct discovery_part *part = calloc(1, sizeof(*part));
	struct fetch_request request = {
		.path = path,
		.accept = place->version ? NULL : ACCEPT,
		.etag = place->version ? NULL : discovery->etags[place->group_at],
		.limit = ANSWER_MAX,
		.total_ns = ANSWER_NS,
		.done = part_done,
		.arg = part,
	};
	int r;

	if (!part)
		return err_set(-ENOMEM, "discovery");
	part->discovery = discovery;
	part->root = !place->version;
	part->group_at = place->group_at;
	part->version_at = place->version_at;
	(void)snprintf(part->group, sizeof(part->group), "%s", place->group);
	(void)snprintf(
		part->version, sizeof(part->version), "%s", place->version ? place->version : "");
	r = fetch_start(discovery->http, &request, &part->fetch);
	if (r < 0)
		return r;
	part->next = discovery->parts;
	part->link = &discovery->parts;
	if (part->next)
		part->next->link = &part->next;
	discovery->parts = part;
	part = NULL;
	return 0;
}

/* ---- answers ------------------------------------------------------------ */

/* Parses the answer into discovery->document, valid until the next call. */
static int discovery_parse(struct discovery *discovery, const struct fetch_answer *answer)
{
	buf_reset(&discovery->document);
	if (status_is_web_page(answer->body))
		return err_say(ERR_PROTOCOL, STATUS_WEB_PAGE);
	return json_parse(discovery->parser, answer->body, NULL, &discovery->document);
}

static int discovery_start_place(void *arg, const struct catalogue_place *place)
{
	struct discovery *discovery = arg;
	char path[400];

	if (++discovery->places > PLACES_MAX)
		return err_say(
			ERR_TOO_LARGE, "discovery: more than %d groups and versions", PLACES_MAX);

	(void)snprintf(path, sizeof(path), *place->group ? "/apis/%s/%s" : "/api%s/%s",
		place->group, place->version);
	return part_start(discovery, path, place);
}

/* Reads the answer to /api or /apis: all resources, or without aggregated discovery only the
 * groups. */
static int part_read_root(struct discovery_part *part, const struct fetch_answer *answer)
{
	struct discovery *discovery = part->discovery;
	struct buf *kept = &discovery->kept[part->group_at];
	bool core = part->group_at == 0;
	struct status why;
	int r = answer->result;

	if (r < 0)
		return err_add(r, "discovery");
	if (answer->status == 304 && *discovery->etags[part->group_at]) {
		discovery->unchanged++;
		return 0;
	}
	if (core && answer->status == 404)
		return 0; /* a server without the core group */
	if (answer->status != 200) {
		status_read(answer->status, 0, answer->body, &why);
		return err_say(answer->status == 403 ? ERR_FORBIDDEN : ERR_HTTP,
			"discovery: %s: HTTP %s", core ? "/api" : "/apis", why.text);
	}
	r = discovery_parse(discovery, answer);
	if (r < 0)
		return err_add(r, "discovery: %s", core ? "/api" : "/apis");
	if (strstr(answer->content_type, "as=APIGroupDiscoveryList")) {
		if (discovery->keep) {
			buf_reset(kept);
			buf_bytes_put(kept, answer->body);
			(void)snprintf(discovery->kept_etags[part->group_at], HTTP_ETAG_SIZE, "%s",
				answer->etag);
			if (buf_error(kept) < 0)
				buf_release(kept); /* the document before it stays in the store */
		}
		memcpy(discovery->filling_etags[part->group_at], answer->etag,
			strnlen(answer->etag, sizeof(discovery->etags[0]) - 1));
		return catalogue_add_aggregated(
			&discovery->filling, buf_bytes(&discovery->document), part->group_at);
	}
	return catalogue_each_place(
		buf_bytes(&discovery->document), part->group_at, discovery_start_place, discovery);
}

/* Reads the resources of one group and version. On failure they are marked as broken. */
static int part_read_place(struct discovery_part *part, const struct fetch_answer *answer)
{
	struct discovery *discovery = part->discovery;
	struct catalogue_place place = {.group = part->group,
		.version = part->version,
		.group_at = part->group_at,
		.version_at = part->version_at};

	int r = answer->result;

	if (r == 0 && answer->status == 200) {
		r = discovery_parse(discovery, answer);
		if (r == 0)
			return catalogue_add_resources(
				&discovery->filling, buf_bytes(&discovery->document), &place);
	}
	if (r < 0)
		err_ignore(r, "finding a resource of this group reports that the group is broken");
	return catalogue_add_broken(&discovery->filling, part->group, part->version);
}

/* ---- the whole fetch ---------------------------------------------------- */

static void discovery_drop_parts(struct discovery *discovery)
{
	while (discovery->parts) {
		struct discovery_part *part = discovery->parts;

		part_free(&part);
	}
}

static void discovery_fail(struct discovery *discovery, int result)
{
	if (discovery->result)
		return;
	discovery->result = result;
	discovery->sentence = strdup(err_text(result));
}

static int discovery_start(struct discovery *discovery);

/* Ends the fetch after its last request: replaces the catalogue, or reports the error. */
static void discovery_finish(struct discovery *discovery)
{
	buf_trim(&discovery->document, 0);
	if (!discovery->result && discovery->unchanged % N_ROOTS) {
		/* One of two changed, and the content of the unchanged one is not kept: fetch both
		 * again. */
		memset(discovery->etags, 0, sizeof(discovery->etags));
		int r = discovery_start(discovery);
		if (r == 0)
			return;
		discovery_fail(discovery, r);
	}
	int result = discovery->result;
	if (!result) {
		if (!discovery->unchanged) {
			catalogue_sort(&discovery->filling);
			catalogue_release(&discovery->catalogue);
			discovery->catalogue = discovery->filling;
			discovery->filling = (struct catalogue){NULL};
			memcpy(discovery->etags, discovery->filling_etags,
				sizeof(discovery->etags));
		}
		discovery->known = true;
		discovery->expired = false;
		discovery->known_ns = discovery->began_ns;
		discovery->ended_ns = proc_monotonic_ns();
	} else {
		(void)err_say(
			result, "%s", discovery->sentence ? discovery->sentence : err_name(result));
	}
	discovery->on_ready(discovery->arg, result);
}

static void part_done(void *arg, const struct fetch_answer *answer)
{
	struct discovery_part *part = arg;
	struct discovery *discovery = part->discovery;
	int r;

	part->fetch = NULL;
	r = part->root ? part_read_root(part, answer) : part_read_place(part, answer);
	part_free(&part);
	if (r < 0) {
		discovery_fail(discovery, r);
		discovery_drop_parts(discovery);
	}
	if (!discovery->parts)
		discovery_finish(discovery);
}

static int discovery_start(struct discovery *discovery)
{
	int r;

	catalogue_release(&discovery->filling);
	memset(discovery->filling_etags, 0, sizeof(discovery->filling_etags));
	discovery->unchanged = discovery->places = 0;
	discovery->result = 0;
	free(discovery->sentence);
	discovery->sentence = NULL;
	discovery->began_ns = proc_monotonic_ns();
	r = part_start(discovery, "/api", &(struct catalogue_place){.group = "", .group_at = 0});
	if (!r)
		r = part_start(
			discovery, "/apis", &(struct catalogue_place){.group = "", .group_at = 1});
	if (r < 0)
		discovery_drop_parts(discovery);
	return r;
}

/* ---- interface ---------------------------------------------------------- */

int discovery_new(struct http *http, discovery_ready_fn *on_ready, void *arg,
	struct discovery **ret_discovery)
{
	CLEANUP(discovery_free) struct discovery *discovery = calloc(1, sizeof(*discovery));
	int r;

	if (!discovery)
		return err_set(-ENOMEM, "discovery");
	discovery->magic = DISCOVERY_MAGIC;
	discovery->http = http;
	discovery->on_ready = on_ready;
	discovery->arg = arg;
	discovery->recheck_ns = RECHECK_NS;
	r = json_parser_new(&discovery->parser);
	if (r < 0)
		return r;
	*ret_discovery = TAKE(discovery);
	return 0;
}

void discovery_free(struct discovery **discovery)
{
	struct discovery *d = *discovery;

	*discovery = NULL;
	if (!d)
		return;
	CHECK_OBJ(d, DISCOVERY_MAGIC);
	discovery_drop_parts(d);
	catalogue_release(&d->catalogue);
	catalogue_release(&d->filling);
	buf_release(&d->document);
	for (size_t i = 0; i < N_ROOTS; i++)
		buf_release(&d->kept[i]);
	json_parser_free(&d->parser);
	free(d->sentence);
	d->magic = 0;
	free(d);
}

void discovery_keep(struct discovery *discovery, bool keep)
{
	CHECK_OBJ(discovery, DISCOVERY_MAGIC);
	/* Unchanged documents are not sent again. */
	if (keep && !discovery->keep)
		memset(discovery->etags, 0, sizeof(discovery->etags));
	discovery->keep = keep;
}

struct buf *discovery_kept(struct discovery *discovery, unsigned at, const char **ret_etag)
{
	CHECK_OBJ(discovery, DISCOVERY_MAGIC);
	REQUIRE(at < N_ROOTS);
	*ret_etag = discovery->kept_etags[at];
	return &discovery->kept[at];
}

void discovery_set_recheck(struct discovery *discovery, uint64_t recheck_ns)
{
	CHECK_OBJ(discovery, DISCOVERY_MAGIC);
	discovery->recheck_ns = recheck_ns;
}

void discovery_expire(struct discovery *discovery)
{
	CHECK_OBJ(discovery, DISCOVERY_MAGIC);
	discovery->expired = true;
}

int discovery_find(struct discovery *discovery, const char *name, struct resource *ret_resource)
{
	uint64_t now = proc_monotonic_ns(), age = now - discovery->known_ns;
	int r;

	CHECK_OBJ(discovery, DISCOVERY_MAGIC);
	if (discovery->known && !discovery->expired && age < BELIEVED_NS) {
		r = catalogue_find(&discovery->catalogue, name, ret_resource);
		if (r == FOUND || r == ERR_CONFIG || r == -ENOMEM ||
			now - discovery->ended_ns < discovery->recheck_ns)
			return r;
	}
	r = discovery->parts ? 0 : discovery_start(discovery);
	return r < 0 ? r : AGAIN;
}

int discovery_refresh(struct discovery *discovery, uint64_t max_age_ns)
{
	CHECK_OBJ(discovery, DISCOVERY_MAGIC);
	if (discovery->known && !discovery->expired &&
		proc_monotonic_ns() - discovery->ended_ns < max_age_ns)
		return FOUND;
	int r = discovery->parts ? 0 : discovery_start(discovery);
	return r < 0 ? r : AGAIN;
}

int discovery_known(
	const struct discovery *discovery, const char *name, struct resource *ret_resource)
{
	CHECK_OBJ(discovery, DISCOVERY_MAGIC);
	return catalogue_find(&discovery->catalogue, name, ret_resource);
}

const struct resource *discovery_next(const struct discovery *discovery, size_t *at)
{
	const struct catalogue *catalogue = &discovery->catalogue;

	CHECK_OBJ(discovery, DISCOVERY_MAGIC);
	while (*at < catalogue->count && !catalogue->at[*at].usable)
		++*at;
	return *at < catalogue->count ? &catalogue->at[(*at)++].resource : NULL;
}
