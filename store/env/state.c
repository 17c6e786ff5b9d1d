/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/err.h"
#include "common/proc.h"
#include "store/env/text_file.h"

#define STATE_HEAD "kinf-generation 1\n"
#define STATE_MAX  1024

int state_write(int fd, const struct state *state, unsigned mode)
{
	char text[STATE_MAX], uuid[33];

	for (int i = 0; i < 16; i++)
		(void)snprintf(uuid + (ptrdiff_t)2 * i, 3, "%02x", state->uuid[i]);
	(void)snprintf(text, sizeof(text),
		STATE_HEAD "state %s\ndurability %s\nboot %s\ninode %" PRIu64 "\nformat %" PRIu32
			   "\nuuid %s\ndevice %" PRIu64 "\n",
		state->clean ? "clean" : "dirty", state->durable ? "disk" : "process", state->boot,
		state->inode, state->format, uuid, state->device);
	return text_file_replace(fd, "STATE", text, mode);
}

int state_read(int fd, struct state *ret_state)
{
	char text[STATE_MAX], word[8], durability[8], uuid[33];
	struct state s = {0};
	unsigned version;

	int r = text_file_read(fd, "STATE", text, sizeof(text), NULL);
	if (r < 0)
		return r;
	if (strncmp(text, STATE_HEAD, strlen(STATE_HEAD)) != 0) {
		bool newer = sscanf(text, "kinf-generation %u", &version) == 1 && version > 1;

		return newer ? err_set(ERR_FORMAT, "STATE") : err_set(ERR_CORRUPT, "STATE");
	}
	int used = 0;
	int n = sscanf(text + strlen(STATE_HEAD),
		"state %7s durability %7s boot %32s inode %" SCNu64 " format %" SCNu32
		" uuid %32[0-9a-f]\ndevice %" SCNu64 "%n",
		word, durability, s.boot, &s.inode, &s.format, uuid, &s.device, &used);
	if (n != 7 || strlen(uuid) != 32 || strcmp(text + strlen(STATE_HEAD) + used, "\n") != 0)
		return err_set(ERR_CORRUPT, "STATE");
	for (int i = 0; i < 16; i++)
		(void)sscanf(uuid + (ptrdiff_t)2 * i, "%2hhx",
			&s.uuid[i]); /* 32 hex digits: can't fail */
	s.clean = strcmp(word, "clean") == 0;
	s.durable = strcmp(durability, "disk") == 0;
	if ((!s.clean && strcmp(word, "dirty") != 0) ||
		(!s.durable && strcmp(durability, "process") != 0))
		return err_set(ERR_CORRUPT, "STATE");
	*ret_state = s;
	return 0;
}

int state_identify(int fd, uint64_t *ret_inode, uint64_t *ret_device)
{
	struct stat st;

	if (fstatat(fd, "data.mdb", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(-errno, "data.mdb");
	*ret_inode = st.st_ino;
	*ret_device = st.st_dev;
	return 0;
}

int state_check(int fd, const struct state *state, uint32_t format)
{
	uint64_t inode, device;
	char boot[33];

	if (state->format != format)
		return err_say(ERR_FORMAT,
			"it has format %" PRIu32 ", and this program knows format %" PRIu32,
			state->format, format);
	if (state->clean)
		return 0;
	int r = state_identify(fd, &inode, &device);
	if (r < 0)
		return r;
	/* A snapshot or image of a file system, mounted elsewhere, has the same inode. Another boot
	 * may number devices differently. */
	bool is_elsewhere = false;
	if (device != state->device && proc_boot_id(boot) == 0)
		is_elsewhere = strcmp(boot, state->boot) == 0;
	if (inode != state->inode || is_elsewhere)
		return err_say(ERR_UNTRUSTED,
			"it is the copy of a store whose daemons ran or were killed");
	/* Without this boot's id nothing is known of the data: it must not be given up. */
	r = state->durable ? 0 : proc_boot_id(boot);
	if (r < 0)
		return r;
	if (!state->durable && strcmp(boot, state->boot) != 0)
		return err_say(ERR_UNTRUSTED,
			"the machine stopped while it was written, so it may be damaged");
	return 0;
}

/* ---- damage ------------------------------------------------------------- */

#define SENTENCE_SIZE 512

int damaged_note(int folder_fd, const char *sentence)
{
	char text[SENTENCE_SIZE];

	(void)snprintf(text, sizeof(text), "%.500s\n", sentence);
	return text_file_replace(folder_fd, DAMAGED_FILE, text, 0600);
}

int damaged_check(int folder_fd)
{
	char sentence[SENTENCE_SIZE];
	int r = text_file_read_line(folder_fd, DAMAGED_FILE, sentence, sizeof(sentence), NULL);

	if (r == NOT_FOUND)
		return 0;
	return r < 0 ? r : err_say(ERR_CORRUPT, "a daemon met damage in it: %s", sentence);
}
