/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/generation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/proc.h"
#include "store/env/generation_internal.h"
#include "store/env/state.h"
#include "store/pins/pin_page.h"

#define GENERATION_MAGIC 0x6b1e0e05u

struct generation {
	uint32_t magic;
	uint32_t number;
	int fd; /* of its directory */
	bool is_writer, is_untrusted;
	unsigned file_mode; /* a writer's */
	const struct generation_kind *kind;
	struct env *env;
	struct state state;
};

/* ---- opening ------------------------------------------------------------ */

static void generation_free(struct generation **gen)
{
	if (!*gen)
		return;
	env_close(&(*gen)->env);
	cleanup_fd(&(*gen)->fd);
	(*gen)->magic = 0;
	free(*gen);
	*gen = NULL;
}

static struct generation *generation_new(const struct generation_kind *kind, uint32_t number)
{
	struct generation *gen = calloc(1, sizeof(*gen));

	if (!gen)
		return NULL;
	gen->magic = GENERATION_MAGIC;
	gen->kind = kind;
	gen->number = number;
	gen->fd = -1;
	return gen;
}

static int generation_open_env(struct generation *gen, enum env_mode mode,
	const struct generation_options *options, const struct pin_places *places)
{
	char path[PATH_MAX];

	/* The directory's path as it is now: the store may have been moved since it was opened. */
	int r = proc_path_of(gen->fd, path, PATH_MAX - 16);
	if (r == -ENAMETOOLONG)
		return err_say(ERR_UNSUPPORTED,
			"the path of '%s' is longer than %d bytes: name a shorter one with 'store' "
			"in kinf.yaml or --store",
			gen->kind->what, PATH_MAX - 17);
	if (r == 0)
		r = failpoint_pass(strcmp(gen->kind->what, "index") == 0 ? FAILPOINT_INDEX_OPEN
									 : FAILPOINT_JOURNAL_OPEN);
	if (r < 0)
		return r;
	struct env_options env_options = {
		.mode = mode,
		.databases = gen->kind->databases,
		.n_databases = gen->kind->n_databases,
		.map_bytes = options ? options->map_bytes : 0,
		.writemap = gen->kind->writemap && !(options && options->durable),
		.durable = options && options->durable,
		.unchecked = gen->is_untrusted,
		.file_mode = options ? options->file_mode : 0600,
		.places = places,
	};
	return env_open(path, &env_options, &gen->env);
}

/*
 * Writes STATE (dirty), then opens the environment. If durability is new, everything unsynced is
 * synced before STATE promises it.
 */
static int generation_start_writing(
	struct generation *gen, const struct generation_options *options)
{
	bool synced = gen->state.clean || gen->state.durable;

	gen->is_writer = true;
	gen->file_mode = options->file_mode;
	gen->state.clean = false;
	gen->state.durable = options->durable && synced;
	int r = proc_boot_id(gen->state.boot);
	if (r == 0)
		r = state_identify(gen->fd, &gen->state.inode, &gen->state.device);
	if (r == 0)
		r = state_write(gen->fd, &gen->state, options->file_mode);
	if (r == 0)
		r = generation_open_env(gen, ENV_WRITE, options, options->places);
	if (r < 0 || !options->durable || synced)
		return r;
	r = env_sync(gen->env);
	gen->state.durable = true;
	return r < 0 ? r : state_write(gen->fd, &gen->state, options->file_mode);
}

/* Gives the generation the present rights of the store: it may be older than the store's reader
 * group. */
static int generation_set_rights(const struct generation *gen, int directory_fd, unsigned file_mode)
{
	static const char *const files[] = {"data.mdb", "pins", "hints", "STATE"};
	unsigned mode = generation_directory_mode(file_mode);
	struct stat above, ours;

	if (fstat(directory_fd, &above) < 0 || fstat(gen->fd, &ours) < 0)
		return err_set(-errno, "reading its rights");
	if (ours.st_gid == above.st_gid && (ours.st_mode & 07777) == mode)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if ((fchownat(gen->fd, files[i], (uid_t)-1, above.st_gid, AT_SYMLINK_NOFOLLOW) <
				    0 ||
			    fchmodat(gen->fd, files[i], file_mode, 0) < 0) &&
			errno != ENOENT)
			return err_set(-errno, "giving '%s' the rights of the store", files[i]);
	/* The directory last: it stands for all of this. */
	if (fchown(gen->fd, (uid_t)-1, above.st_gid) < 0 || fchmod(gen->fd, mode) < 0)
		return err_set(-errno, "giving it the rights of the store");
	return 0;
}

