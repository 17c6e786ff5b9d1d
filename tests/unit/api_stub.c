/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/api_stub.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "tests/unit/unit.h"

#define ANSWERS_MAX     24
#define CONNECTIONS_MAX 64
#define HEAD_MAX        8192

struct connection {
	struct api_stub *stub;
	pthread_t thread;
	int fd;
};

struct api_stub {
	int listener;
	pthread_t thread;
	char url[64];
	struct api_stub_answer answers[ANSWERS_MAX];

	pthread_mutex_t lock; /* guards what follows */
	size_t n_requests, n_connections;
	char last[HEAD_MAX], copy[HEAD_MAX];
	struct connection connections[CONNECTIONS_MAX];
};

/* Until the empty line; false at the end of the connection. */
static bool read_head(int fd, char *head)
{
	size_t size = 0;

	while (size < HEAD_MAX - 1) {
		ssize_t n = recv(fd, head + size, 1, 0);

		if (n <= 0)
			return false;
		head[++size] = '\0';
		if (size >= 4 && !memcmp(head + size - 4, "\r\n\r\n", 4))
			return true;
	}
	return false;
}

/* The answer to the Nth request. */
static const struct api_stub_answer *answer_for(
	const struct api_stub *stub, size_t n, const char *head)
{
	static const struct api_stub_answer none = {"", 404, "text/plain", "404 page not found\n"};
	const char *path = head + strcspn(head, " ") + 1;
	size_t size = strcspn(path, " ?");

	for (const struct api_stub_answer *a = stub->answers; a->path; a++)
		if (strlen(a->path) == size && !memcmp(a->path, path, size) &&
			(!a->until || n <= a->until) &&
			(!a->query || memmem(path + size, strcspn(path + size, " "), a->query,
					      strlen(a->query))))
			return a;
	return &none;
}

static void send_text(int fd, const char *text, size_t size)
{
	(void)send(fd, text, size, MSG_NOSIGNAL); /* the client may have gone */
}

/* Waits until the client goes or the stub stops. */
static void linger(int fd)
{
	char byte;

	while (recv(fd, &byte, 1, 0) > 0)
		;
}

/* False: the connection is over. */
static bool send_answer(int fd, const struct api_stub_answer *answer)
{
	static const struct linger at_once = {.l_onoff = 1};
	size_t size = answer->size || !answer->body ? answer->size : strlen(answer->body);
	bool whole = answer->fault == STUB_GOOD;
	char head[2048];
	int n;

	if (answer->fault == STUB_SILENT)
		linger(fd);
	if (answer->fault == STUB_GARBAGE)
		send_text(fd, "lorem ipsum\r\n\r\n", 15);
	if (answer->fault == STUB_RESET)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	if (answer->fault == STUB_SILENT || answer->fault == STUB_GARBAGE ||
		answer->fault == STUB_RESET)
		return false;
	n = snprintf(head, sizeof(head),
		"HTTP/1.1 %d X\r\n%sContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
		answer->status, answer->headers ? answer->headers : "", answer->content_type,
		size + !whole);
	send_text(fd, head, (size_t)n);
	send_text(fd, answer->body, size);
	if (answer->fault == STUB_SILENT_BODY)
		linger(fd);
	return whole;
}

static void *serve(void *arg)
{
	struct connection *connection = arg;
	struct api_stub *stub = connection->stub;
	char head[HEAD_MAX];
	bool more = true;

	while (more && read_head(connection->fd, head)) {
		pthread_mutex_lock(&stub->lock);
		size_t n = ++stub->n_requests;
		memcpy(stub->last, head, sizeof(head));
		pthread_mutex_unlock(&stub->lock);
		more = send_answer(connection->fd, answer_for(stub, n, head));
	}
	pthread_mutex_lock(&stub->lock);
	close(connection->fd);
	connection->fd = -1;
	pthread_mutex_unlock(&stub->lock);
	return NULL;
}

static void *listen_loop(void *arg)
{
	struct api_stub *stub = arg;

	for (;;) {
		int fd = accept(stub->listener, NULL, NULL);
		struct connection *connection;

		if (fd < 0)
			return NULL;
		pthread_mutex_lock(&stub->lock);
		cr_assert(stub->n_connections < CONNECTIONS_MAX);
		connection = &stub->connections[stub->n_connections];
		*connection = (struct connection){.stub = stub, .fd = fd};
		if (!pthread_create(&connection->thread, NULL, serve, connection))
			stub->n_connections++;
		pthread_mutex_unlock(&stub->lock);
	}
}

struct api_stub *api_stub_start(const struct api_stub_answer *answers)
{
	struct api_stub *stub = calloc(1, sizeof(*stub));
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);

	cr_assert(stub);
	for (size_t i = 0; answers[i].path; i++) {
		cr_assert(i < ANSWERS_MAX - 1);
		stub->answers[i] = answers[i];
	}
	pthread_mutex_init(&stub->lock, NULL);
	stub->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert(stub->listener >= 0);
	cr_assert_eq(bind(stub->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(stub->listener, 64), 0);
	cr_assert_eq(getsockname(stub->listener, (struct sockaddr *)&address, &size), 0);
	(void)snprintf(
		stub->url, sizeof(stub->url), "http://127.0.0.1:%u", ntohs(address.sin_port));
	cr_assert_eq(pthread_create(&stub->thread, NULL, listen_loop, stub), 0);
	return stub;
}

void api_stub_stop(struct api_stub **stub)
{
	struct api_stub *s = *stub;

	if (!s)
		return;
	*stub = NULL;
	(void)shutdown(s->listener, SHUT_RDWR); /* wakes accept() */
	pthread_join(s->thread, NULL);
	close(s->listener);
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->n_connections; i++)
		if (s->connections[i].fd >= 0)
			(void)shutdown(s->connections[i].fd, SHUT_RDWR);
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < s->n_connections; i++)
		pthread_join(s->connections[i].thread, NULL);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

const char *api_stub_url(const struct api_stub *stub)
{
	return stub->url;
}

static size_t read_locked(struct api_stub *stub, const size_t *number)
{
	size_t n;

	pthread_mutex_lock(&stub->lock);
	n = *number;
	pthread_mutex_unlock(&stub->lock);
	return n;
}

size_t api_stub_count(struct api_stub *stub)
{
	return read_locked(stub, &stub->n_requests);
}

size_t api_stub_connections(struct api_stub *stub)
{
	return read_locked(stub, &stub->n_connections);
}

const char *api_stub_last(struct api_stub *stub)
{
	pthread_mutex_lock(&stub->lock);
	memcpy(stub->copy, stub->last, sizeof(stub->copy));
	pthread_mutex_unlock(&stub->lock);
	return stub->copy;
}
