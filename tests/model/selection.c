/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/selection.h"

#include <stdio.h>

#include "tests/model/world.h"

static const char *const indexes[TERM_KINDS] = {NULL, "namespace", "label", "node", "pair"};

static void write_labels(struct selection *s)
{
	unsigned a = s->label_node, b = s->other_label;

	if (s->label == LABEL_IS)
		(void)snprintf(s->labels, sizeof(s->labels), "n=%u", a);
	else if (s->label == LABEL_IS_NOT)
		(void)snprintf(s->labels, sizeof(s->labels), "n!=%u", a);
	else if (s->label == LABEL_IN)
		(void)snprintf(s->labels, sizeof(s->labels), "n in (%u,%u)", a, b);
	else if (s->label == LABEL_NOT_IN)
		(void)snprintf(s->labels, sizeof(s->labels), "n notin (%u)", a);
	else if (s->label == LABEL_EXISTS)
		(void)snprintf(s->labels, sizeof(s->labels), "n");
}

static void write_fields(struct selection *s)
{
	unsigned node = s->field_node;

	if (s->field == FIELD_NODE)
		(void)snprintf(s->fields, sizeof(s->fields), "spec.nodeName=node-%u", node);
	else if (s->field == FIELD_NOT_NODE)
		(void)snprintf(s->fields, sizeof(s->fields), "spec.nodeName!=node-%u", node);
	else if (s->field == FIELD_NOT_NAME)
		(void)snprintf(s->fields, sizeof(s->fields), "metadata.name!=k%02d", s->field_key);
	else if (s->field == FIELD_BOTH)
		(void)snprintf(s->fields, sizeof(s->fields),
			"metadata.namespace=ns%d,spec.nodeName!=node-%u", s->field_key % KEY_GROUPS,
			node);
}

static void write_term(struct selection *s)
{
	if (s->term == TERM_NAMESPACE)
		(void)snprintf(s->value, sizeof(s->value), "ns%d", s->term_key % KEY_GROUPS);
	else if (s->term == TERM_LABEL)
		(void)snprintf(s->value, sizeof(s->value), "n=%u", s->term_node);
	else if (s->term == TERM_NODE)
		(void)snprintf(s->value, sizeof(s->value), "node-%u", s->term_node);
	else if (s->term == TERM_PAIR)
		(void)snprintf(
			s->value, sizeof(s->value), "node-%u,k%02d", s->term_node, s->term_key);
}

/* Returns a random kind; 0, no condition, in two of three cases. */
static unsigned kind(struct world *world, unsigned kinds)
{
	return world_random(world, 3) ? 0 : world_random(world, kinds);
}

void selection_random(struct world *world, bool terms, struct selection *ret_selection)
{
	struct selection *s = ret_selection;

	*s = (struct selection){.group = -1, .tens = -1};
	if (world_random(world, 4) == 0)
		s->group = (int)world_random(world, KEY_GROUPS);
	if (world_random(world, 6) == 0)
		s->tens = (int)world_random(world, 2);
	s->label = kind(world, LABEL_KINDS);
	s->field = kind(world, FIELD_KINDS);
	s->term = kind(world, terms ? TERM_KINDS : TERM_NODE);
	s->label_node = world_random(world, NODES);
	s->other_label = world_random(world, NODES);
	s->field_node = world_random(world, NODES);
	s->term_node = world_random(world, NODES);
	s->field_key = (int)world_random(world, KEYS);
	s->term_key = (int)world_random(world, KEYS);
	if (s->group >= 0)
		(void)snprintf(s->namespace_, sizeof(s->namespace_), "ns%d", s->group);
	if (s->tens >= 0)
		(void)snprintf(s->prefix, sizeof(s->prefix), "k%d", s->tens);
	write_labels(s);
	write_fields(s);
	write_term(s);
}

/* ---- predicate ---------------------------------------------------------- */

static bool takes_label(const struct selection *s, unsigned node)
{
	switch (s->label) {
	case LABEL_IS:
		return node == s->label_node;
	case LABEL_IS_NOT:
	case LABEL_NOT_IN:
		return node != s->label_node;
	case LABEL_IN:
		return node == s->label_node || node == s->other_label;
	default:
		return true;
	}
}

static bool takes_field(const struct selection *s, int key, unsigned node)
{
	switch (s->field) {
	case FIELD_NODE:
		return node == s->field_node;
	case FIELD_NOT_NODE:
		return node != s->field_node;
	case FIELD_NOT_NAME:
		return key != s->field_key;
	case FIELD_BOTH:
		return key % KEY_GROUPS == s->field_key % KEY_GROUPS && node != s->field_node;
	default:
		return true;
	}
}

static bool takes_term(const struct selection *s, int key, unsigned node)
{
	switch (s->term) {
	case TERM_NAMESPACE:
		return key % KEY_GROUPS == s->term_key % KEY_GROUPS;
	case TERM_LABEL:
	case TERM_NODE:
		return node == s->term_node;
	case TERM_PAIR:
		return node == s->term_node && key == s->term_key;
	default:
		return true;
	}
}

bool selection_takes(const struct selection *s, int key, const struct object *object)
{
	return object->there && (s->group < 0 || key % KEY_GROUPS == s->group) &&
	       (s->tens < 0 || key / 10 == s->tens) && takes_label(s, object->node) &&
	       takes_field(s, key, object->node) && takes_term(s, key, object->node);
}

/* ---- query -------------------------------------------------------------- */

static const char *text(const char *text)
{
	return *text ? text : NULL;
}

void selection_query(const struct selection *s, const char *feed, struct kinf_term *term,
	struct kinf_query *ret_query)
{
	*term = (struct kinf_term){indexes[s->term], s->value};
	*ret_query = (struct kinf_query){
		.size = sizeof(*ret_query),
		.feed = feed,
		.namespace_ = text(s->namespace_),
		.prefix = text(s->prefix),
		.label_selector = text(s->labels),
		.field_selector = text(s->fields),
		.terms = s->term ? term : NULL,
		.n_terms = s->term ? 1 : 0,
	};
}

const char *selection_index(const struct selection *s)
{
	return indexes[s->term];
}
