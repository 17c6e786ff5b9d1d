/* SPDX-License-Identifier: Apache-2.0 */
/* Directories accepted and refused for a new store. */
#include <dirent.h>
#include <grp.h>

#include "tests/unit/home_rig.h"

/* Makes the scratch directory NAME of mode 0755 with the entries WITH, each ended by a space;
 * "DIR/" is a directory. */
static const char *make_place(const char *name, const char *with)
{
	const char *place = scratch_path(name);
	char path[600], entries[200], *rest;

	cr_assert_eq(mkdir(place, 0700), 0);
	(void)snprintf(entries, sizeof(entries), "%s", with);
	for (char *entry = strtok_r(entries, " ", &rest); entry;
		entry = strtok_r(NULL, " ", &rest)) {
		(void)snprintf(path, sizeof(path), "%s/%s", place, entry);
		if (path[strlen(path) - 1] == '/')
			cr_assert_eq(mkdir(path, 0755), 0);
		else
			scratch_write(path, "other\n");
	}
	cr_assert_eq(chmod(place, 0755), 0);
	return place;
}

static int start_in(const char *store)
{
	struct home_options options = {.create = true, .runtime_dir = scratch()};
	CLEANUP(home_close) struct home *home = NULL;
	int r = home_open(store, &options, &home);

	return r;
}

static bool has(const char *directory, const char *name)
{
	char path[600];

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	return access(path, F_OK) == 0;
}

static unsigned entries_of(const char *path)
{
	DIR *directory = opendir(path);
	unsigned n = 0;

	cr_assert_not_null(directory);
	while (readdir(directory))
		n++;
	(void)closedir(directory);
	return n;
}

static void expect_refusal(const char *place, const char *says)
{
	struct stat before, after;
	unsigned entries = entries_of(place);

	cr_assert_eq(stat(place, &before), 0);
	cr_assert_eq(start_in(place), ERR_CONFIG, "%s", place);
	cr_assert_not_null(strstr(err_text(ERR_CONFIG), says), "%s", err_text(ERR_CONFIG));
	cr_assert_not_null(strstr(err_text(ERR_CONFIG), "--store"), "%s", err_text(ERR_CONFIG));
	cr_assert_eq(stat(place, &after), 0);
	cr_assert_eq(after.st_mode, before.st_mode, "%s", place);
	cr_assert_eq(entries_of(place), entries, "something was made in %s", place);
}

/* `kinf run --store /` set the mode of / to 0700: no other user could use the machine. */
Test(home_place, a_directory_with_other_files_is_left_as_it_is)
{
	expect_refusal(make_place("notes", "notes.txt"), "such as notes.txt");
	expect_refusal(make_place("project", "kinf.yaml Makefile"), "such as Makefile");
	expect_refusal(make_place("home", ".profile .kube/ notes.txt"), "such as notes.txt");
	expect_refusal(make_place("volume", "lost+found/ photos/ photos/1.jpg"), "such as photos");
	expect_refusal(make_place("lost-file", "lost+found"), "such as lost+found");
	expect_refusal(make_place("run-log", "journal/ journal/1.log"), "such as journal");
	expect_refusal(make_place("identity", "id"), "such as id");
	expect_refusal(make_place("words", "runtime"), "such as runtime");
	cr_assert_eq(start_in(scratch_path("line\nbreak")), ERR_CONFIG);
	cr_assert_eq(access(scratch_path("line\nbreak"), F_OK), -1);
	expect_refusal(make_place("odd", "two\nlines"), "such as \"two lines\"");
}

/* `kinf --store /tmp get pods` used to propose a start in /tmp, refused by daemons. */
Test(home_place, readers_propose_a_start_only_where_daemons_make_a_store)
{
	const char *places[] = {make_place("notes", "notes.txt"), "/tmp", make_place("new", "")};
	struct home *home = NULL;

	for (size_t i = 0; i < 3; i++) {
		cr_assert_eq(home_open(places[i], &(struct home_options){0}, &home), ERR_NO_STORE,
			"%s", places[i]);
		bool proposed = strstr(err_text(ERR_NO_STORE), "'kinf run") != NULL;
		cr_assert_eq(proposed, i == 2, "%s", err_text(ERR_NO_STORE));
	}
}

