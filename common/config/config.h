/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf.yaml and the command line of all programs, as kinf(1) and kinf.yaml(5) describe them.
 * Loading checks everything: unknown keys, bad values, duplicate names are errors that name file, line and key.
 * Names of resources stay text here; the reflector resolves them by discovery.
 *
 * A config owns all it points to, until config_free. The only file with yaml.h is yaml.c, which
 * config.c and the reflector's kubeconfig.c read documents through.
 */
#ifndef COMMON_CONFIG_CONFIG_H
#define COMMON_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/log.h"
#include "common/options.h"

struct config_index {
	char *name;
	char **paths; /* canonical; more than one: compound, in this order */
	size_t n_paths;
};

struct config_feed {
	char *name;         /* default: the resource as written */
	char *resource;     /* plural[.version][.group] or a short name, as written; or a wildcard */
	bool wildcard;      /* "*" or "*[.VERSION][.GROUP]": a feed of each resource that config_covers() */
	char **exclude;     /* of a wildcard: PLURAL (of any group) or PLURAL.GROUP */
	size_t n_exclude;
	char **namespaces;  /* none: all */
	size_t n_namespaces;
	char *label_selector; /* canonical, "" when none */
	char *field_selector;
	bool metadata_only; /* objects: metadata */
	char **drop;        /* canonical paths */
	size_t n_drop;
	struct config_index *indexes;
	size_t n_indexes;
	uint32_t page_size;  /* 1..100000, default 500 */
	uint64_t resync_ns;  /* default of informers; 0: none, else 1s to 3650d */
	bool drop_gone;      /* whenGone: drop: without its resource the objects go too */
	size_t line;         /* in the file; 0: command line */
};

/* How the API server is asked, as those tune it who run client-go at scale (README.md, Policies). */
struct config_policy {
	uint32_t list_concurrency;   /* lists that may run at once; default 4 */
	uint64_t watch_ns;           /* the server is asked to end a watch after this to twice this; 5m */
	uint64_t backoff_min_ns;     /* the first pause is of this to twice this; 800ms */
	uint64_t backoff_max_ns;     /* and the longest of this to twice this; 15s */
	uint64_t connect_ns;         /* to a connection, TLS included; 10s */
	uint64_t answer_ns;          /* to an answer's head, and between two parts of it; 60s */
	uint64_t silence_ns;         /* nothing heard on a connection: a watch on it asks again; 2m */
	uint64_t recheck_ns;         /* what is forbidden or absent is tried again after this to twice
					this, and wildcards are looked up; 15s */
	bool streaming_lists;        /* lists as watch streams where the server can (watch-list); no */
	uint64_t max_object_bytes;   /* of JSON; larger ones are passed over; default 64 MiB */
	uint64_t check_ns;           /* between two consistency checks of a feed; 0, the default: none */
	uint32_t hold_percent;       /* 1..99: lists that would delete more are held; 0, default: none */
	uint64_t hold_pause_ns;      /* before the second list; default 30s */
};
/* As when nothing is configured. */
struct config_policy config_policy_default(void);

struct config {
	char *file;           /* NULL: no file was read */
	char *kubeconfig;     /* NULL: default rules */
	char *context;        /* NULL: current-context */
	char *store;          /* default applied, absolute */
	char *runtime_dir;    /* default applied, absolute: the parent of kinf-<store id> */
	bool durable;         /* durability: disk */
	uint64_t retention_ns;
	uint64_t retention_bytes;
	uint64_t map_bytes;   /* largest size of one environment; default 64 GiB */
	char *group;          /* NULL: owner only */
	uint64_t cursor_ns;   /* a cursor not written for this long expires; default 7 days */
	struct config_policy policy;
	struct config_feed *feeds;
	size_t n_feeds;
	enum log_format log_format;
	enum log_level log_level;
};

/* Values of the common flags; NULL and 0 where not given. */
struct config_flags {
	const char *store, *runtime_dir, *file, *log_format;
	unsigned verbose;
	/* Of those that run: */
	const char *kubeconfig, *context, *durability;
	struct option_texts watch; /* RESOURCE or 'RESOURCE:NAME(-n NS -l SEL --field-selector SEL)' */
	struct option_texts index; /* FEED/NAME=PATH[,PATH] */
};
/* Of a name of a feed or resource as it is written; of "plural.group" as a server may have it. */
#define CONFIG_NAME_MAX       200
#define CONFIG_FULL_NAME_SIZE 320

/* FEED is a wildcard, and this resource one of those it stands for. */
bool config_covers(const struct config_feed *feed, const char *group, const char *version,
	const char *plural);
/* The entry that a stored feed of this name and resource belongs to: the one of its name, else the first
 * wildcard that covers it; NULL: none. */
const struct config_feed *config_find_feed(const struct config *config, const char *name,
	const char *group, const char *version, const char *plural);

void config_flags_release(struct config_flags *flags);
/* For what is logged before the configuration is there: as --log-format says, which is looked at then. */
enum log_format config_first_format(const struct config_flags *flags);

/* The option groups of kinf(1) that fill FLAGS: those of all programs, and those of the ones
 * that run. */
struct options_group config_common_options(struct config_flags *flags);
struct options_group config_running_options(struct config_flags *flags);

/*
 * Reads the file (flag, $KINF_CONFIG, ./kinf.yaml, /etc/kinf/kinf.yaml; none is fine unless one was
 * named), then lays the flags over it: --watch replaces the file's feeds, --index adds to what there
 * is. FLAGS may be NULL. Of store and runtime directory the first counts: flag, environment, file,
 * default. Relative paths are the file's directory's in the file, and the working directory's in
 * flags and environment; a leading ~ is the home directory.
 * ERR_CONFIG with one sentence: "kinf.yaml:12: feeds[0].pageSize: not a number: 'many'"; for flags
 * "--watch: ...". When the file was named but can't be read: -errno.
 */
int config_load(const struct config_flags *flags, struct config **ret_config);
void config_free(struct config **config);

enum config_user { CONFIG_REFLECTOR = 1u << 0, CONFIG_PROCESSOR = 1u << 1, CONFIG_RUN = 1u << 2 };

/*
 * What a running process can't change: where its store is, whom it asks, ... True when CONFIG, loaded
 * to take RUNNING's place, says otherwise in what matters to USER; RET_KEYS: which keys, "store, group",
 * for the line that tells people to restart.
 */
#define CONFIG_KEYS_SIZE 128
bool config_needs_restart(const struct config *running, const struct config *config,
	enum config_user user, char ret_keys[CONFIG_KEYS_SIZE]);

/* CONFIG gets RUNNING's values of those; RUNNING is only good to be freed afterwards. */
void config_keep_fixed(struct config *config, struct config *running);

/* As config_load without flags, but from text; NAME stands for the file, also in messages. */
int config_parse(const char *text, size_t size, const char *name, struct config **ret_config);

/* "10m", "1h30m", "500ms", "0s", "7d" to nanoseconds; "1GiB", "64MiB", "500kB", "12" to bytes. ERR_SYNTAX. */
int config_duration(const char *text, uint64_t *ret_ns);
int config_size(const char *text, uint64_t *ret_bytes);

/* Default store and runtime directories from the environment (kinf(1)); caller frees. */
int config_default_store(char **ret_path);
int config_default_runtime(char **ret_path);

#endif
