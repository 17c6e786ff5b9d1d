/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/kubeconfig.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/yaml.h"
#include "reflector/net/kubeconfig_entry.h"
#include "reflector/net/small_file.h"

#define FILES_MAX 64

/* The files in the order of their precedence. They are not merged into a tree: a search goes
 * through the files in order, so each entry still knows its file. */
struct kubeconfig_files {
	struct kubeconfig_file at[FILES_MAX];
	size_t count;
};

static void kubeconfig_files_release(struct kubeconfig_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		yaml_free(&files->at[i].yaml);
		free(files->at[i].path);
	}
	files->count = 0;
}

/* Checks LIST: a list of named entries, each name once. */
static int files_check_names(const struct kubeconfig_file *file, const char *list)
{
	const struct yaml_node *node = yaml_get(yaml_root(file->yaml), list);

	if (node && node->type != YAML_LIST)
		return err_say(
			ERR_CONFIG, "'%s':%zu: %s: not a list", file->path, node->line, list);
	for (size_t i = 0; node && i < node->count; i++) {
		const char *name = yaml_text(&node->items[i], "name");

		if (!name)
			return err_say(ERR_CONFIG, "'%s':%zu: %s[%zu]: no name", file->path,
				node->items[i].line, list, i);
		for (size_t j = 0; j < i; j++)
			if (!strcmp(name, yaml_text(&node->items[j], "name")))
				return err_say(ERR_CONFIG, "'%s':%zu: %s: duplicate name '%s'",
					file->path, node->items[i].line, list, name);
	}
	return 0;
}

/* The reflector reads a file again whenever it starts: a pipe, as of <(...), is empty then, and a
 * FIFO without a writer makes it wait for ever. A container finds a directory in place of its
 * machine's missing file. */
static int files_check_type(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || S_ISREG(st.st_mode) || S_ISCHR(st.st_mode))
		return 0; /* reading it says why */
	if (S_ISDIR(st.st_mode))
		return err_say(ERR_CONFIG, "kubeconfig '%s' is a directory: name a file", path);
	return err_say(ERR_CONFIG,
		"kubeconfig '%s' is a pipe or a socket, and is read at each start: name a file",
		path);
}

/* Adds one file. Returns: 0, NOT_FOUND when it does not exist, or an error. */
static int files_add(struct kubeconfig_files *files, const char *path)
{
	struct kubeconfig_file *file = &files->at[files->count];
	const struct yaml_node *root;
	const char *kind;
	int r;

	for (size_t i = 0; i < files->count; i++)
		if (!strcmp(files->at[i].path, path))
			return 0;
	if (files->count == FILES_MAX)
		return err_say(ERR_CONFIG, "KUBECONFIG: more than %d files", FILES_MAX);
	r = files_check_type(path);
	if (r < 0)
		return r;
	*file = (struct kubeconfig_file){.path = strdup(path)};
	if (!file->path)
		return err_set(-ENOMEM, "kubeconfig '%s'", path);
	r = yaml_load_first(path, &file->yaml);
	if (r < 0) {
		if (r != -ENOENT && r != -ENOTDIR)
			(void)err_add(r, "kubeconfig");
		free(file->path);
		return r == -ENOENT || r == -ENOTDIR ? NOT_FOUND : r;
	}
	root = yaml_root(file->yaml);
	if (!root) { /* empty: no configuration, as for client-go */
		yaml_free(&file->yaml);
		free(file->path);
		return NOT_FOUND;
	}
	files->count++;
	kind = yaml_text(root, "kind");
	if (root->type != YAML_MAP)
		return err_say(ERR_CONFIG, "'%s': not a kubeconfig: not a map", file->path);
	if (kind && strcmp(kind, "Config"))
		return err_say(
			ERR_CONFIG, "'%s': not a kubeconfig: kind is '%s'", file->path, kind);
	r = files_check_names(file, "contexts");
	if (!r)
		r = files_check_names(file, "clusters");
	return r ? r : files_check_names(file, "users");
}

static int files_home_path(const char *rest, char *path, size_t size)
{
	const char *home = getenv("HOME");

	if (!home || !*home)
		return NOT_FOUND;
	if ((size_t)snprintf(path, size, "%s/%s", home, rest) >= size)
		return err_say(ERR_CONFIG, "HOME: too long");
	return FOUND;
}

static int files_default(struct kubeconfig_files *files)
{
	const char *list = getenv("KUBECONFIG");
	char path[PATH_MAX];
	int r = 0;

	if (!list || !*list) {
		r = files_home_path(".kube/config", path, sizeof(path));
		if (r == FOUND)
			r = files_add(files, path);
		return r < 0 ? r : 0;
	}
	while (*list && r >= 0) {
		size_t size = strcspn(list, ":");
		AUTO_FREE char *item = strndup(list, size);

		if (!item)
			return err_set(-ENOMEM, "KUBECONFIG");
		if (size)
			r = files_add(files, item);
		list += size + (list[size] == ':');
	}
	return r < 0 ? r : 0;
}

