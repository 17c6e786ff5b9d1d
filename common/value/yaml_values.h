/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads API objects from a stream of YAML as msgpack documents (common/value/value.h), with libyaml
 * and kubectl's rules for plain words (YAML 1.1: yes, 0644). The items of a List come out one by
 * one, then the List with items: null. So only one object is in memory.
 *
 * Aliases are copied, up to 16 MiB a document; merge keys and tags are refused. An object that
 * can't be read does not end the stream; after bad syntax it goes on at the next "---".
 */
#ifndef COMMON_VALUE_YAML_VALUES_H
#define COMMON_VALUE_YAML_VALUES_H

#include "common/buf.h"
#include "common/bytes.h"

struct yaml_value {
	struct bytes body;              /* a map; borrowed until the callback returns */
	struct bytes kind, api_version; /* of its List, if they came before it; else empty */
	size_t line;                    /* from 1 */
	int error;                      /* negative, with its sentence: it can't be read */
};

struct yaml_values_options {
	/* Reads up to SIZE bytes. Returns: 0, *RET_SIZE is 0 at the end; errors. */
	int (*read)(void *arg, void *room, size_t size, size_t *ret_size);
	/* Takes an object. A negative result ends the reading and is returned by it. */
	int (*value)(void *arg, const struct yaml_value *value);
	void *arg;
	size_t value_max; /* bytes of an object, as YAML and as msgpack */
};

/* Reads the whole stream. Returns: 0; ERR_SYNTAX, ERR_TOO_LARGE with *RET_LINE; a negative result
 * of the callbacks; -ENOMEM. */
int yaml_values(const struct yaml_values_options *options, size_t *ret_line);

#endif
