/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the config group: from YAML nodes and texts to a checked struct config.
 * Each value has a place, for errors of the form "FILE:LINE: KEY: cause and allowed values".
 */
#ifndef COMMON_CONFIG_CONFIG_INTERNAL_H
#define COMMON_CONFIG_CONFIG_INTERNAL_H

#include "common/config/config.h"
#include "common/value/yaml.h"

/* ---- places ------------------------------------------------------------- */

struct config_place {
	const char *file; /* NULL: the command line; KEY is the option */
	size_t line;
	char key[256];
};

/* Return the place of member KEY of the map at OUTER, or of item I of the list at OUTER. */
struct config_place config_place_member(
	const struct config_place *outer, const char *key, size_t line);
struct config_place config_place_item(const struct config_place *outer, size_t i, size_t line);

/* Returns ERR_CONFIG with a sentence that begins with the place. */
int config_refuse(const struct config_place *place, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));
/* Returns ERR_CONFIG with the place and the sentence of CODE; a negative errno passes through. */
int config_refuse_code(const struct config_place *place, int code);

/* ---- variables ---------------------------------------------------------- */

/* Expands ${NAME} from the environment in all values of the tree NODE; $${ becomes ${. Returns: 0;
 * ERR_CONFIG: a variable is not set or empty; -ENOMEM. */
int config_expand(const struct config_place *outer, struct yaml_node *node);

/* ---- keys --------------------------------------------------------------- */

enum config_type {
	CONFIG_TEXT,             /* char * */
	CONFIG_PATH,             /* char *, absolute */
	CONFIG_CHOICE,           /* bool: the second of two words */
	CONFIG_SWITCH,           /* bool */
	CONFIG_NUMBER,           /* uint32_t */
	CONFIG_DURATION,         /* uint64_t, nanoseconds */
	CONFIG_DURATION_OR_NONE, /* the same, or 0: none */
	CONFIG_SIZE,             /* uint64_t, bytes */
	CONFIG_SHARE,            /* uint32_t, percent; 0: off */
	CONFIG_WORD,             /* uint32_t: the number of one of several words, from 1 on */
	CONFIG_ADDRESSES,        /* char *: with blanks between them */
	CONFIG_RULES,            /* char *: struct config_serve, allow */
	CONFIG_FEEDS,
	/* The types of struct config_feed: */
	CONFIG_RESOURCE,
	CONFIG_NAME,
	CONFIG_LABELS,
	CONFIG_FIELDS,
	CONFIG_NAMESPACES, /* these three are lists of texts */
	CONFIG_DROP,
	CONFIG_EXCLUDE,
	CONFIG_INDEXES,
	CONFIG_TYPE_MAX
};

/* One line of config.def. */
struct config_key {
	const char *name;
	enum config_type type;
	size_t offset; /* in the struct of the table */
	const char *minimum, *maximum, *initial;
	unsigned restart; /* enum config_user */
};

extern const struct config_key config_keys[], config_feed_keys[];

/* Returns whether a key of the type, at the top level, has a text of its own. */
bool config_is_text(enum config_type type);

/* Sets the defaults of KEYS in INTO, a zeroed struct. */
int config_set_defaults(const struct config_key *keys, void *into);
/* Reads the map NODE into INTO. KEYS has all its keys, after PREFIX ("" or "retention."). A null
 * value counts as absent. */
int config_read_map(const struct config_place *place, const struct yaml_node *node,
	const struct config_key *keys, const char *prefix, void *into);
/* Checks TEXT and sets the value of the key NAME of KEYS in INTO, or appends TEXT if it is a
 * list. */
int config_set(const struct config_place *place, const struct config_key *keys, const char *name,
	const char *text, void *into);

/* Sets *RET_TEXT to the text of a nonempty scalar, borrowed from NODE. */
int config_scalar(
	const struct config_place *place, const struct yaml_node *node, const char **ret_text);

/* Replaces *TO, or appends to a list, with a copy of TEXT. */
int config_copy(char **to, const char *text);
int config_append(char ***list, size_t *n, const char *text);
void config_free_list(char **list, size_t n);

/* ---- feeds -------------------------------------------------------------- */

/* Appends a feed with the defaults. */
int config_new_feed(struct config *config, struct config_feed **ret_feed);
void config_free_feeds(struct config *config);
/* Checks and completes the last feed of CONFIG. PLACE is where it was written; NODE is NULL for
 * --watch. */
int config_finish_feed(
	const struct config_place *place, const struct yaml_node *node, struct config *config);
/* Refuses more feeds than the rows of a status page. */
int config_check_count(const struct config_place *place, const struct config *config);

int config_read_feeds(
	const struct config_place *place, const struct yaml_node *node, struct config *config);
int config_read_list(const struct config_place *place, const struct yaml_node *node,
	const struct config_key *key, struct config_feed *feed);
int config_read_indexes(
	const struct config_place *place, const struct yaml_node *node, struct config_feed *feed);
/* Checks TEXT and sets or extends the value of TYPE. */
int config_set_feed_value(const struct config_place *place, enum config_type type, const char *text,
	struct config_feed *feed);

int config_new_index(const struct config_place *place, const char *name, struct config_feed *feed,
	struct config_index **ret_index);
int config_add_index_path(
	const struct config_place *place, const char *text, struct config_index *index);
/* Refuses an index of fields that FEED does not keep. */
int config_check_index(const struct config_place *place, const struct config_feed *feed,
	const struct config_index *index);

int config_set_wildcard(
	const struct config_place *place, const char *text, struct config_feed *feed);
int config_add_exclude(
	const struct config_place *place, const char *text, struct config_feed *feed);

/* ---- the section serve -------------------------------------------------- */

int config_read_addresses(
	const struct config_place *place, const struct yaml_node *node, char **list);
/* Reads a list of rules (struct config_serve, allow). */
int config_read_rules(
	const struct config_place *place, const struct yaml_node *node, char **ret_rules);
/* Lays --serve over CONFIG: the Unix socket and ADDRESSES, or the file's addresses if "". */
int config_lay_serve_flag(struct config *config, const char *addresses);
/* Forgets the line of KEY: its value is not the file's. */
void config_forget_line(struct config *config, const char *key);
/* Checks keys against each other. */
int config_check_serve(const struct config_place *place, const struct config *config);

/* ---- the command line --------------------------------------------------- */

int config_lay_flags(struct config *config, const struct config_flags *flags);

#endif
