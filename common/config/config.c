/* SPDX-License-Identifier: Apache-2.0 */
/* Loading: the file, the environment, the command line. */
#include "common/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/config/config_internal.h"
#include "common/err.h"
#include "common/proc.h"

void config_free(struct config **config)
{
	struct config *c = *config;

	if (!c)
		return;
	config_free_feeds(c);
	free(c->file);
	free(c->passed_over);
	free(c->overruled);
	for (const struct config_key *key = config_keys; key->name; key++)
		if (config_is_text(key->type))
			free(*(char **)((char *)c + key->offset));
	free(c);
	*config = NULL;
}

static int config_new(struct config **ret_config)
{
	CLEANUP(config_free) struct config *config = calloc(1, sizeof(*config));

	if (!config)
		return err_set(-ENOMEM, "allocating the configuration");
	config->log_format = LOG_TEXT;
	config->log_level = LOG_NOTICE;
	int r = config_set_defaults(config_keys, config);
	if (r == 0)
		*ret_config = TAKE(config);
	return r;
}

#define MACHINE_STORE "/var/lib/kinf"

/* ---- the environment ---------------------------------------------------- */

/* Returns the value of a variable, NULL if it is not set or empty. */
static const char *config_environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

int config_default_store(char **ret_path)
{
	const char *given = config_environment("KINF_STORE");
	const char *state = config_environment("XDG_STATE_HOME");

	*ret_path = NULL;
	if (given)
		return config_copy_path(ret_path, given, NULL);
	if (geteuid() == 0)
		return config_copy(ret_path, MACHINE_STORE);
	if (state)
		return config_copy_path(ret_path, "kinf", state);
	return config_copy_path(ret_path, "~/.local/state/kinf", NULL);
}

/* Replaces *PATH by the variable NAME, unless FLAG or a file named by an option has set it. */
static int config_settle_path(struct config *config, const struct config_flags *flags,
	const char *name, const char *flag, char **path)
{
	const char *given = config_environment(name);
	AUTO_FREE char *own = NULL;

	if (!given || flag)
		return 0;
	int r = config_copy_path(&own, given, NULL);
	if (r < 0 || (*path && strcmp(own, *path) == 0))
		return r;
	if (*path && (flags->file || flags->cluster)) {
		AUTO_FREE char *said = config->overruled;

		if (asprintf(&config->overruled,
			    "%s%s$%s ('%s') is not used: %s, which the command line names, has "
			    "'%s'",
			    said ? said : "", said ? "; " : "", name, own, config->file,
			    *path) >= 0)
			return 0;
		config->overruled = NULL;
		return err_set(-ENOMEM, "the configuration");
	}
	free(*path);
	*path = TAKE(own);
	return 0;
}

/* Settles both directories by precedence: option, file of an option, environment, other file,
 * default. */
static int config_settle_paths(struct config *config, const struct config_flags *flags)
{
	const char *runtime = config_environment("XDG_RUNTIME_DIR");
	AUTO_FREE char *own = NULL;
	int r = 0;

	if (flags->cluster && !config->store) {
		/* A user's own configurations: below the default store. */
		if (config_environment("KINF_CONFIG_DIR"))
			r = config_default_store(&own);
		if (r == 0)
			r = config_copy_path(
				&config->store, flags->cluster, own ? own : MACHINE_STORE);
	} else {
		r = config_settle_path(config, flags, "KINF_STORE", flags->store, &config->store);
	}
	if (r == 0 && !config->store)
		r = config_default_store(&config->store);
	if (r == 0)
		r = config_settle_path(config, flags, "KINF_RUNTIME_DIR", flags->runtime_dir,
			&config->runtime_dir);
	if (r == 0 && !config->runtime_dir)
		r = config_copy_path(&config->runtime_dir,
			geteuid() == 0 ? "/run"
			: runtime      ? runtime
				       : "/dev/shm",
			NULL);
	return r;
}

/* ---- the file ----------------------------------------------------------- */

/* Reads the tree of file NAME into CONFIG. */
static int config_read_tree(struct config *config, struct yaml *yaml, const char *name)
{
	struct yaml_node *root = yaml_root(yaml);
	int r = config_copy(&config->file, name);

	if (r < 0 || !root)
		return r;
	struct config_place place = {.file = name, .line = root->line};
	r = config_expand(&place, root);
	if (r == 0)
		r = config_read_map(&place, root, config_keys, "", config);
	for (size_t i = 0; r == 0 && i < root->count; i++) {
		if (strcmp(root->keys[i], "serve") != 0 || yaml_is_null(&root->items[i]))
			continue;
		struct config_place at_serve =
			config_place_member(&place, "serve", root->key_lines[i]);

		config->serve.enabled = true;
		r = config_check_serve(&at_serve, config);
	}
	if (r < 0 || config->policy.backoff_min_ns <= config->policy.backoff_max_ns)
		return r;
	for (size_t i = 0; i < root->count; i++)
		if (strcmp(root->keys[i], "backoff") == 0)
			place = config_place_member(&place, "backoff", root->key_lines[i]);
	return config_refuse(&place, "min must not be more than max (defaults are 800ms and 15s)");
}

