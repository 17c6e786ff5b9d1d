/* SPDX-License-Identifier: Apache-2.0 */
/* Converts libcurl's result codes to error codes and sentences that name the server and the
 * reason. */
#include "reflector/wire/http_internal.h"

#include <errno.h>

#include "common/err.h"

static bool failure_is_tls(CURLcode code)
{
	switch (code) {
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CIPHER:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CRL_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
	case CURLE_SSL_ENGINE_INITFAILED:
	case CURLE_SSL_CLIENTCERT:
		return true;
	default:
		return false;
	}
}

/* Returns: the error code for CODE; *RET_WORDS says what failed. */
static int failure_code(CURLcode code, bool answered, const char **ret_words)
{
	*ret_words = answered ? "answer cut off" : "no answer";
	if (failure_is_tls(code)) {
		*ret_words = "TLS";
		return ERR_TLS;
	}
	switch (code) {
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_OPERATION_TIMEDOUT:
	case CURLE_ABORTED_BY_CALLBACK: /* setup_check_tunnel() ended it */
		*ret_words = "connecting took too long";
		return ERR_TIMEOUT;
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_CONTENT_ENCODING:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return ERR_PROTOCOL;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		*ret_words = "name not found";
		return ERR_NETWORK;
	case CURLE_COULDNT_CONNECT:
		*ret_words = "no connection";
		return ERR_NETWORK;
	default:
		return ERR_NETWORK;
	}
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
		return status || !failure_is_tls(code) || !http->proxy.tls ? NULL
									   : "TLS to the proxy";
	}
}

int http_call_failure(const struct http_call *call, CURLcode code)
{
	const char *reason = call->reason[0] ? call->reason : curl_easy_strerror(code);
	const char *proxy = failure_of_proxy(call, code), *words;
	long os_error = 0;

	/* Over plain http a proxy's 407 looks like the server's answer; an API server never sends
	 * it. */
	if (!code && call->head.status == 407)
		return err_say(
			ERR_NETWORK, "%s: " HTTP_PROXY_WANTS_USER " (HTTP 407)", call->http->name);
	if (!code)
		return 0;
	/* For a refused connection the system's text says more than libcurl's. It is 0 when
	 * unknown. */
	(void)curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &os_error);
	if (code == CURLE_COULDNT_CONNECT && os_error)
		reason = err_name(-(int)os_error);

	int r = failure_code(code, call->limit.answered, &words);

	return err_say(proxy ? ERR_NETWORK : r, "%s: %s: %s", call->http->name,
		proxy ? proxy : words, reason);
}