/* Opens its directory, reads STATE, and checks its trust. */
static int generation_read_state(struct generation *gen, int directory_fd)
{
	int r = generation_open_folder(directory_fd, gen->number, &gen->fd);

	gen->fd = proc_apart(gen->fd);
	if (r == 0)
		r = state_read(gen->fd, &gen->state);
	return r < 0 ? r : state_check(gen->fd, &gen->state, gen->kind->format);
}

int generation_open_write(int directory_fd, const struct generation_kind *kind,
	const struct generation_options *options, uint32_t number, struct generation **ret_gen)
{
	CLEANUP(generation_free) struct generation *gen = generation_new(kind, number);

	if (!gen)
		return err_set(-ENOMEM, "opening the %s", kind->what);
	int r = generation_read_state(gen, directory_fd);

	if (r == 0)
		r = generation_set_rights(gen, directory_fd, options->file_mode);
	if (r == 0)
		r = damaged_check(gen->fd);
	if (r == 0)
		r = generation_start_writing(gen, options);
	/* A missing file of it, or another kind of one, is damage also. */
	if (r == -ENOENT || r == -ENOTDIR || r == -EISDIR || r == -ELOOP)
		r = err_say(ERR_CORRUPT, "%s", err_text(r));
	if (r < 0)
		return err_add(r, "%s generation %" PRIu32, kind->what, number);
	*ret_gen = TAKE(gen);
	return 0;
}

static int generation_highest(void *arg, int directory_fd, uint32_t number)
{
	uint32_t *max = arg;

	(void)directory_fd;
	if (number > *max)
		*max = number;
	return 0;
}

/* Makes the directory with an empty data.mdb, and opens the environment in it. */
static int generation_fill_directory(
	struct generation *gen, int directory_fd, const struct generation_options *options)
{
	unsigned mode = generation_directory_mode(options->file_mode);
	char name[32];

	generation_folder_name(gen->number, name);
	if (mkdirat(directory_fd, name, 0700) < 0)
		return err_set(-errno, "making %s", name);
	int r = generation_open_folder(directory_fd, gen->number, &gen->fd);
	if (r == 0 && fchmod(gen->fd, mode) < 0)
		r = err_set(-errno, "making %s", name);
	if (r == 0) {
		AUTO_FD int file = openat(gen->fd, "data.mdb",
			O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, options->file_mode);
		if (file < 0 || fchmod(file, options->file_mode) < 0)
			r = err_set(-errno, "making data.mdb");
	}
	if (r == 0 && fsync(directory_fd) < 0)
		r = err_set(-errno, "syncing the directory");
	return r < 0 ? r : generation_start_writing(gen, options);
}

int generation_create(int directory_fd, const struct generation_kind *kind,
	const struct generation_options *options, const uint8_t uuid[16],
	struct generation **ret_gen)
{
	CLEANUP(generation_free) struct generation *gen = generation_new(kind, 0);

	if (!gen)
		return err_set(-ENOMEM, "making a new %s", kind->what);
	/* Also above the number in CURRENT: no process may take the new one for an old one. */
	int r = generation_current(directory_fd, &gen->number);
	err_ignore(r, "a number above all directories is new as well");
	r = generation_each(directory_fd, generation_highest, &gen->number);
	if (r < 0)
		return r;
	uint32_t number = ++gen->number;
	memcpy(gen->state.uuid, uuid, 16);
	gen->state.format = kind->format;
	gen->state.clean = true; /* it is empty: nothing is unsynced */
	r = generation_fill_directory(gen, directory_fd, options);
	if (r < 0) {
		generation_free(&gen);
		generation_remove_failed(directory_fd, number);
		return err_add(r, "new %s generation %" PRIu32, kind->what, number);
	}
	*ret_gen = TAKE(gen);
	return 0;
}

