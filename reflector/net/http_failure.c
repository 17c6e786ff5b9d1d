/* SPDX-License-Identifier: Apache-2.0 */
/* Converts libcurl's result codes to error codes and sentences that name the server and the
 * reason. */
#include "reflector/net/http_internal.h"

#include <errno.h>

#include "common/err.h"

/* A code that is not in the table is ERR_NETWORK, "no answer" or "answer cut off". */
static const struct failure {
	CURLcode code;
	int error;
	const char *words; /* NULL: as for a code that is not in the table */
} failures[] = {
	{CURLE_OUT_OF_MEMORY, -ENOMEM, NULL},
	{CURLE_OPERATION_TIMEDOUT, ERR_TIMEOUT, "connecting took too long"},
	{CURLE_ABORTED_BY_CALLBACK, ERR_TIMEOUT,
		"connecting took too long"}, /* setup_check_tunnel() */
	{CURLE_WEIRD_SERVER_REPLY, ERR_PROTOCOL, NULL},
	{CURLE_BAD_CONTENT_ENCODING, ERR_PROTOCOL, "the answer's Content-Encoding can't be read"},
	{CURLE_UNSUPPORTED_PROTOCOL, ERR_PROTOCOL, NULL},
	{CURLE_COULDNT_RESOLVE_HOST, ERR_NETWORK, "name not found"},
	{CURLE_COULDNT_RESOLVE_PROXY, ERR_NETWORK, "name not found"},
	{CURLE_COULDNT_CONNECT, ERR_NETWORK, "no connection"},
	{CURLE_SSL_CONNECT_ERROR, ERR_TLS, "TLS"},
	{CURLE_SSL_CERTPROBLEM, ERR_TLS, "TLS"},
	{CURLE_SSL_CIPHER, ERR_TLS, "TLS"},
	{CURLE_PEER_FAILED_VERIFICATION, ERR_TLS, "TLS"},
	{CURLE_SSL_CACERT_BADFILE, ERR_TLS, "TLS"},
	{CURLE_SSL_CRL_BADFILE, ERR_TLS, "TLS"},
	{CURLE_SSL_ISSUER_ERROR, ERR_TLS, "TLS"},
	{CURLE_SSL_INVALIDCERTSTATUS, ERR_TLS, "TLS"},
	{CURLE_SSL_ENGINE_INITFAILED, ERR_TLS, "TLS"},
	{CURLE_SSL_CLIENTCERT, ERR_TLS, "TLS"},
};

static struct failure failure_find(CURLcode code, bool answered)
{
	struct failure failure = {code, ERR_NETWORK, NULL};

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		if (failures[i].code == code)
			failure = failures[i];
	if (!failure.words)
		failure.words = answered ? "answer cut off" : "no answer";
	return failure;
}

/* Returns: words for a failure of the proxy; NULL: there is no proxy, or it is not at fault. */
static const char *failure_of_proxy(const struct http_call *call, CURLcode code)
{
	const struct http *http = call->http;
	long status = 0, proxy_error = 0;

	if (!http->proxy.url || call->limit.answered)
		return NULL;
	/* Both stay 0 when the proxy has not answered. */
	(void)curl_easy_getinfo(call->easy, CURLINFO_HTTP_CONNECTCODE, &status);
	(void)curl_easy_getinfo(call->easy, CURLINFO_PROXY_ERROR, &proxy_error);
	if (status == 407 || proxy_error == CURLPX_USER_REJECTED || proxy_error == CURLPX_NO_AUTH)
		return HTTP_PROXY_WANTS_USER;
	if (status >= 300)
		return "the proxy does not let us through";
	if (proxy_error == CURLPX_CLOSED)
		return "the proxy closed the connection";
	switch (code) {
	case CURLE_COULDNT_RESOLVE_PROXY:
		return "the proxy's name was not found";
	case CURLE_COULDNT_CONNECT:
		return "no connection to the proxy";
	case CURLE_PROXY:
		return "the proxy could not connect to the server";
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_GOT_NOTHING:
		return status || !call->opened_connection ? NULL
							  : "the proxy closed the connection";
	default:
		return status || failure_find(code, false).error != ERR_TLS || !http->proxy.tls
			       ? NULL
			       : "TLS to the proxy";
	}
}

/* Whether REASON, of a TLS handshake, is that the connection has ended: libcurl and OpenSSL say
 * it in several ways. */
static bool failure_is_closed(const char *reason)
{
	static const char *const texts[] = {
		"SSL_ERROR_SYSCALL", "unexpected eof", "Recv failure", "Send failure"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (strstr(reason, texts[i]))
			return true;
	return false;
}

int http_call_failure(const struct http_call *call, CURLcode code)
{
	const char *reason = call->reason[0] ? call->reason : curl_easy_strerror(code);
	const char *proxy = failure_of_proxy(call, code);
	struct failure failure = failure_find(code, call->limit.answered);
	long os_error = 0;

	/* Over plain http a proxy's 407 looks like the server's answer; an API server never sends
	 * it. */
	if (!code && call->head.status == 407)
		return err_say(
			ERR_NETWORK, "%s: " HTTP_PROXY_WANTS_USER " (HTTP 407)", call->http->name);
	if (!code)
		return 0;
	/* libcurl would say that a stream was not closed cleanly: it is we who closed it. */
	if (!proxy && call->port && call->port == call->http->condemned_port)
		return err_say(ERR_NETWORK,
			"%s: the server does not answer: nothing came on this connection for long, "
			"and it was closed",
			call->http->name);
	/* For a refused connection the system's text says more than libcurl's. It is 0 when
	 * unknown. */
	(void)curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &os_error);
	if (code == CURLE_COULDNT_CONNECT && os_error)
		reason = err_name(-(int)os_error);
	const char *hint = "";
	if (!proxy && code == CURLE_PEER_FAILED_VERIFICATION)
		hint = " (the certificate-authority of the kubeconfig must have signed the "
		       "server's certificate, for this name and "
		       "time)";
	else if (!proxy && strstr(reason, "wrong version number"))
		hint = " (no TLS is spoken there: is 'server' in the kubeconfig an http:// "
		       "address?)";
	else if (!proxy && !call->http->answered && code == CURLE_SSL_CONNECT_ERROR &&
		 failure_is_closed(reason))
		hint = " (the connection was closed in the TLS handshake; perhaps no TLS is spoken "
		       "there: is 'server' in the "
		       "kubeconfig an http:// address?)";
	return err_say(proxy ? ERR_NETWORK : failure.error, "%s: %s: %s%s", call->http->name,
		proxy ? proxy : failure.words, reason, hint);
}