/* Returns the exit status of a child with the scratch directory as its /; a user without this right
 * can't change these directories. */
static int start_in_root(const char *store)
{
	int status;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child == 0) {
		int changed = chroot(scratch());
		struct stat before, after;
		struct home *home = NULL;
		struct home_options options = {
			.create = true, .runtime_dir = changed == 0 ? "/run" : scratch()};
		int r = stat(store, &before) == 0 ? home_open(store, &options, &home) : 0;
		bool same = stat(store, &after) == 0 && after.st_mode == before.st_mode && !home;

		_exit(!same               ? 1
			: r != ERR_CONFIG ? 2
					  : !strstr(err_text(r), "all programs use that"));
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return status;
}

Test(home_place, a_directory_of_all_programs_is_left_as_it_is_also_if_it_is_empty)
{
	cr_assert_eq(chmod(scratch(), 0755), 0);
	for (size_t i = 0; i < 4; i++)
		cr_assert_eq(mkdir(scratch_path((const char *const[]){
					   "tmp", "var", "var/tmp", "dev"}[i]),
				     0755),
			0);
	cr_assert_eq(mkdir(scratch_path("dev/shm"), 0755), 0);
	cr_assert_eq(start_in_root("/"), 0);
	cr_assert_eq(start_in_root("/tmp"), 0);
	cr_assert_eq(start_in_root("/var/tmp"), 0);
	cr_assert_eq(start_in_root("/dev/../tmp/."), 0);
}

/* A directory made by a person or a service manager, the root of a file system, a project's
 * directory, a service user's home. */
Test(home_place, a_directory_without_other_files_becomes_a_store)
{
	static const char *const with[] = {"", "lost+found/", "kinf.yaml", ".kube/ .aws/",
		".snapshot/ lost+found/ kinf.yaml", ".bash_history .profile .ssh/"};
	char name[16];

	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++) {
		(void)snprintf(name, sizeof(name), "place-%zu", i);
		const char *place = make_place(name, with[i]);

		cr_assert_eq(start_in(place), 0, "'%s': %s", with[i], err_text(ERR_CONFIG));
		cr_assert_eq(mode_of(place), 0700);
		cr_assert(has(place, "id") && has(place, "making.lock"));
	}
}

/* One volume may have both. `kinf remove-store` leaves the runtime directory, and a person may
 * have made it. */
Test(home_place, a_directory_with_the_runtime_directory_in_it_becomes_a_store)
{
	const char *place = make_place("both", "run/ run/other/ run/other/1");
	struct home_options options = {.create = true, .runtime_dir = scratch_path("both/run")};
	struct home *home = NULL;

	expect_refusal(place, "such as run");
	OK(home_open(place, &options, &home));
	home_close(&home);
	cr_assert(has(place, "id"));
	(void)make_place("more", "run/ photos/ photos/1.jpg");
	options.runtime_dir = scratch_path("more/run");
	cr_assert_eq(home_open(scratch_path("more"), &options, &home), ERR_CONFIG);
	cr_assert_not_null(
		strstr(err_text(ERR_CONFIG), "such as photos"), "%s", err_text(ERR_CONFIG));
}

/* /var/lib/kinf is the directory of the first cluster's store, and /var/lib/kinf/NAME those of
 * others. */
Test(home_place, a_directory_with_other_stores_becomes_a_store)
{
	const char *place = make_place("kinf", "");

	cr_assert_eq(start_in(scratch_path("kinf/prod")), 0);
	cr_assert_eq(mkdir(scratch_path("kinf/starting"), 0700), 0);
	OK(start_in(place));
	expect_refusal(make_place("homes", "alice/ alice/.profile"), "such as alice");
}