int generation_check_damage(const struct generation *gen)
{
	CHECK_OBJ(gen, GENERATION_MAGIC);
	int r = damaged_check(gen->fd);

	return r < 0 ? err_add(r, "%s generation %" PRIu32, gen->kind->what, gen->number) : 0;
}

int generation_advise(const struct generation *gen, int r)
{
	static const char of_copy[] = "it was copied while its daemons wrote to it, or its machine "
				      "stopped: 'kinf verify' says what can still be read, 'kinf "
				      "backup' makes a copy that is whole, and 'kinf run' on this "
				      "one lists everything again";

	CHECK_OBJ(gen, GENERATION_MAGIC);
	if (r == ERR_FORMAT)
		return err_say(r,
			"%s; start 'kinf run' of this version, which makes it again, or read it "
			"with the version of its writer",
			err_text(r));
	if (r == ERR_UNTRUSTED)
		return err_say(r,
			"%s; 'kinf run' on it lists everything again, and other commands check it "
			"first",
			err_text(r));
	return r == ERR_CORRUPT ? err_say(r, "%s; %s", err_text(r),
					  gen->is_untrusted ? of_copy : gen->kind->remedy)
				: r;
}

int generation_open_read(int directory_fd, const struct generation_kind *kind, uint32_t number,
	const struct pin_places *places, bool unchecked, struct generation **ret_gen)
{
	CLEANUP(generation_free) struct generation *gen = generation_new(kind, number);

	if (!gen)
		return err_set(-ENOMEM, "opening the %s", kind->what);
	int r = generation_read_state(gen, directory_fd);

	gen->is_untrusted = r == ERR_UNTRUSTED && unchecked;
	if (gen->is_untrusted) {
		err_ignore(r, "the caller checks what is in it");
		r = 0;
		places = NULL;
	}
	if (r == 0)
		r = generation_open_env(gen, places ? ENV_READ : ENV_COPY, NULL, places);
	r = generation_advise(gen, r);
	if (r == -ENOENT)
		r = err_say(r,
			"%s; the daemons make another one within seconds: start 'kinf run' if it "
			"does not run",
			err_text(r));
	if (r < 0)
		return err_add(r, "%s generation %" PRIu32, kind->what, number);
	*ret_gen = TAKE(gen);
	return 0;
}

bool generation_is_untrusted(const struct generation *gen)
{
	CHECK_OBJ(gen, GENERATION_MAGIC);
	return gen->is_untrusted;
}

/* Returns: 0; ERR_MOVED: another program has written over data.mdb. The generation is given up: an
 * older state would give the same numbers again, and no writer may take a mixture for its own. */
static int generation_give_up_overwritten(const struct generation *gen)
{
	int r = env_check_written(gen->env);

	if (r < 0 && unlinkat(gen->fd, "STATE", 0) < 0 && errno != ENOENT)
		return err_set(-errno,
			"removing STATE of the %s, whose data.mdb another program has written to",
			gen->kind->what);
	return r < 0 ? err_say(r, "%s: another %s is made when the daemon is started again",
			       err_text(r), gen->kind->what)
		     : 0;
}

void generation_close(struct generation **gen)
{
	struct generation *g = *gen;
	struct err_kept kept;
	struct stat st;

	if (!g)
		return;
	CHECK_OBJ(g, GENERATION_MAGIC);
	err_keep(&kept);
	/* If it can't be synced, STATE stays dirty: the truth. */
	if (g->is_writer && generation_give_up_overwritten(g) == 0 && env_sync(g->env) == 0 &&
		fstatat(g->fd, "STATE", &st, 0) == 0) {
		env_close(&g->env);
		g->state.clean = true;
		err_ignore(state_write(g->fd, &g->state, st.st_mode & 0777),
			"STATE stays dirty, which is safe");
	}
	err_restore(&kept);
	generation_free(gen);
}

void generation_discard(struct generation **gen)
{
	if (*gen)
		(*gen)->is_writer = false;
	generation_close(gen);
}

