/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/daemon/parent.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/text/decimal.h"
#include "common/unix_socket.h"
#include "serve/http/tls.h"

#define LISTENER_BACKLOG  4096
#define KEEPALIVE_IDLE_S  30
#define KEEPALIVE_EVERY_S 10
#define KEEPALIVE_COUNT   3
/* Longer than a slow reader's minute: a closed window also counts. */
#define USER_TIMEOUT_MS 75000

/* ---- facts about a socket ----------------------------------------------- */

static bool listener_is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *in = (const void *)address;
	const struct sockaddr_in6 *in6 = (const void *)address;

	if (address->ss_family == AF_INET)
		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	return address->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

/* Adds and takes over the bound socket FD. */
static int listeners_add(struct listeners *all, enum listener_kind kind, int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);
	char host[64] = "", port[16] = "";
	AUTO_FD int owned = fd;

	if (all->n == LISTENERS_MAX)
		return err_say(ERR_CONFIG, "more than %d addresses to listen on", LISTENERS_MAX);
	if (getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		return err_set(-errno, "finding the address of a socket");
	struct listener *l = &all->items[all->n];
	*l = (struct listener){.kind = kind, .local = address.ss_family == AF_UNIX};
	l->any_loopback = l->local || listener_is_loopback(&address);
	if (l->local) {
		/* Our own was bound by the descriptor of its directory. */
		const struct sockaddr_un *un = (const void *)&address;
		bool ours = strncmp(un->sun_path, "/proc/self/fd/", 14) == 0;

		(void)snprintf(l->name, sizeof(l->name), "unix");
		(void)snprintf(l->path, sizeof(l->path), "%.*s",
			ours ? 0 : (int)sizeof(un->sun_path), un->sun_path);
	} else if (getnameinfo((struct sockaddr *)&address, size, host, sizeof(host), port,
			   sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV)) {
		return err_say(-EAFNOSUPPORT, "a socket to listen on is neither TCP nor Unix");
	} else {
		(void)snprintf(l->name, sizeof(l->name), strchr(host, ':') ? "[%s]:%s" : "%s:%s",
			host, port);
	}
	l->fd = TAKE_FD(owned);
	all->n++;
	return 0;
}

/* ---- opening ------------------------------------------------------------ */

/* Returns the error of listening on WORD, with the remedy. */
static int listener_refused(int error, const char *word)
{
	if (error == EADDRNOTAVAIL)
		return err_say(-error,
			"listening on '%s': %s: no interface of this machine has this address; "
			"name one that it has, or :PORT for all",
			word, strerror(error));
	if (error == EACCES)
		return err_say(-error,
			"listening on '%s': %s: user %u may not use this port; take one from 1024 "
			"on, or give the process CAP_NET_BIND_SERVICE (for a unit of systemd: "
			"AmbientCapabilities, CapabilityBoundingSet)",
			word, strerror(error), (unsigned)geteuid());
	return err_set(-error, "listening on '%s'", word);
}

static int listeners_open_address(struct listeners *all, enum listener_kind kind,
	const struct addrinfo *address, const char *word)
{
	int on = 1;
	AUTO_FD int fd = socket(address->ai_family,
		address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->ai_protocol);

	if (fd < 0)
		return err_set(-errno, "listening on '%s'", word);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* An IPv6 wildcard must not take the address of the IPv4 one. */
	if (address->ai_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, address->ai_addr, address->ai_addrlen) < 0 ||
		(!all->trial && listen(fd, LISTENER_BACKLOG) < 0))
		return listener_refused(errno, word);
	return listeners_add(all, kind, TAKE_FD(fd));
}

/* Opens "HOST:PORT", "[HOST]:PORT" or ":PORT", all addresses of the machine. */
static int listeners_open_tcp(struct listeners *all, enum listener_kind kind, const char *word)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct addrinfo *found = NULL;
	const char *colon = strrchr(word, ':');
	char host[256];
	uint64_t port;

	if (!colon || (size_t)(colon - word) >= sizeof(host) ||
		decimal_parse(bytes_str(colon + 1), 65535, &port) < 0)
		return err_say(ERR_CONFIG,
			"serve.listen: '%s': must be unix, ADDRESS:PORT, [ADDRESS]:PORT or :PORT",
			word);
	bool brackets = word[0] == '[' && colon > word + 1 && colon[-1] == ']';
	(void)snprintf(
		host, sizeof(host), "%.*s", (int)(colon - word) - 2 * brackets, word + brackets);
	int r = getaddrinfo(*host ? host : NULL, colon + 1, &hints, &found);
	if (r)
		return err_say(ERR_CONFIG, "listening on '%s': %s", word, gai_strerror(r));
	size_t before = all->n;
	for (const struct addrinfo *a = found; a; a = a->ai_next) {
		r = listeners_open_address(all, kind, a, word);
		/* A machine without IPv6 has no ::1, though the name 'localhost' may lead there. */
		if (r < 0 && r != -EADDRNOTAVAIL && r != -EAFNOSUPPORT)
			break;
	}
	freeaddrinfo(found);
	return r < 0 && ((r != -EADDRNOTAVAIL && r != -EAFNOSUPPORT) || all->n == before) ? r : 0;
}

