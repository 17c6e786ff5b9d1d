/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of all programs: kinf.yaml with the command line laid over it. config.def
 * lists the keys with their types, ranges and defaults; kinf.yaml(5) is written from the same
 * list.
 *
 * Loading checks everything. An error (unknown key, bad value, duplicate name) names file, line,
 * key and the allowed values. Names of resources stay text here; the reflector resolves them by
 * discovery. A config owns its pointers until config_free().
 *
 * The config group: config.c (loading), config_key.c (keys and their values), config_feed.c (feeds
 * and indexes), config_serve.c (the section serve), config_flags.c (the command line),
 * config_wildcard.c (feeds of many resources), config_variables.c (variables of the environment);
 * they share config_internal.h.
 */
#ifndef COMMON_CONFIG_CONFIG_H
#define COMMON_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/log.h"
#include "common/options.h"

struct config_index {
	char *name;
	char **paths; /* canonical; a compound index has more than one, in this order */
	size_t n_paths;
};

struct config_feed {
	char *name;     /* default: the resource as written */
	char *resource; /* plural[.version][.group] or a short name, as written; or a wildcard */
	/* "*" or "*[.VERSION][.GROUP]": a feed for each resource of config_covers() */
	bool wildcard;
	char **exclude; /* for a wildcard: PLURAL (of any group) or PLURAL.GROUP */
	size_t n_exclude;
	char **namespaces; /* none: all */
	size_t n_namespaces;
	char *label_selector; /* canonical, "" if none */
	char *field_selector;
	bool metadata_only; /* objects: metadata */
	char *drop;         /* canonical paths, a line each, sorted: the order is no identity */
	struct config_index *indexes;
	size_t n_indexes, indexes_room;
	bool resolve; /* indexes for kinf_who() */
	uint32_t page_size;
	uint64_t resync_ns; /* default of informers; 0: none */
	bool drop_gone;     /* whenGone: drop: a removed resource deletes its objects */
	size_t line;        /* in the file; 0: from the command line */
};

/* How the reflector asks the API server. */
struct config_policy {
	uint32_t list_concurrency;
	uint64_t watch_ns; /* the server ends a watch after one to two times this */
	uint64_t backoff_min_ns, backoff_max_ns; /* a pause of d lasts d to 2d, at random */
	uint64_t connect_ns;                     /* until a connection is open, TLS included */
	uint64_t answer_ns;  /* until an answer begins, and between two parts of it */
	uint64_t silence_ns; /* a connection silent for this long is tested with a new watch */
	/* forbidden or absent resources and wildcards are retried after one to two times this */
	uint64_t recheck_ns;
	bool streaming_lists; /* list by watch streams (watch-list) where the server supports them
			       */
	uint64_t max_object_bytes; /* of JSON; larger objects are skipped */
	uint64_t check_ns;         /* between two consistency checks of a feed; 0: none */
	uint32_t hold_percent;     /* a list that would delete a larger share is held; 0: none */
	uint64_t hold_pause_ns;    /* before the second list */
};

/* How kinf-serve authenticates and authorizes clients; in the order of serve.auth's words. */
enum config_auth {
	CONFIG_AUTH_DEFAULT, /* peers on the Unix socket, self on TCP */
	CONFIG_AUTH_PEERS,
	CONFIG_AUTH_SELF,
	CONFIG_AUTH_REVIEW,
	CONFIG_AUTH_ALLOW,
	CONFIG_AUTH_OPEN,
	CONFIG_AUTH_TOKEN,
	CONFIG_AUTH_MAX
};

struct config_serve {
	bool enabled;  /* there is a section `serve`, or --serve was given */
	char *listen;  /* addresses with blanks between them; NULL: "unix" */
	uint32_t auth; /* enum config_auth */
	bool open_remote;
	char *token_file;                    /* of auth: token; NULL: none */
	char *certificate, *key, *client_ca; /* NULL: made by kinf-serve; none */
	bool separate;                       /* not started by kinf run */
	bool forward;
	bool quorum; /* freshness: quorum */
	bool mcp;
	char *at;                  /* the state of then is served; NULL: the newest */
	char *replay;              /* the speed of the changes after it; NULL: there are none */
	uint64_t max_staleness_ns; /* 0: any */
	uint64_t offline_grace_ns;
	char *metrics; /* addresses; NULL: none */
	/* The account for auth: review; NULL: none. */
	char *review_token_file, *review_certificate, *review_key;
	/* The rules of auth: allow. Each is five lines, users, groups, verbs, resources,
	 * namespaces, of words with tabs between them; a word may end with *. NULL: none. */
	char *allow;
};

enum {
	CONFIG_N_KEYS = /* the keys outside of feeds */
#define KEY(key, type, field, minimum, maximum, initial, restart, help) 1 +
#define FEED_KEY(key, type, field, minimum, maximum, initial, help)
#include "common/config/config.def"
#undef KEY
#undef FEED_KEY
	0
};

struct config {
	char *file; /* NULL: no file was read */
	/* a sentence: why ./kinf.yaml is ignored; NULL: it is not, or there is none */
	char *passed_over;
	/* A sentence: the ignored variables of the environment; NULL: none. */
	char *overruled;
	char *kubeconfig;  /* NULL: default rules */
	char *context;     /* NULL: current-context */
	char *store;       /* absolute */
	char *runtime_dir; /* absolute: the parent of kinf-<store id> */
	bool durable;      /* durability: disk */
	uint64_t retention_ns;
	uint64_t retention_bytes;
	uint64_t map_bytes; /* largest size of one environment */
	char *group;        /* NULL: the owner only */
	uint64_t cursor_ns; /* a cursor not written for this long expires */
	uint64_t hang_ns;   /* a daemon silent and idle for this long is restarted */
	struct config_policy policy;
	struct config_serve serve;
	struct config_feed *feeds;
	size_t n_feeds, feeds_room;
	enum log_format log_format;
	enum log_level log_level;
	struct stat file_read; /* of the file before reading; unused without a file */
	/* The line of each key in the file; 0: absent, or replaced by an option. */
	size_t lines[CONFIG_N_KEYS];
};