int config_parse(const char *text, size_t size, const char *name, struct config **ret_config)
{
	static const struct config_flags none;
	CLEANUP(config_free) struct config *config = NULL;
	CLEANUP(yaml_free) struct yaml *yaml = NULL;

	int r = yaml_parse(text, size, name, &yaml);
	if (r < 0) /* broken YAML is a bad configuration */
		return r == ERR_SYNTAX ? err_say(ERR_CONFIG, "%s", err_text(r)) : r;
	r = config_new(&config);
	if (r == 0)
		r = config_read_tree(config, yaml, name);
	if (r == 0)
		r = config_settle_paths(config, &none);
	if (r == 0)
		*ret_config = TAKE(config);
	return r;
}

#define CONFIG_HERE "kinf.yaml"
#define CONFIG_ETC  "/etc/kinf/kinf.yaml"

const char *config_directory(void)
{
	const char *given = config_environment("KINF_CONFIG_DIR");

	return given ? given : "/etc/kinf";
}

/* Sets *RET_FILE to the file of --cluster NAME. */
static int config_find_cluster(const struct config_flags *flags, char **ret_file)
{
	const char *name = flags->cluster;

	if (flags->file)
		return err_say(ERR_CONFIG, "--cluster and --config exclude each other");
	if (!*name || *name == '.' || strchr(name, '/'))
		return err_say(ERR_CONFIG,
			"--cluster: '%s' is not a name; 'kinf clusters' lists the clusters", name);
	if (asprintf(ret_file, "%s/%s.yaml", config_directory(), name) < 0)
		return err_set(-ENOMEM, "--cluster %s", name);
	if (access(*ret_file, F_OK) < 0 && errno == ENOENT)
		return err_say(ERR_CONFIG,
			"--cluster %s: there is no '%s'; 'kinf clusters' lists the clusters", name,
			*ret_file);
	return 0;
}

/*
 * Opens kinf.yaml of the working directory. The directory may be another user's, and a kubeconfig
 * can name a program for the reflector to run: file and symbolic link must belong to the caller or
 * root and be writable by no one else. Checks the open file against a race. Returns: the
 * descriptor; -1: no file, or *RET_PASSED_OVER has the reason to ignore it.
 */
static int config_open_here(char **ret_passed_over)
{
	AUTO_FD int fd = open(CONFIG_HERE, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat file, link;
	char why[96] = "";

	if (fd < 0 && errno == ENOENT)
		return -1;
	if (fd < 0 || fstat(fd, &file) < 0 || lstat(CONFIG_HERE, &link) < 0)
		(void)snprintf(why, sizeof(why), "it can't be opened: %s", strerror(errno));
	else if (file.st_uid != geteuid() && file.st_uid != 0)
		(void)snprintf(why, sizeof(why), "it belongs to user %u", (unsigned)file.st_uid);
	else if (link.st_uid != geteuid() && link.st_uid != 0)
		(void)snprintf(why, sizeof(why), "it is a link of user %u", (unsigned)link.st_uid);
	else if (file.st_mode & 0022)
		(void)snprintf(why, sizeof(why), "its group or others may write to it");
	else if (!S_ISREG(file.st_mode))
		(void)snprintf(why, sizeof(why), "it is no file");
	if (!why[0])
		return TAKE_FD(fd);
	if (asprintf(ret_passed_over,
		    "./" CONFIG_HERE " is not used: %s; name it with --config if you trust it",
		    why) < 0)
		*ret_passed_over = NULL; /* ignored silently */
	return -1;
}

/* Parses only the entry `store` of a file: the one line that begins with it, and its continuation.
 * Returns: FOUND; NOT_FOUND: no such line, or several; -errno. */
static int config_find_store(int here, const char *file, struct yaml **ret_yaml)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	AUTO_FD int opened = here < 0 ? open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	int fd = here < 0 ? opened : here;
	const char *store = NULL;

	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_set(-errno, "reading '%s'", file);
	int r = buf_read_file(&text, fd, file);
	if (r < 0)
		return r;
	for (const char *line = buf_cstr(&text); line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, "store:", strlen("store:")) != 0)
			continue;
		if (store)
			return NOT_FOUND;
		store = line;
	}
	if (!store)
		return NOT_FOUND;
	const char *end = store;
	do
		end += strcspn(end, "\n");
	while (*end && (*++end == ' ' || *end == '\t'));
	r = yaml_parse(store, (size_t)(end - store), file, ret_yaml);
	return r == ERR_SYNTAX ? NOT_FOUND : r < 0 ? r : FOUND;
}

/* Takes only the store from a file with the mistake R: a slip in kinf.yaml must not lock readers
 * out. WHOLE is the file's tree if it is YAML. Returns 0, or R if the store is not clear. */