static int listeners_inherit(struct listeners *all, enum listener_kind kind)
{
	int n = (int)parent_sockets(), r = 0;

	if (n > LISTENERS_MAX)
		r = err_say(ERR_CONFIG, "more than %d sockets", LISTENERS_MAX);
	for (int fd = PARENT_SOCKET; r >= 0 && fd < PARENT_SOCKET + n; fd++) {
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
			return err_set(-errno, "taking socket %d of the service manager", fd);
		r = listeners_add(all, kind, fd);
	}
	return r < 0 ? err_add(r, "taking the sockets of the service manager") : 0;
}

int listeners_open(struct listeners *all, enum listener_kind kind, const char *words,
	int runtime_fd, unsigned mode)
{
	AUTO_FREE char *copy = strdup(words);
	char *rest = copy, *used = NULL;
	int r = 0;

	if (!copy)
		return err_set(-ENOMEM, "listening");
	if (kind == LISTENER_API && parent_sockets() && !all->trial)
		return listeners_inherit(all, kind);
	for (char *word; r == 0 && (word = strsep(&rest, " "));) {
		if (strcmp(word, "unix") == 0 && !all->trial) {
			int fd = unix_socket_listen(
				runtime_fd, LISTENER_SOCKET, SOCK_STREAM, mode, LISTENER_BACKLOG);
			r = fd < 0 ? err_add(fd, "in the runtime directory")
				   : listeners_add(all, kind, fd);
		} else if (*word && strcmp(word, "unix") != 0) {
			r = listeners_open_tcp(all, kind, word);
		}
		if (r == -EADDRINUSE && all->trial) {
			err_ignore(r, "another address may be worse");
			used = word;
			r = 0;
		}
	}
	return r == 0 && used ? err_set(-EADDRINUSE, "listening on '%s'", used) : r;
}

void listeners_close(struct listeners *all)
{
	for (size_t i = 0; i < all->n; i++)
		cleanup_fd(&all->items[i].fd);
}

/* ---- accepting ---------------------------------------------------------- */

int listener_accept(const struct listener *l)
{
	static const struct {
		int level, name, value;
	} options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1}, {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S},
		{IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS}, {IPPROTO_TCP, TCP_NODELAY, 1}};
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return err_say(-EAGAIN, "no connection is waiting");
	if (fd < 0)
		return err_set(-errno, "accepting a connection on '%s'", l->name);
	/* A connection without one of these is only noticed later when its client is gone. */
	for (size_t i = 0; !l->local && i < ARRAY_SIZE(options); i++)
		(void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			sizeof(options[i].value));
	return fd;
}

/* ---- clients ------------------------------------------------------------ */

/* Reads the user, groups and process of the client of a Unix socket, as they were at its
 * connect(2). */
static int peer_of_unix(int fd, struct exchange_peer *peer, gid_t **ret_groups)
{
	struct ucred who;
	socklen_t size = sizeof(who), groups_size = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
		return err_set(-errno, "finding who has connected");
	/* The first call says how many there are. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &groups_size) < 0 && errno != ERANGE)
		return err_set(-errno, "finding the groups of a client");
	gid_t *groups = *ret_groups = calloc(groups_size / sizeof(gid_t) + 1, sizeof(gid_t));
	if (!groups)
		return err_set(-ENOMEM, "finding the groups of a client");
	if (groups_size && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups + 1, &groups_size) < 0)
		return err_set(-errno, "finding the groups of a client");
	groups[0] = who.gid;
	peer->groups = groups;
	peer->n_groups = groups_size / sizeof(gid_t) + 1;
	peer->uid = who.uid;
	(void)snprintf(
		peer->address, sizeof(peer->address), "unix:uid=%u,pid=%d", who.uid, who.pid);
	return 0;
}

int peer_of_socket(
	int fd, const struct listener *listener, struct exchange_peer *ret_peer, gid_t **ret_groups)
{
	struct exchange_peer *peer = ret_peer;
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);
	char host[48] = "", port[8] = "";

	*peer = (struct exchange_peer){
		.local = listener->local, .auth = listener->auth, .common_name = ""};
	if (peer->local) {
		peer->loopback = true;
		return peer_of_unix(fd, peer, ret_groups);
	}
	if (getpeername(fd, (struct sockaddr *)&address, &size) < 0 ||
		getnameinfo((struct sockaddr *)&address, size, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		return err_say(-ENOTCONN, "a client has gone already");
	peer->loopback = strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
			 strncmp(host, "::ffff:127.", 11) == 0;
	(void)snprintf(peer->address, sizeof(peer->address),
		strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	return 0;
}

bool exchange_peer_counts(const struct exchange_peer *peer)
{
	return !peer->certificate || ((int64_t)(proc_realtime_ns() / 1000000000u) < peer->until_s &&
					     tls_session_is_trusted(peer->certificate));
}