/* The values of command-line options; NULL and 0 where not given. */
struct config_flags {
	const char *store, *runtime_dir, *file, *cluster, *log_format;
	unsigned verbose;
	bool store_only; /* for readers: take only `store` from a file with a mistake */
	/* For programs that run: */
	const char *kubeconfig, *context, *durability;
	const char *serve; /* addresses with commas between them; "": those of the file */
	/* RESOURCE or 'RESOURCE:NAME(-n NS -l SEL --field-selector SEL)' */
	struct option_texts watch;
	struct option_texts index; /* FEED/NAME=PATH[,PATH] */
};
void config_flags_release(struct config_flags *flags);

/* Return the option groups that fill FLAGS: the common ones, and those of daemons. */
struct options_group config_common_options(struct config_flags *flags);
struct options_group config_running_options(struct config_flags *flags);

/* Returns the log's format, also before config_load(). */
enum log_format config_log_format(const struct config_flags *flags);

/*
 * Reads the file (--cluster or --config, $KINF_CONFIG, ./kinf.yaml, /etc/kinf/kinf.yaml; a named
 * file must exist; ./kinf.yaml counts only if it belongs to the caller or root and no other user
 * may write to it), then lays FLAGS (may be NULL) over it: --watch replaces the file's feeds,
 * --index adds to them. Store and runtime directory come from, in this order: flag, file of a flag,
 * environment, other file, default; `overruled` names a variable that lost against a file. A
 * relative path in the file begins in the file's directory, else in the working directory; a
 * leading ~ is the home directory. With FLAGS->store_only a mistake outside of `store`, of YAML
 * also, only sets passed_over. Returns: 0
 *	ERR_CONFIG: "kinf.yaml:12: feeds[0].pageSize: not a number: 'many'"; "--watch: ..."
 *	-errno: the named file can't be read
 */
int config_load(const struct config_flags *flags, struct config **ret_config);
void config_free(struct config **config);

/* Returns 0 if CONFIG has feeds, else ERR_CONFIG with the file's name. */
int config_need_feeds(const struct config *config);

/* An editor or a tool may write the file in several steps. Returns the nanoseconds until it has
 * been unchanged for CONFIG_STILL_NS; 0: it has, or there is no file. */
#define CONFIG_STILL_NS 2000000000ull
uint64_t config_unsettled_ns(const struct config *config);
/* Returns true if the file changed since it was read or since config_note_file(). A program calls
 * the latter before a reload, because a failed one keeps CONFIG. */
bool config_file_changed(const struct config *config);
void config_note_file(struct config *config);

/* Puts the line of KEY, if any, before the sentence of R: the value is well-formed but names
 * something absent. Returns R. */
int config_blame(const struct config *config, const char *key, int r);

/* Returns the directory of --cluster's files: $KINF_CONFIG_DIR or /etc/kinf. */
const char *config_directory(void);

/* Reads TEXT as config_load() reads a file, without flags. NAME is the file's name in errors. */
int config_parse(const char *text, size_t size, const char *name, struct config **ret_config);

/* The processes with a configuration. The column `restart` of config.def has the users of a key
 * that apply it only at their start. */
enum config_user {
	CONFIG_RELOAD = 0,
	CONFIG_REFLECTOR = 1u << 0,
	CONFIG_PROCESSOR = 1u << 1,
	CONFIG_RUN = 1u << 2,
	CONFIG_SERVE = 1u << 3,
	CONFIG_DAEMONS = CONFIG_REFLECTOR | CONFIG_PROCESSOR,
	CONFIG_SERVE_RUN = CONFIG_SERVE | CONFIG_RUN,
	CONFIG_ALL = CONFIG_DAEMONS | CONFIG_SERVE_RUN
};

/*
 * Returns true if CONFIG differs from RUNNING in a key that USER applies only at its start; sets
 * RET_KEYS to the names of all such keys ("store, group").
 */
#define CONFIG_KEYS_SIZE 320
bool config_needs_restart(const struct config *running, const struct config *config,
	enum config_user user, char ret_keys[CONFIG_KEYS_SIZE]);

/* Moves the values of all start-only keys from RUNNING to CONFIG. Afterwards RUNNING can only be
 * freed. */
void config_keep_fixed(struct config *config, struct config *running);

/* The longest name of a feed or resource as written, with room for "plural.group". */
#define CONFIG_NAME_MAX       200
#define CONFIG_FULL_NAME_SIZE 320

/* Returns true if FEED is a wildcard covering this resource. */
bool config_covers(
	const struct config_feed *feed, const char *group, const char *version, const char *plural);
/* Returns the entry of a stored feed: the one of its name, else the first wildcard covering its
 * resource, else NULL. */
const struct config_feed *config_find_feed(const struct config *config, const char *name,
	const char *group, const char *version, const char *plural);

/* Replaces *TO with PATH as an absolute path without `.`, `..` and double slashes; a relative
 * one begins in BASE (NULL: the working directory), one with ~ in the home directory. */
int config_copy_path(char **to, const char *path, const char *base);

/* Sets *RET_PATH to the default store (kinf.yaml(5)). The caller frees it. */
int config_default_store(char **ret_path);

#endif
