/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <strings.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "tests/simulator/memory.h"

#define SERVER_MAGIC 0x68747053u
#define STACK_SIZE   ((size_t)512 << 10)
#define MEMORY_LIMIT ((size_t)128 << 10)
#define BLOCK_SIZE   ((size_t)64 << 10)
#define BACKLOG      1024

struct http_server {
	uint32_t magic;
	struct http_config config;
	uint16_t port;
	int placeholder;      /* bound, never listening: reserves the port while paused */
	pthread_mutex_t lock; /* guards the list of connections */
	struct http_connection *connections;
	pthread_mutex_t running;   /* taken while starting and stopping */
	struct MHD_Daemon *daemon; /* NULL: paused */
};

/* A client's connection, as long as it is open. */
struct http_connection {
	struct http_connection *next;
	int fd;
	bool cut; /* further requests of it are not answered */
};

/* One request while it is read. */
struct http_exchange {
	char *target;
	struct buf body;
	bool begun; /* libmicrohttpd has made the first call, with the headers only */
};

/* ---- requests and answers ----------------------------------------------- */

struct http_lookup {
	const char *name;
	const char *found;
};

static enum MHD_Result http_look_up(
	void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct http_lookup *lookup = arg;

	(void)kind;
	if (strcmp(key, lookup->name))
		return MHD_YES;
	lookup->found = value ? value : "";
	return MHD_NO;
}

const char *http_query(const struct http_request *request, const char *name)
{
	struct http_lookup lookup = {.name = name};

	MHD_get_connection_values(
		request->connection, MHD_GET_ARGUMENT_KIND, http_look_up, &lookup);
	return lookup.found;
}

const char *http_header(const struct http_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

bool http_alive(int fd)
{
	/* Reading would not do: TLS leaves its closing message unread in a closed connection. */
	struct pollfd poll_fd = {.fd = fd, .events = POLLRDHUP};

	return poll(&poll_fd, 1, 0) <= 0;
}

void http_answer_header(struct http_answer *answer, const char *name, const char *value)
{
	size_t i = 0;

	while (i < answer->n_headers && strcasecmp(answer->headers[i][0], name))
		i++;
	REQUIRE(i < HTTP_HEADERS_MAX);
	if (i == answer->n_headers)
		answer->headers[answer->n_headers++][0] = memory_text(bytes_str(name));
	else
		free(answer->headers[i][1]);
	answer->headers[i][1] = memory_text(bytes_str(value));
}

struct http_text_stream {
	struct buf text;
	size_t pos;
};

static ssize_t http_text_read(void *arg, char *out, size_t room)
{
	struct http_text_stream *stream = arg;
	size_t left = stream->text.size - stream->pos, n = left < room ? left : room;

	if (n)
		memcpy(out, stream->text.data + stream->pos, n);
	stream->pos += n;
	return (ssize_t)n;
}

static void http_text_free(void *arg)
{
	struct http_text_stream *stream = arg;

	buf_release(&stream->text);
	free(stream);
}

void http_answer_to_stream(struct http_answer *answer)
{
	if (answer->stream.read)
		return;

	struct http_text_stream *stream = memory_take(sizeof(*stream));

	stream->text = answer->body;
	answer->body = BUF_INIT;
	answer->stream =
		(struct http_stream){.read = http_text_read, .free = http_text_free, .arg = stream};
}

static void http_answer_release(struct http_answer *answer)
{
	for (size_t i = 0; i < answer->n_headers; i++) {
		free(answer->headers[i][0]);
		free(answer->headers[i][1]);
	}
	buf_release(&answer->body);
	if (answer->stream.read)
		answer->stream.free(answer->stream.arg);
}

/* ---- libmicrohttpd ----------------------------------------------------------------------------
 */

static ssize_t http_read_stream(void *arg, uint64_t pos, char *out, size_t room)
{
	struct http_stream *stream = arg;
	ssize_t n = stream->read(stream->arg, out, room);

	(void)pos; /* each stream knows where it is */
	if (n < 0)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	return n ? n : MHD_CONTENT_READER_END_OF_STREAM;
}

static void http_free_stream(void *arg)
{
	struct http_stream *stream = arg;

	stream->free(stream->arg);
	free(stream);
}

/* Makes a response and takes the stream of ANSWER. */
static struct MHD_Response *http_response_of(struct http_answer *answer)
{
	uint64_t length = answer->length < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)answer->length;

	if (answer->length >= 0)
		http_answer_to_stream(answer);
	if (!answer->stream.read)
		return MHD_create_response_from_buffer(
			answer->body.size, answer->body.data, MHD_RESPMEM_MUST_COPY);

	struct http_stream *stream = memory_take(sizeof(*stream));

	*stream = answer->stream;
	answer->stream = (struct http_stream){0};
	return MHD_create_response_from_callback(
		length, BLOCK_SIZE, http_read_stream, stream, http_free_stream);
}