/* A person preparing several clusters makes the directories by hand, with mkdir. */
Test(home_place, a_directory_with_empty_directories_of_the_user_or_root_becomes_a_store)
{
	OK(start_in(make_place("kinf", "prod/ test/")));
	if (geteuid() != 0)
		return;
	const char *place = make_place("homes", "alice/");
	cr_assert_eq(chown(scratch_path("homes/alice"), 54321, 54321), 0);
	expect_refusal(place, "such as alice");
}

/* A daemon may be killed after any step of a first start. */
Test(home_place, a_store_that_is_half_made_is_made)
{
	static const char *const with[] = {"making.lock", "making.lock journal/",
		"making.lock journal/ index/ cursors/ pins/ .id.new",
		"making.lock kinf.yaml journal/"};
	char name[16];

	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++) {
		(void)snprintf(name, sizeof(name), "half-%zu", i);
		const char *place = make_place(name, with[i]);

		cr_assert_eq(start_in(place), 0, "'%s': %s", with[i], err_text(ERR_CONFIG));
		cr_assert(has(place, "id"));
	}
}

static void copy_without(const char *name, const char *to, const char *const *without)
{
	scratch_copy(scratch_path("a/b/store"), scratch_path(to));
	for (; *without; without++) {
		char path[300];

		(void)snprintf(path, sizeof(path), "%s/%s", to, *without);
		scratch_remove(scratch_path(path));
	}
	scratch_write(scratch_path(name), "mine\n");
	OK(start_in(scratch_path(to)));
}

/* A store with a person's file stays one, even after files were lost in a copy. */
Test(home_place, a_store_or_copy_with_other_files_is_used)
{
	struct home *home = open_home(true);

	home_close(&home);
	copy_without("whole/mine.txt", "whole", (const char *const[]){NULL});
	copy_without("unlocked/mine.txt", "unlocked", (const char *const[]){"making.lock", NULL});
	copy_without("other/mine.txt", "other", (const char *const[]){"making.lock", "id", NULL});
	scratch_write(scratch_path("a/b/store/journal/CURRENT"), "gen-1\n");
	copy_without("bare/mine.txt", "bare",
		(const char *const[]){"making.lock", "id", "runtime", NULL});
}

/* ---- another user's directory ------------------------------------------- */

#define OTHER 65534

/* Reads the error told to the store's own user (not root); "" if the store opens. */
static void start_as_other(const char *store, char *said, size_t size)
{
	int pipes[2], status;

	cr_assert_eq(pipe(pipes), 0);
	pid_t child = fork();
	if (child == 0) {
		struct home_options options = {.create = true, .runtime_dir = scratch()};
		struct home *home = NULL;
		int r = setgroups(0, NULL) || setresgid(OTHER, OTHER, OTHER) ||
					setresuid(OTHER, OTHER, OTHER)
				? -EPERM
				: home_open(store, &options, &home);
		const char *text = r < 0 ? err_text(r) : "";

		_exit(write(pipes[1], text, strlen(text)) < 0);
	}
	(void)close(pipes[1]);
	ssize_t n = read(pipes[0], said, size - 1);
	said[n > 0 ? n : 0] = '\0';
	(void)close(pipes[0]);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

/* A volume of its own for a service's user: its directory was given to the user, and lost+found is
 * root's. */
Test(home_place, the_root_of_a_file_system_whose_lost_and_found_is_roots_becomes_a_store)
{
	const char *place = make_place("mount", "lost+found/ .snapshot/");
	char said[1000];

	if (geteuid() != 0)
		return;
	cr_assert_eq(chmod(scratch(), 0777), 0);
	cr_assert_eq(chmod(scratch_path("mount/lost+found"), 0700), 0);
	cr_assert_eq(chmod(scratch_path("mount/.snapshot"), 0700), 0);
	cr_assert_eq(chown(place, OTHER, OTHER), 0);
	start_as_other(place, said, sizeof(said));
	cr_assert_str_eq(said, "");
	cr_assert(has(place, "id"));
}
