/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

#define STATE_HEAD "kinf-generation 1\n"
#define STATE_MAX  1024

static void hex_put(const uint8_t uuid[16], char text[33])
{
	for (int i = 0; i < 16; i++)
		(void)snprintf(text + (ptrdiff_t)2 * i, 3, "%02x", uuid[i]);
}

static int hex_get(const char *text, uint8_t uuid[16])
{
	for (int i = 0; i < 16; i++) {
		unsigned byte;
		if (sscanf(text + (ptrdiff_t)2 * i, "%2x", &byte) != 1)
			return -1;
		uuid[i] = (uint8_t)byte;
	}
	return 0;
}

int write_whole(int fd, struct bytes text)
{
	const char *data = text.data;

	while (text.size > 0) {
		ssize_t n = write(fd, data, text.size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		text.size -= (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

int replace_file(int directory_fd, const char *name, const char *text, unsigned mode)
{
	char temporary[32];

	(void)snprintf(temporary, sizeof(temporary), ".%s.new", name);
	AUTO_FD int fd = openat(directory_fd, temporary,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return err_set(-errno, "writing %s", name);
	int r = fchmod(fd, mode) < 0 ? -errno : write_whole(fd, bytes_str(text));
	if (r == 0 && (renameat(directory_fd, temporary, directory_fd, name) < 0 ||
			      fsync(directory_fd) < 0))
		r = -errno;
	return r < 0 ? err_set(r, "writing %s", name) : 0;
}

int read_file(int directory_fd, const char *name, char *text, size_t size)
{
	AUTO_FD int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return err_set(-errno, "reading %s", name);
	ssize_t n = read(fd, text, size - 1);
	if (n < 0)
		return err_set(-errno, "reading %s", name);
	text[n] = '\0';
	return 0;
}

int state_write(int fd, const struct state *state, unsigned mode)
{
	char text[STATE_MAX], uuid[33];

	hex_put(state->uuid, uuid);
	(void)snprintf(text, sizeof(text),
		STATE_HEAD "state %s\ndurability %s\nboot %s\ninode %" PRIu64 "\nformat %" PRIu32
			   "\nuuid %s\n",
		state->clean ? "clean" : "dirty", state->durable ? "disk" : "process", state->boot,
		state->inode, state->format, uuid);
	return replace_file(fd, "STATE", text, mode);
}

static int state_parse(const char *text, struct state *ret_state)
{
	char word[8], durability[8], uuid[33];
	struct state s = {0};
	unsigned version;

	if (strncmp(text, STATE_HEAD, strlen(STATE_HEAD)) != 0)
		return err_set(sscanf(text, "kinf-generation %u", &version) == 1 && version > 1
				       ? ERR_FORMAT
				       : ERR_CORRUPT,
			"STATE");
	int n = sscanf(text + strlen(STATE_HEAD),
		"state %7s durability %7s boot %32s inode %" SCNu64 " format %" SCNu32 " uuid %32[0-9a-f]",
		word, durability, s.boot, &s.inode, &s.format, uuid);
	if (n != 6 || strlen(uuid) != 32 || hex_get(uuid, s.uuid) < 0)
		return err_set(ERR_CORRUPT, "STATE");
	s.clean = strcmp(word, "clean") == 0;
	s.durable = strcmp(durability, "disk") == 0;
	if ((!s.clean && strcmp(word, "dirty") != 0) ||
		(!s.durable && strcmp(durability, "process") != 0))
		return err_set(ERR_CORRUPT, "STATE");
	*ret_state = s;
	return 0;
}

int state_read(int fd, struct state *ret_state)
{
	char text[STATE_MAX];
	int r = read_file(fd, "STATE", text, sizeof(text));

	return r < 0 ? r : state_parse(text, ret_state);
}

/* An unknown boot is another one. */
static bool same_boot(const char *boot)
{
	char now[33];

	return proc_boot_id(now) == 0 && strcmp(now, boot) == 0;
}

int state_inode(int fd, uint64_t *ret_inode)
{
	struct stat st;

	if (fstatat(fd, "data.mdb", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(-errno, "data.mdb");
	*ret_inode = st.st_ino;
	return 0;
}

/* May what STATE describes be believed? */
int state_check(int fd, const struct state *state, uint32_t format)
{
	uint64_t inode;

	if (state->format != format)
		return err_say(ERR_FORMAT,
			"its format is %" PRIu32 ", this program knows %" PRIu32
			": use the program that wrote it, or let the daemons build it again",
			state->format, format);
	if (state->clean)
		return 0;
	int r = state_inode(fd, &inode);
	if (r < 0)
		return r;
	if (inode != state->inode)
		return err_say(ERR_UNTRUSTED,
			"it was copied while a daemon wrote to it: stop the daemons, then copy the store "
			"again");
	if (!state->durable && !same_boot(state->boot))
		return err_say(ERR_UNTRUSTED,
			"the machine stopped while it was written, so it may be damaged: start the daemons, "
			"they build a new one from the API server");
	return 0;
}