static enum MHD_Result http_send_answer(
	struct MHD_Connection *connection, struct http_answer *answer)
{
	struct MHD_Response *response = http_response_of(answer);

	REQUIRE(response != NULL);
	for (size_t i = 0; i < answer->n_headers; i++)
		(void)MHD_add_response_header(/* a header it refuses is left out */
			response, answer->headers[i][0], answer->headers[i][1]);

	enum MHD_Result result = MHD_queue_response(connection, answer->status, response);

	MHD_destroy_response(response);
	return result;
}

static void http_hang_up(int fd, bool reset)
{
	static const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};

	/* Both calls fail only if the client has closed the connection already. connect() to
	 * AF_UNSPEC makes Linux send an RST; close() would not, because libmicrohttpd sends a FIN
	 * before. */
	if (reset)
		(void)connect(fd, &nowhere, sizeof(nowhere));
	else
		(void)shutdown(fd, SHUT_RDWR);
}

/* Returns true if the connection has been cut. Waits while connections are being cut: a client may
 * send its request again on another connection, cut a moment later. */
static bool http_is_cut(struct http_server *server, struct MHD_Connection *connection)
{
	const struct http_connection *own =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
			->socket_context;
	bool cut;

	pthread_mutex_lock(&server->lock);
	cut = own->cut;
	pthread_mutex_unlock(&server->lock);
	return cut;
}

static enum MHD_Result http_respond(struct http_server *server, struct MHD_Connection *connection,
	struct http_exchange *exchange, const char *path, const char *method)
{
	if (http_is_cut(server, connection))
		return MHD_NO; /* closes the connection */

	struct http_answer answer = {.status = 200, .length = -1};
	struct http_request request = {.method = method,
		.path = path,
		.target = exchange->target,
		.body = buf_bytes(&exchange->body),
		.fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
			      ->connect_fd,
		.connection = connection};
	enum MHD_Result result = MHD_NO; /* closes the connection */

	server->config.handler(server->config.arg, &request, &answer);
	if (answer.hang_up)
		http_hang_up(request.fd, answer.reset);
	else
		result = http_send_answer(connection, &answer);
	http_answer_release(&answer);
	return result;
}

static enum MHD_Result http_accept_request(void *arg, struct MHD_Connection *connection,
	const char *path, const char *method, const char *version, const char *upload,
	size_t *upload_size, void **request)
{
	struct http_exchange *exchange = *request;

	(void)version;
	if (*upload_size) {
		buf_put(&exchange->body, upload, *upload_size);
		*upload_size = 0;
		return MHD_YES;
	}
	/* The first call comes before the body; the answer is due with the last. */
	if (!exchange->begun) {
		exchange->begun = true;
		return MHD_YES;
	}
	return http_respond(arg, connection, exchange, path, method);
}

static void *http_begin_request(void *arg, const char *target, struct MHD_Connection *connection)
{
	struct http_exchange *exchange = memory_take(sizeof(*exchange));

	(void)arg;
	(void)connection;
	exchange->target = memory_text(bytes_str(target));
	return exchange;
}

static void http_end_request(void *arg, struct MHD_Connection *connection, void **request,
	enum MHD_RequestTerminationCode code)
{
	struct http_exchange *exchange = *request;

	(void)arg;
	(void)connection;
	(void)code;
	if (!exchange)
		return;
	free(exchange->target);
	buf_release(&exchange->body);
	free(exchange);
	*request = NULL;
}

static void http_note_connection(void *arg, struct MHD_Connection *mhd, void **context,
	enum MHD_ConnectionNotificationCode code)
{
	struct http_server *server = arg;
	struct http_connection *own = *context, **link = &server->connections;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*context = own = memory_take(sizeof(*own));
		own->fd =
			MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
		pthread_mutex_lock(&server->lock);
		own->next = server->connections;
		server->connections = own;
		pthread_mutex_unlock(&server->lock);
		return;
	}
	pthread_mutex_lock(&server->lock);
	while (*link != own)
		link = &(*link)->next;
	*link = own->next;
	pthread_mutex_unlock(&server->lock);
	free(own);
}

