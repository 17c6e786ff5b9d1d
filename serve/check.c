/* SPDX-License-Identifier: Apache-2.0 */
/* kinf-serve --check: the files and addresses that the configuration names. */
#include "serve/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "serve/http/listener.h"
#include "serve/http/tls.h"

/* Checks that the file PATH of KEY can be read; NULL: there is none. */
static int check_file(const struct config *config, const char *key, const char *path)
{
	AUTO_FD int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	char byte;
	int error = 0;

	if (!path)
		return 0;
	if (fd < 0 || read(fd, &byte, 1) < 0)
		error = errno;
	if (!error || error == EAGAIN)
		return 0;
	if (error == ENOENT || error == ENOTDIR)
		return config_blame(config, key, err_say(ERR_CONFIG, "'%s' does not exist", path));
	if (error == EACCES)
		return config_blame(config, key,
			err_say(ERR_CONFIG, "user %u may not read '%s'", (unsigned)geteuid(),
				path));
	return config_blame(config, key, err_say(ERR_CONFIG, "'%s': %s", path, strerror(error)));
}

static int check_files(const struct config *config)
{
	const struct config_serve *s = &config->serve;
	const struct {
		const char *key, *path;
	} files[] = {
		{"serve.tls.cert", s->certificate},
		{"serve.tls.key", s->key},
		{"serve.tls.clientCA", s->client_ca},
		{"serve.review.tokenFile", s->review_token_file},
		{"serve.review.cert", s->review_certificate},
		{"serve.review.key", s->review_key},
	};
	const struct tls_files listening = {s->certificate, s->key, s->client_ca, NULL};
	const struct tls_files asking = {s->review_certificate, s->review_key, NULL, NULL};
	enum tls_part part;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
		r = check_file(config, files[i].key, files[i].path);
	if (r < 0)
		return r;
	r = tls_check(&listening, &part);
	if (r < 0)
		return config_blame(config, files[part].key, r);
	r = tls_check(&asking, &part);
	return r < 0 ? config_blame(config,
			       part == TLS_PART_KEY ? "serve.review.key" : "serve.review.cert", r)
		     : 0;
}

/* Checks that kinf-serve could listen on WORDS. An address that another process uses may be free
 * when it starts. */
static int check_addresses(const struct config *config, const char *key, const char *words)
{
	int r = words ? listeners_try(words) : 0;

	if (r != -EADDRINUSE)
		return r < 0 ? config_blame(config, key, r) : 0;
	(void)fprintf(stderr, "note: %s: %s: a process that runs now uses the address\n", key,
		err_text(r));
	err_ignore(r, "it is noted");
	return 0;
}

int serve_check(const struct config *config)
{
	int r = check_files(config);

	if (r == 0)
		r = check_addresses(config, "serve.listen", config->serve.listen);
	return r == 0 ? check_addresses(config, "serve.metrics", config->serve.metrics) : r;
}
