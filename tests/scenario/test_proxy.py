# SPDX-License-Identifier: Apache-2.0
"""Proxies between the reflector and the API server: their choice, their view of the traffic, and
their errors.

Only the proxies can resolve the cluster's name: a direct connection fails."""

import ssl

import pytest

from harness.reverse_proxy import ReverseProxy
from harness.proxy import ConnectProxy, SocksProxy
from harness.store import whole

NAME, TOKEN, USER = "api.cluster.example", "marker-bearer", ("us/er", "marker:pass")
ESCAPED = ("us%2Fer", "marker%3Apass")
QUICK = {"backoff": {"min": "50ms", "max": "200ms"}}


@pytest.fixture
def far(workspace, authority):
    """far(...): (simulator, store, proxy); the kubeconfig's server is https://NAME:6443."""

    def make(kind=ConnectProxy, host=NAME, credentials=None, cluster=lambda proxy: {}, **proxy):
        simulator = workspace.simulator(tls=authority("one").issue("server", f"DNS:{NAME}", "IP:127.0.0.1"),
                                        token=TOKEN)
        proxy = workspace.add(kind({NAME: simulator.port, "127.0.0.1": simulator.port}, credentials, **proxy))
        store = workspace.store()
        port = 6443 if host == NAME else simulator.port
        store.connect(f"https://{host}:{port}", token=TOKEN, ca=authority("one").ca, cluster=cluster(proxy))
        return simulator, store.configure(whole("pods"), **QUICK), proxy

    return make


def escaped_url(proxy, scheme=None):
    return proxy.url(scheme).replace(":".join(USER), ":".join(ESCAPED))


# ---- choice of the proxy ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind, by", [
    (ConnectProxy, "proxy-url"), (SocksProxy, "proxy-url"), (ConnectProxy, "HTTPS_PROXY"), (SocksProxy, "https_proxy"),
])
def test_lists_and_watches_go_through_the_proxy_that_knows_the_name(far, kind, by):
    simulator, store, proxy = far(
        kind, credentials=USER,
        cluster=lambda proxy: {"proxy-url": escaped_url(proxy)} if by == "proxy-url" else {})
    simulator.create("pods", 20)
    store.reflector(env={} if by == "proxy-url" else {by: escaped_url(proxy)})
    simulator.wait_watching("pods")
    assert set(proxy.asked) == {(NAME, 6443)}
    said = "\n".join(proxy.heads)
    assert TOKEN not in said and "\nAuthorization" not in said, "credentials for the server must not reach the proxy"
    assert simulator.counters("pods")["lists"] == 1


def test_a_proxy_with_tls_is_verified(far, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority("one").issue("proxy", "IP:127.0.0.1"))
    simulator, store, _ = far(context=context, cluster=lambda p: {"proxy-url": p.url("https")})
    store.reflector()
    simulator.wait_watching("pods")


def test_a_proxy_with_a_certificate_of_an_unknown_ca_is_refused(far, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority("two").issue("proxy", "IP:127.0.0.1"))
    _, store, proxy = far(context=context, cluster=lambda p: {"proxy-url": p.url("https")})
    store.reflector().wait_log("unreachable .*TLS: ")
    assert not proxy.heads


def test_plain_http_uses_the_proxy_of_http_proxy(workspace, simulator):
    refuse = []
    door = workspace.add(ReverseProxy(simulator, refuse=lambda _: refuse[0] if refuse else None))
    store = workspace.store()
    store.connect(f"http://{NAME}")
    refuse.append((407, b"marker-body"))
    reflector = store.configure(whole("pods"), **QUICK).reflector(env={"HTTP_PROXY": door.url, "HTTPS_PROXY": "http://no"})
    reflector.wait_log("through proxy http://127.0.0.1:.*wants a user and a password, or different ones")
    refuse.clear()
    simulator.wait_watching("pods")
    assert {request["path"].startswith(f"http://{NAME}/") for request in door.requests} == {True}


# ---- exceptions ------------------------------------------------------------------------------------


def test_no_proxy_excludes_hosts_from_a_proxy_of_the_environment(far):
    _, store, proxy = far()
    reflector = store.reflector(env={"HTTPS_PROXY": proxy.url(), "NO_PROXY": "other, .cluster.example:6443"})
    reflector.wait_log(f"unreachable .*https://{NAME}:6443: name not found")
    assert not proxy.asked


# ---- proxies that refuse ---------------------------------------------------------------------------

WANTS_USER = "the proxy wants a user and a password, or different ones"


@pytest.mark.parametrize("kind, refusal, sentence", [
    (ConnectProxy, 407, WANTS_USER),
    (ConnectProxy, 403, "no answer: CONNECT tunnel failed, response 403"),
    (ConnectProxy, "close", "no answer: Proxy CONNECT aborted"),
    (SocksProxy, 2, "the proxy could not connect to the server: "),
    (SocksProxy, "close", "the proxy could not connect to the server: "),
])
def test_a_proxy_that_refuses_is_named_in_the_error(far, kind, refusal, sentence):
    _, store, proxy = far(kind, cluster=lambda p: {"proxy-url": p.url()})
    proxy.refusal = refusal
    store.reflector().wait_log(f"unreachable .*through proxy {proxy.url()}: {sentence}")


@pytest.mark.parametrize("kind", [ConnectProxy, SocksProxy])
def test_a_wrong_proxy_password_is_reported_and_not_printed(far, kind):
    _, store, proxy = far(kind, credentials=USER, cluster=lambda p: {
        "proxy-url": escaped_url(p).replace("pass@", "marker-wrong@")})
    reflector = store.reflector("-v", "-v")
    reflector.wait_log(f"unreachable .*{WANTS_USER}")
    assert proxy.heads or kind is SocksProxy
    assert "marker" not in reflector.log


def test_an_unreachable_proxy_is_named_in_the_error(far):
    _, store, _ = far(cluster=lambda _: {"proxy-url": "http://127.0.0.1:1"})
    store.reflector().wait_log("unreachable .*through proxy http://127.0.0.1:1: no connection: ")


def test_an_invalid_proxy_url_ends_the_start_without_printing_its_password(far):
    _, store, _ = far()
    reflector = store.reflector(env={"HTTPS_PROXY": "ftp://me:marker-secret@proxy"})
    assert reflector.wait() == 78, "the status for a bad configuration: a restart would not help"
    assert "HTTPS_PROXY: not the URL of a proxy" in reflector.log and "marker" not in reflector.log