static void http_no_log(void *arg, const char *format, va_list arguments)
{
	(void)arg;
	(void)format;
	(void)arguments; /* libmicrohttpd logs closed connections, a purpose of the tests */
}

/* ---- server ------------------------------------------------------------- */

static int http_bind_socket(uint16_t port)
{
	AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return err_set(-errno, "binding 127.0.0.1:%u", port);
	return TAKE_FD(fd);
}

static uint16_t http_port_of(int fd)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	REQUIRE(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
	return ntohs(address.sin_port);
}

static int http_server_start(struct http_server *server)
{
	int fd = http_bind_socket(server->port);
	unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
			 MHD_USE_POLL | MHD_USE_ITC;

	if (fd < 0)
		return fd;
	if (listen(fd, BACKLOG) < 0) {
		int r = err_set(-errno, "listening on port %u", server->port);

		close(fd);
		return r;
	}
	if (server->config.certificate)
		flags |= MHD_USE_TLS;
	server->daemon = MHD_start_daemon(flags, 0, NULL, NULL, http_accept_request, server,
		MHD_OPTION_EXTERNAL_LOGGER, http_no_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_THREAD_STACK_SIZE, STACK_SIZE, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		MEMORY_LIMIT, MHD_OPTION_CONNECTION_LIMIT, 20000u, MHD_OPTION_URI_LOG_CALLBACK,
		http_begin_request, NULL, MHD_OPTION_NOTIFY_COMPLETED, http_end_request, NULL,
		MHD_OPTION_NOTIFY_CONNECTION, http_note_connection, server,
		server->config.certificate ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END,
		server->config.certificate, MHD_OPTION_HTTPS_MEM_KEY, server->config.key,
		MHD_OPTION_END);
	if (server->daemon)
		return 0;
	close(fd);
	return err_say(-EIO, "starting the HTTP server: bad certificate or key, or no threads");
}

int http_server_open(const struct http_config *config, struct http_server **ret_server)
{
	CLEANUP(http_server_close) struct http_server *server = memory_take(sizeof(*server));

	server->magic = SERVER_MAGIC;
	server->config = *config;
	REQUIRE(pthread_mutex_init(&server->lock, NULL) == 0);
	REQUIRE(pthread_mutex_init(&server->running, NULL) == 0);
	server->placeholder = http_bind_socket(config->port);
	if (server->placeholder < 0)
		return server->placeholder;
	server->port = http_port_of(server->placeholder);

	int r = http_server_start(server);

	if (r < 0)
		return r;
	*ret_server = TAKE(server);
	return 0;
}

void http_server_close(struct http_server **server)
{
	if (!*server)
		return;
	CHECK_OBJ(*server, SERVER_MAGIC);
	http_server_pause(*server);
	if ((*server)->placeholder >= 0)
		close((*server)->placeholder);
	(*server)->magic = 0;
	free(*server);
	*server = NULL;
}

uint16_t http_server_port(const struct http_server *server)
{
	CHECK_OBJ(server, SERVER_MAGIC);
	return server->port;
}

void http_server_drop(struct http_server *server)
{
	CHECK_OBJ(server, SERVER_MAGIC);
	pthread_mutex_lock(&server->lock);
	for (struct http_connection *c = server->connections; c; c = c->next) {
		c->cut = true;
		http_hang_up(c->fd, false);
	}
	pthread_mutex_unlock(&server->lock);
	if (server->config.dropped)
		server->config.dropped(server->config.arg);
}

void http_server_pause(struct http_server *server)
{
	CHECK_OBJ(server, SERVER_MAGIC);
	pthread_mutex_lock(&server->running);
	if (server->daemon) {
		/* Not accepting any more before connections are cut, or one slips in between and
		 * its stream waits while it is being joined. */
		int fd = MHD_quiesce_daemon(server->daemon);

		if (fd >= 0)
			close(fd);
		http_server_drop(server);
		MHD_stop_daemon(server->daemon);
		server->daemon = NULL;
	}
	pthread_mutex_unlock(&server->running);
}

int http_server_resume(struct http_server *server)
{
	int r = 0;

	CHECK_OBJ(server, SERVER_MAGIC);
	pthread_mutex_lock(&server->running);
	if (!server->daemon)
		r = http_server_start(server);
	pthread_mutex_unlock(&server->running);
	return r;
}
