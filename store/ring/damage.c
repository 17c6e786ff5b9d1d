/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/damage.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"

#define DAMAGE_MAGIC 0x31474d44u /* "DMG1" */

/* Offsets in a report (FORMAT.md, Reports of damage). */
enum { AT_MAGIC = 0, AT_FEED = 4, AT_SEQ = 8, AT_JOURNAL = 16, DAMAGE_SIZE = 32 };

const char *damage_name(enum damage_to to)
{
	static const char *const names[DAMAGE_TO_MAX] = {
		[DAMAGE_REFLECTOR] = "damage.reflector",
		[DAMAGE_PROCESSOR] = "damage.processor",
	};

	REQUIRE(to < DAMAGE_TO_MAX);
	return names[to];
}

/* By the descriptor: the directory's path may be too long for an address. */
static struct sockaddr_un damage_address(const struct home *home, enum damage_to to)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s",
		home_runtime_fd(home), damage_name(to));
	return address;
}

int damage_open(const struct home *home, enum damage_to to)
{
	struct sockaddr_un address = damage_address(home, to);
	mode_t mode = home_file_mode(home) & 0040 ? 0660 : 0600; /* sending takes the right to write */
	int runtime = home_runtime_fd(home);
	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || (unlinkat(runtime, damage_name(to), 0) < 0 && errno != ENOENT) ||
		bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		fchmodat(runtime, damage_name(to), mode, 0) < 0)
		return err_set(-errno, "making the socket '%s/%s'", home_runtime(home), damage_name(to));
	return TAKE_FD(fd);
}

int damage_receive(int fd, struct damage_report *ret_report)
{
	uint8_t bytes[DAMAGE_SIZE + 1];

	for (int n = 0; fd >= 0 && n < DAMAGE_REPORTS_MAX; n++) {
		ssize_t size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (size < 0)
			return AGAIN; /* none; or a fault of the socket, which home_check() finds */
		if (size != DAMAGE_SIZE || le32_get(bytes + AT_MAGIC) != DAMAGE_MAGIC)
			continue;
		*ret_report = (struct damage_report){
			.seq = le64_get(bytes + AT_SEQ), .feed = le32_get(bytes + AT_FEED)};
		memcpy(ret_report->journal, bytes + AT_JOURNAL, sizeof(ret_report->journal));
		return FOUND;
	}
	return AGAIN;
}

void damage_send(const struct home *home, enum damage_to to, const struct damage_report *report)
{
	struct sockaddr_un address = damage_address(home, to);
	uint8_t bytes[DAMAGE_SIZE];

	if (home_runtime_fd(home) < 0)
		return;
	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	le32_put(bytes + AT_MAGIC, DAMAGE_MAGIC);
	le32_put(bytes + AT_FEED, report->feed);
	le64_put(bytes + AT_SEQ, report->seq);
	memcpy(bytes + AT_JOURNAL, report->journal, sizeof(report->journal));
	if (fd >= 0) /* failing is losing the report, which is allowed */
		(void)sendto(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL,
			(struct sockaddr *)&address, sizeof(address));
}
