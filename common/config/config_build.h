/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of config*.c: from nodes and texts to a checked struct config. Each value is read at a
 * place, so that every refusal can say "FILE:LINE: KEY: what is wrong and what is allowed".
 */
#ifndef COMMON_CONFIG_CONFIG_BUILD_H
#define COMMON_CONFIG_CONFIG_BUILD_H

#include "common/config/config.h"
#include "common/value/yaml.h"

struct place {
	const char *file; /* NULL: command line, KEY is the option */
	size_t line;
	char key[256];
};

/* Member KEY of the map at OUTER, item I of the list at OUTER. */
struct place place_member(const struct place *outer, const char *key, size_t line);
struct place place_item(const struct place *outer, size_t i, size_t line);

/* Returns ERR_CONFIG with the sentence. */
int place_bad(const struct place *place, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));
/* The same for a sentence that another module has set for CODE (-ENOMEM stays what it is). */
int place_refuse(const struct place *place, int code);

typedef int config_read_fn(const struct place *place, const struct yaml_node *node, void *to);

struct config_key {
	const char *name;
	config_read_fn *read_fn;
	size_t offset; /* of what it sets in the struct that the map describes */
};

/* A map whose keys are all in KEYS; null members count as absent. */
int config_read_map(const struct place *place, const struct yaml_node *node,
	const struct config_key *keys, void *into);

/* Readers of single values; TO is char **, bool *, uint32_t * or uint64_t *. */
config_read_fn config_read_text, config_read_path, config_read_duration, config_read_size;

/* Numbers from MIN to MAX. */
int config_read_number(const struct place *place, const struct yaml_node *node, uint32_t min,
	uint32_t max, uint32_t *to);

/* The policies' keys, which stand beside the others at the top of the file. TO is the struct
 * config_policy. */
config_read_fn config_read_list_concurrency, config_read_watch_timeout, config_read_backoff,
	config_read_timeouts, config_read_recheck, config_read_object_size, config_read_check,
	config_read_hold, config_read_streaming;

/* One of the words of NAMES (NULL at the end); its place in them. */
int config_choice(const struct place *place, const char *text, const char *const *names,
	unsigned *ret_choice);

/* A scalar that is one of two words of NAMES: sets *TO to whether it is the second. */
int config_read_either(const struct place *place, const struct yaml_node *node,
	const char *const *names, bool *to);

/* Text of a scalar that is not empty, borrowed. */
int config_scalar(const struct place *place, const struct yaml_node *node, const char **ret_text);

/* Sets *TO (freed before) to a copy. */
int config_set(char **to, const char *text);
/* Appends a copy to a list of N texts. */
int config_append(char ***list, size_t *n, const char *text);
/* Sets *TO to PATH as an absolute path: ~ is the home directory, relative ones begin in BASE, or in
 * the working directory when BASE is NULL. */
int config_set_path(char **to, const char *path, const char *base);

/* Feeds: the list under `feeds`; --watch and --index; what holds for all together. */
int config_read_feeds(const struct place *place, const struct yaml_node *node, void *config);
int config_watch(struct config *config, const char *text);
int config_add_index(struct config *config, const char *text);
int config_check_feeds(const struct config *config);

/* Parts of one feed, for both ways in. */
struct config_feed *config_new_feed(struct config *config);
int config_set_resource(const struct place *place, const char *text, struct config_feed *feed);
int config_set_name(const struct place *place, const char *text, struct config_feed *feed);
int config_add_namespace(const struct place *place, const char *text, struct config_feed *feed);
int config_set_labels(const struct place *place, const char *text, struct config_feed *feed);
int config_set_fields(const struct place *place, const char *text, struct config_feed *feed);
/* Wildcards: whether TEXT is meant as one; its parts; what holds when all of the entry was read. */
bool config_is_wildcard(const char *text);
int config_set_wildcard(const struct place *place, const char *text, struct config_feed *feed);
int config_add_exclude(const struct place *place, const char *text, struct config_feed *feed);
int config_finish_wildcard(const struct place *place, struct config_feed *feed);
/* What was not given. */
int config_default_feed(struct config_feed *feed);
int config_new_index(const struct place *place, const char *name, struct config_feed *feed,
	struct config_index **ret_index);
int config_add_index_path(const struct place *place, const char *text, struct config_index *index);

#endif
