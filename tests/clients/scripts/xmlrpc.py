"""One call by xmlrpc-c's client library, which runs libcurl by curl_multi. The answer is a string in XML; a failure is
told in words. Arguments: URL, seconds, user:password or nothing, body."""
import ctypes as c
import re
import sys

TEXTS = {"timed out": 28, "Timeout was reached": 28, "Empty reply": 52, "bytes remaining": 18, "bytes missing": 18, "outstanding read data": 18, "sendonce": 56}


class Env(c.Structure):
    _fields_ = [("fault", c.c_int), ("code", c.c_int), ("text", c.c_char_p)]


class Curl(c.Structure):
    """struct xmlrpc_curl_xportparms, up to `timeout`."""
    _fields_ = [("interface", c.c_char_p), ("no_peer", c.c_int), ("no_host", c.c_int), ("agent", c.c_char_p)]
    _fields_ += [(name, c.c_char_p) for name in ("cert", "cert_type", "cert_password", "key", "key_type", "key_password", "engine")]
    _fields_ += [("engine_default", c.c_int), ("version", c.c_int)]
    _fields_ += [(name, c.c_char_p) for name in ("ca_info", "ca_path", "random", "egd", "ciphers")] + [("timeout", c.c_uint)]


class Client(c.Structure):
    """struct xmlrpc_clientparms, up to `transportparm_size`."""
    _fields_ = [("transport", c.c_char_p), ("parms", c.c_void_p), ("size", c.c_size_t)]


def end(text, status, code):
    print("%s\nsaw status=%d code=%d" % (text, status, code))
    sys.exit(1 if code else 22 if status >= 400 else 0)


url, seconds, user, body = sys.argv[1:5]
xmlrpc, lib = c.CDLL("libxmlrpc.so.3", c.RTLD_GLOBAL), c.CDLL("libxmlrpc_client.so.3")
env, client, answer, text = Env(), c.c_void_p(), c.c_void_p(), c.c_char_p()
curl = Curl(timeout=int(seconds) * 1000)
parms = Client(b"curl", c.addressof(curl), Curl.timeout.offset + Curl.timeout.size)
lib.xmlrpc_client_setup_global_const(c.byref(env))
lib.xmlrpc_client_create(c.byref(env), 0, b"orders", b"1", c.byref(parms), c.sizeof(parms), c.byref(client))
assert not env.fault, env.text
lib.xmlrpc_client_call2f(c.byref(env), client, url.encode(), b"orders.create", c.byref(answer), b"(s)", body.encode())
if env.fault:
    problem = env.text.decode()
    print(problem, file=sys.stderr)
    status = re.search(r"HTTP response code is (\d+)", problem)
    end("", int(status[1]) if status else 0, 0 if status else next((v for k, v in TEXTS.items() if k in problem), 999))
xmlrpc.xmlrpc_read_string(c.byref(env), answer, c.byref(text))
assert not env.fault, env.text
lib.xmlrpc_client_destroy(client)
end('{"id": "%s"}' % text.value.decode(), 201, 0)