static int config_read_store(int r, int here, struct config **config, struct yaml *whole,
	const char *file, char **ret_passed_over)
{
	CLEANUP(yaml_free) struct yaml *yaml = NULL;
	CLEANUP(config_free) struct config *other = NULL;
	AUTO_FREE char *note = NULL;
	struct err_kept mistake;

	err_keep(&mistake);
	int found = config_find_store(here, file, &yaml);
	if (found == NOT_FOUND && whole && !yaml_get(yaml_root(whole), "store"))
		found = yaml_parse("", 0, file, &yaml); /* it names none */
	if (found == FOUND)
		found = config_new(&other);
	if (found == FOUND)
		found = config_read_tree(other, yaml, file);
	err_ignore(found, "the mistake in the file is the error");
	err_restore(&mistake);
	if (found != FOUND)
		return r;
	if (asprintf(&note, "%s: only 'store' is used of this file", err_text(r)) < 0)
		return err_set(-ENOMEM, "reading '%s'", file);
	config_free(config);
	*config = TAKE(other);
	free(*ret_passed_over);
	*ret_passed_over = TAKE(note);
	return 0;
}

/* Sets the sentence for an unreadable FILE, with the option or variable that named it. */
static int config_explain_unreadable(int r, const char *file, const struct config_flags *flags)
{
	const char *named = flags->file || flags->cluster       ? " (named on the command line)"
			    : config_environment("KINF_CONFIG") ? " (named by $KINF_CONFIG)"
								: "";

	if (r == -ENOENT)
		return err_say(r, "the configuration '%s'%s does not exist", file, named);
	if (r == -EISDIR)
		return err_say(r, "the configuration '%s'%s is a directory", file, named);
	if (r == -EACCES)
		return err_say(r, "user %u may not read the configuration '%s'%s",
			(unsigned)geteuid(), file, named);
	return r;
}

int config_load(const struct config_flags *flags, struct config **ret_config)
{
	static const struct config_flags none;
	AUTO_FREE char *passed_over = NULL, *cluster = NULL;
	AUTO_FD int here = -1;
	CLEANUP(config_free) struct config *config = NULL;
	CLEANUP(yaml_free) struct yaml *yaml = NULL;

	if (!flags)
		flags = &none;
	int r = flags->cluster ? config_find_cluster(flags, &cluster) : 0;
	if (r < 0)
		return r;
	/* A named file must exist; yaml_load() checks. */
	const char *file = cluster       ? cluster
			   : flags->file ? flags->file
					 : config_environment("KINF_CONFIG");
	if (!file) {
		here = config_open_here(&passed_over);
		file = here >= 0 ? CONFIG_HERE : access(CONFIG_ETC, F_OK) == 0 ? CONFIG_ETC : NULL;
	}
	r = config_new(&config);
	if (r == 0 && file) {
		(void)stat(file, &config->file_read); /* before reading: no change is missed */
		r = here >= 0 ? yaml_load_fd(here, file, &yaml) : yaml_load(file, &yaml);
		r = r == ERR_SYNTAX ? err_say(ERR_CONFIG, "%s", err_text(r))
		    : r < 0         ? config_explain_unreadable(r, file, flags)
				    : config_read_tree(config, yaml, file);
		if (r == ERR_CONFIG && flags->store_only)
			r = config_read_store(r, here, &config, yaml, file, &passed_over);
	}
	if (r == 0)
		r = config_lay_flags(config, flags);
	if (r == 0)
		r = config_settle_paths(config, flags);
	if (r < 0)
		return r;
	config->passed_over = TAKE(passed_over);
	*ret_config = TAKE(config);
	return 0;
}

int config_need_feeds(const struct config *config)
{
	if (config->n_feeds)
		return 0;
	return err_say(ERR_CONFIG, "%s: no feeds; name at least one under 'feeds'",
		config->file          ? config->file
		: config->passed_over ? "no usable ./kinf.yaml, and no /etc/kinf/kinf.yaml"
				      : "no ./kinf.yaml and no /etc/kinf/kinf.yaml");
}

uint64_t config_unsettled_ns(const struct config *config)
{
	struct stat file;

	if (!config->file || stat(config->file, &file) < 0)
		return 0;
	uint64_t written =
		(uint64_t)file.st_mtim.tv_sec * 1000000000 + (uint64_t)file.st_mtim.tv_nsec;
	uint64_t age = proc_realtime_ns() - written;
	/* A future timestamp (a set clock, a copied file) counts as a large age. */
	return age >= CONFIG_STILL_NS ? 0 : CONFIG_STILL_NS - age;
}

void config_note_file(struct config *config)
{
	if (config->file)
		(void)stat(config->file, &config->file_read); /* no file: no change */
}

bool config_file_changed(const struct config *config)
{
	const struct stat *before = &config->file_read;
	struct stat file;

	return config->file && stat(config->file, &file) == 0 &&
	       (file.st_ino != before->st_ino || file.st_dev != before->st_dev ||
		       file.st_size != before->st_size ||
		       file.st_mtim.tv_sec != before->st_mtim.tv_sec ||
		       file.st_mtim.tv_nsec != before->st_mtim.tv_nsec);
}
