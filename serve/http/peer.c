/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/peer.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "serve/http/listener.h"
#include "serve/http/tls.h"

struct peer_texts {
	gid_t *groups;
	struct tls_names names;
};

void peer_release(struct peer_texts **texts)
{
	struct peer_texts *t = TAKE(*texts);

	if (!t)
		return;
	free(t->groups);
	tls_names_release(&t->names);
	free(t);
}

static int peer_new_texts(struct peer_texts **texts)
{
	if (!*texts)
		*texts = calloc(1, sizeof(**texts));
	return *texts ? 0 : err_set(-ENOMEM, "noting who a client is");
}

/* Reads the user, groups and process of the client of a Unix socket, as they were at its
 * connect(2). */
static int peer_of_unix(int fd, struct exchange_peer *peer, struct peer_texts **texts)
{
	struct ucred who;
	socklen_t size = sizeof(who), groups_size = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
		return err_set(-errno, "finding who has connected");
	int r = peer_new_texts(texts);
	if (r < 0)
		return r;
	/* The first call says how many there are. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &groups_size) < 0 && errno != ERANGE)
		return err_set(-errno, "finding the groups of a client");
	(*texts)->groups = calloc(groups_size / sizeof(gid_t) + 1, sizeof(gid_t));
	if (!(*texts)->groups)
		return err_set(-ENOMEM, "finding the groups of a client");
	if (groups_size &&
		getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, (*texts)->groups + 1, &groups_size) < 0)
		return err_set(-errno, "finding the groups of a client");
	(*texts)->groups[0] = who.gid;
	peer->groups = (*texts)->groups;
	peer->n_groups = groups_size / sizeof(gid_t) + 1;
	peer->pid = who.pid;
	peer->uid = who.uid;
	(void)snprintf(
		peer->address, sizeof(peer->address), "unix:uid=%u,pid=%d", who.uid, who.pid);
	return 0;
}

int peer_of_socket(int fd, const struct listener *listener, struct exchange_peer *ret_peer,
	struct peer_texts **ret_texts)
{
	struct exchange_peer *peer = ret_peer;
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);
	char host[48] = "", port[8] = "";

	*peer = (struct exchange_peer){.local = listener->local,
		.auth = listener->auth,
		.common_name = "",
		.server = listener->name};
	if (peer->local) {
		peer->loopback = true;
		return peer_of_unix(fd, peer, ret_texts);
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

int peer_of_certificate(
	struct tls_session *tls, struct exchange_peer *peer, struct peer_texts **texts)
{
	if (!tls_session_has_certificate(tls))
		return 0;
	int r = peer_new_texts(texts);
	if (r == 0)
		r = tls_session_names(tls, &(*texts)->names);
	if (r < 0)
		return r;
	peer->common_name = (*texts)->names.common_name;
	peer->organizations = (const char *const *)(*texts)->names.organizations;
	peer->n_organizations = (*texts)->names.n_organizations;
	peer->until_s = (*texts)->names.until_s;
	peer->certificate = tls;
	return 0;
}

bool exchange_peer_counts(const struct exchange_peer *peer)
{
	return !peer->certificate || ((int64_t)(proc_realtime_ns() / 1000000000u) < peer->until_s &&
					     tls_session_is_trusted(peer->certificate));
}
