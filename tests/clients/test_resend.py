"""libcurl's own resend: a reused connection dies after the server has read, and one call writes twice."""
from urllib.parse import quote

import pytest

from harness import PROVIDER
from server import ConnectProxy


class Way:
    """A way to make libcurl write on a connection that has been used before."""

    def __init__(self, warm, *args):
        self.warm, self.args = warm, args

    def curl(self, world, server, proxy, keys, **env):
        args = [a.format(proxy=proxy.port, base=server.base) for a in self.args]
        hot = "die=1" + ("&keys=honour" if keys else "")
        if args and args[-1].endswith("&to="):
            args[-1] += quote("/orders/new?" + hot, safe="")
        elif self.warm:
            args = [*args, "-d", "n=1", server.base + "/orders/warm", "--next", "-sS", "-w", "\n%{http_code}", *args, "-d", "n=2",
                    server.base + "/orders/new?" + hot]
        else:
            args = [*args, "-d", "n=2", server.base + "/orders/new?" + hot + "&auth=digest"]
        return world.curl(*args, **env)


WAYS = {
    "keep-alive": Way(True),
    "after-401": Way(False, "--digest", "-u", "u:p"),
    "after-307": Way(False, "-L", "-d", "n=2", "{base}/orders/hop?redirect=307&to="),
    "proxy": Way(True, "-p", "-x", "http://127.0.0.1:{proxy}"),
}


@pytest.fixture
def proxy():
    with ConnectProxy() as p:
        yield p


def hot(server):
    """Orders and wire sends of the write whose connection died; a 401 round is no send of it."""
    sends = [r for r in server.writes("/orders/new") if "auth" not in r.target or r.header("Authorization")]
    with server.lock:
        return len([o for o in server.orders if o["path"] == "/orders/new"]), sends


@pytest.mark.parametrize("way", WAYS)
def test_native_libcurl_writes_twice(world, server, proxy, way):
    answer = WAYS[way].curl(world, server, proxy, False, preload=False)
    orders, sends = hot(server)
    assert (answer.rc, orders, len(sends)) == (0, 2, 2)


@pytest.mark.san
@pytest.mark.parametrize("way", WAYS)
def test_without_keys_it_is_stopped_and_said(world, server, proxy, way):
    world.policy(match="POST http://127.0.0.1:*/orders/**")
    answer = WAYS[way].curl(world, server, proxy, False)
    orders, sends = hot(server)
    assert (orders, len(sends)) == (1, 1)
    assert answer.rc == 56, answer
    assert world.stats()["wire_resends_blocked"] == 1
    assert [r["state"] for r in world.records() if r["state"] != "done"] == ["unknown"]


@pytest.mark.parametrize("way", WAYS)
def test_with_keys_it_is_let_through(world, server, proxy, way):
    world.policy(match="POST http://127.0.0.1:*/orders/**", provider=PROVIDER)
    answer = WAYS[way].curl(world, server, proxy, True)
    orders, sends = hot(server)
    assert (answer.rc, answer.status, orders, len(sends)) == (0, 201, 1, 2)
    assert len({r.key for r in sends}) == 1
    assert world.stats()["wire_resends_blocked"] == 0
    assert set(world.states()) == {"done"}


@pytest.mark.parametrize("gap", [500, 2500])
def test_an_idle_connection_that_the_server_closed(world, server, gap):
    answers = world.post("--vary", "--tries", "3", "--gap-ms", str(gap), server.base + "/orders?idle=0.2")
    assert [(a.rc, a.status) for a in answers] == [(0, 201)] * 3
    assert server.executions == 3 and len(server.writes()) == 3
    assert world.states() == ["done"] * 3
    assert world.stats()["wire_resends_blocked"] == 0