/* Returns -ENOENT with a sentence: no file was found, and this is no pod. */
static int files_say_none(void)
{
	const char *list = getenv("KUBECONFIG");

	if (list && *list)
		return err_say(-ENOENT,
			"no kubeconfig: no file in $KUBECONFIG ('%.200s') has one, and this is no "
			"pod",
			list);
	return err_say(-ENOENT, "no kubeconfig: $KUBECONFIG is not set, ~/.kube/config does not "
				"exist, and this is no pod");
}

/* Finds entry NAME of LIST. The first file with it wins; entries are not merged field by field. */
static int files_find(const struct kubeconfig_files *files, const char *list, const char *member,
	const char *name, struct kubeconfig_entry *ret_entry)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct kubeconfig_file *file = &files->at[i];
		const struct yaml_node *node = yaml_get(yaml_root(file->yaml), list);

		for (size_t j = 0; node && j < node->count; j++) {
			if (strcmp(yaml_text(&node->items[j], "name"), name))
				continue;
			*ret_entry = (struct kubeconfig_entry){
				.file = file,
				.kind = member,
				.name = name,
				.body = yaml_get(&node->items[j], member),
			};
			return FOUND;
		}
	}
	return NOT_FOUND;
}

/* Finds the entry named by MEMBER of the context. Returns: FOUND, NOT_FOUND without such a member,
 * ERR_CONFIG. */
static int files_follow(const struct kubeconfig_files *files,
	const struct kubeconfig_entry *context, const char *list, const char *member,
	struct kubeconfig_entry *ret_entry)
{
	const char *name = yaml_text(context->body, member);

	if (!name || !*name)
		return NOT_FOUND;
	if (files_find(files, list, member, name, ret_entry) == FOUND)
		return FOUND;
	return err_say(ERR_CONFIG, "'%s': %s '%s' was not found for context '%s'",
		context->file->path, member, name, context->name);
}

static int kubeconfig_load_context(
	const struct kubeconfig_files *files, const char *name, struct kubeconfig *config)
{
	struct kubeconfig_entry context, cluster, user;
	const char *name_space;
	const char *first = files->at[0].path;

	for (size_t i = 0; i < files->count && (!name || !*name); i++)
		name = yaml_text(yaml_root(files->at[i].yaml), "current-context");
	if (!name || !*name)
		return err_say(ERR_CONFIG, "'%s': no current-context; name a context", first);
	if (files_find(files, "contexts", "context", name, &context) != FOUND)
		return err_say(ERR_CONFIG, "'%s': context '%s' does not exist", first, name);
	name_space = yaml_text(context.body, "namespace");
	config->context = strdup(name);
	config->source = strdup(context.file->path);
	config->name_space = strdup(name_space && *name_space ? name_space : "default");
	if (!config->context || !config->source || !config->name_space)
		return err_set(-ENOMEM, "kubeconfig '%s'", first);

	int r = files_follow(files, &context, "clusters", "cluster", &cluster);

	if (r == NOT_FOUND)
		return err_say(ERR_CONFIG, "'%s': context '%s': no cluster", context.file->path,
			context.name);
	if (!r)
		r = kubeconfig_read_cluster(&cluster, config);
	if (r < 0)
		return r;
	r = files_follow(files, &context, "users", "user", &user);
	if (r == NOT_FOUND)
		return kubeconfig_settle_server(&cluster, config);
	if (!r)
		r = kubeconfig_read_user(&user, config);
	if (!r)
		r = kubeconfig_settle_server(&cluster, config);
	return r ? r : kubeconfig_read_plugin(&user, config);
}

/* Reads FILE, or the default ones if it is NULL. */
static int files_read(struct kubeconfig_files *files, const char *file)
{
	char path[PATH_MAX];

	if (!file)
		return files_default(files);
	int r = strncmp(file, "~/", 2) ? NOT_FOUND : files_home_path(file + 2, path, sizeof(path));
	if (r >= 0)
		r = files_add(files, r == FOUND ? path : file);
	return r == NOT_FOUND
		       ? err_say(ERR_CONFIG, "kubeconfig '%s' does not exist, or is empty", file)
		       : r;
}