void generation_cancel(struct generation **gen, int directory_fd)
{
	struct err_kept kept;
	uint32_t number, current;

	if (!*gen)
		return;
	number = (*gen)->number;
	generation_discard(gen);
	err_keep(&kept);
	if (generation_current(directory_fd, &current) != FOUND || current != number)
		generation_remove_failed(directory_fd, number);
	err_restore(&kept);
}

int generation_set_uuid(struct generation *gen, const uint8_t uuid[16])
{
	CHECK_OBJ(gen, GENERATION_MAGIC);
	memcpy(gen->state.uuid, uuid, 16);
	return state_write(gen->fd, &gen->state, gen->file_mode);
}

struct env *generation_env(struct generation *gen)
{
	CHECK_OBJ(gen, GENERATION_MAGIC);
	return gen->env;
}

int generation_folder_fd(const struct generation *gen)
{
	CHECK_OBJ(gen, GENERATION_MAGIC);
	return gen->fd;
}

uint32_t generation_number(const struct generation *gen)
{
	CHECK_OBJ(gen, GENERATION_MAGIC);
	return gen->number;
}

/* Checks the files of a written generation: data.mdb is the open one; STATE is the writer's, or is
 * written again, because no reader can open the generation without it. */
static int generation_check_files(const struct generation *gen)
{
	struct state there = {0};
	uint64_t inode, device;

	int r = state_identify(gen->fd, &inode, &device);
	if (r == -ENOENT || (r == 0 && (inode != gen->state.inode || device != gen->state.device)))
		return err_say(ERR_MOVED,
			"data.mdb of the %s was removed or replaced while in use: another %s is "
			"made when the daemon is started again",
			gen->kind->what, gen->kind->what);
	if (r == 0)
		r = generation_give_up_overwritten(gen);
	if (r < 0)
		return r;
	r = state_read(gen->fd, &there);
	bool same = r == 0 && there.clean == gen->state.clean &&
		    there.durable == gen->state.durable && there.inode == gen->state.inode &&
		    there.device == gen->state.device && there.format == gen->state.format &&
		    strcmp(there.boot, gen->state.boot) == 0 &&
		    memcmp(there.uuid, gen->state.uuid, 16) == 0;
	err_ignore(r, "the file is written again");
	if (!same)
		err_ignore(state_write(gen->fd, &gen->state, gen->file_mode),
			"the next check tries again");
	return 0;
}

int generation_check(const struct generation *gen, int directory_fd, bool published)
{
	struct stat ours, there;
	uint32_t current;
	char name[32];

	CHECK_OBJ(gen, GENERATION_MAGIC);
	generation_folder_name(gen->number, name);
	bool is_there = fstat(gen->fd, &ours) == 0 &&
			fstatat(directory_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
			ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
	/* A new reader needs the page, and a starting writer makes it. */
	if (is_there && !(gen->is_writer ? env_check_pin_page(gen->env, gen->fd)
					 : faccessat(gen->fd, PIN_PAGE_FILE, F_OK, 0) == 0 ||
						   errno != ENOENT))
		return err_say(ERR_MOVED,
			"'%s/" PIN_PAGE_FILE "' of the %s was removed, replaced or damaged while "
			"in use: it is made when the daemon is started again",
			name, gen->kind->what);
	int r = published && is_there ? generation_current(directory_fd, &current) : FOUND;
	if (is_there && env_is_outdated(gen->env))
		return err_say(ERR_MOVED, "the %s must be opened again", gen->kind->what);
	if (is_there && (!published || (r == FOUND && current == gen->number)))
		return gen->is_writer ? generation_check_files(gen) : 0;
	if (r < 0 && r != ERR_CORRUPT && r != -ENOENT)
		return r;
	return err_say(ERR_MOVED,
		"'%s' of the %s was removed or replaced while in use: the daemon's next start "
		"makes it again",
		is_there ? "CURRENT" : name, gen->kind->what);
}

const uint8_t *generation_uuid(const struct generation *gen)
{
	CHECK_OBJ(gen, GENERATION_MAGIC);
	return gen->state.uuid;
}