int kubeconfig_load(const char *file, const char *context, struct kubeconfig **ret_config)
{
	CLEANUP(kubeconfig_files_release) struct kubeconfig_files files = {.count = 0};
	CLEANUP(kubeconfig_free) struct kubeconfig *config = NULL;

	int r = files_read(&files, file);
	if (r < 0)
		return r;
	if (!files.count) {
		r = kubeconfig_in_cluster(KUBECONFIG_SERVICE_ACCOUNT, ret_config);
		if (r == -ENOENT)
			return files_say_none();
		return r;
	}
	config = calloc(1, sizeof(*config));
	if (!config)
		return err_set(-ENOMEM, "kubeconfig");
	r = kubeconfig_load_context(&files, context && *context ? context : NULL, config);
	if (r < 0)
		return r;
	*ret_config = TAKE(config);
	return 0;
}

/* ---- the pod's service account ------------------------------------------ */

int kubeconfig_in_cluster(const char *directory, struct kubeconfig **ret_config)
{
	CLEANUP(kubeconfig_free) struct kubeconfig *config = NULL;
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	int r;

	if (!host || !*host || !port || !*port)
		return err_say(-ENOENT, "not in a pod: KUBERNETES_SERVICE_HOST and "
					"KUBERNETES_SERVICE_PORT are not set");
	config = calloc(1, sizeof(*config));
	if (!config)
		return err_set(-ENOMEM, "in-cluster configuration");

	bool bracket = strchr(host, ':') && *host != '[';

	config->tls = true;
	config->source = strdup("in-cluster");
	config->context = strdup("");
	if (asprintf(&config->token_file, "%s/token", directory) < 0)
		config->token_file = NULL;
	if (asprintf(&config->ca.file, "%s/ca.crt", directory) < 0)
		config->ca.file = NULL;
	if (asprintf(&config->server, bracket ? "https://[%s]:%s" : "https://%s:%s", host, port) <
		0)
		config->server = NULL;
	if (!config->source || !config->context || !config->token_file || !config->ca.file ||
		!config->server)
		return err_set(-ENOMEM, "in-cluster configuration");
	if (access(config->ca.file, R_OK)) {
		/* As in client-go, the system's roots are used without the file. */
		free(config->ca.file);
		config->ca.file = NULL;
	}
	r = kubeconfig_pod_namespace(directory, &config->name_space);
	if (r < 0)
		return r;
	*ret_config = TAKE(config);
	return 0;
}

/* ---- comparing ---------------------------------------------------------- */

/* Compares two loaded kubeconfigs. Certificates and tokens in files of their own count by their
 * paths: those files are read again when they change. */
static bool text_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool member_same(const void *a, const void *b, enum kubeconfig_type type)
{
	const struct kubeconfig_pem *pem_a = a, *pem_b = b;
	const struct kubeconfig_texts *texts_a = a, *texts_b = b;
	bool same;

	switch (type) {
	case KUBECONFIG_BOOL:
		return *(const bool *)a == *(const bool *)b;
	case KUBECONFIG_PEM:
		return text_same(pem_a->data, pem_b->data) && text_same(pem_a->file, pem_b->file);
	case KUBECONFIG_TEXTS:
	case KUBECONFIG_LINES:
		same = texts_a->n == texts_b->n;
		for (size_t i = 0; same && i < texts_a->n; i++)
			same = text_same(texts_a->at[i], texts_b->at[i]);
		return same;
	default:
		return text_same(*(char *const *)a, *(char *const *)b);
	}
}

bool kubeconfig_same(const struct kubeconfig *a, const struct kubeconfig *b)
{
	bool same = true;

	for (size_t i = 0; same && i < kubeconfig_n_members; i++) {
		const struct kubeconfig_member *member = &kubeconfig_members[i];

		same = !(member->flags & KUBECONFIG_IDENTITY) ||
		       member_same(
			       kubeconfig_at(a, member), kubeconfig_at(b, member), member->type);
	}
	return same;
}

bool kubeconfig_has_changed(const struct kubeconfig *loaded, const char *file, const char *context,
	char *text, size_t size)
{
	CLEANUP(kubeconfig_free) struct kubeconfig *now = NULL;
	int r = kubeconfig_load(file, context, &now);

	if (r < 0)
		(void)snprintf(text, size, "the kubeconfig, which is no good now: %s", err_text(r));
	else if (!kubeconfig_same(now, loaded))
		(void)snprintf(text, size, "the changed kubeconfig '%s'", now->source);
	err_ignore(r, "what was loaded is good");
	return r < 0 || !kubeconfig_same(now, loaded);
}

void kubeconfig_free(struct kubeconfig **config)
{
	struct kubeconfig *c = *config;

	*config = NULL;
	if (!c)
		return;
	for (size_t i = 0; i < kubeconfig_n_members; i++)
		kubeconfig_member_release(c, &kubeconfig_members[i]);
	free(c);
}
