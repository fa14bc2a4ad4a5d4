"""One write by pycurl (GnuTLS) and one by ctypes (OpenSSL), in the order given. Arguments: URL, CA, then `pycurl` and
`ctypes` in any order and number. A line for each write."""
import ctypes
import glob
import io
import sys

URL, CA = sys.argv[1:3]


def by_pycurl(n):
    import pycurl
    c, body = pycurl.Curl(), io.BytesIO()
    c.setopt(c.URL, "%s?pycurl%d" % (URL, n))
    c.setopt(c.CAINFO, CA)
    c.setopt(c.POSTFIELDS, "n=%d" % n)
    c.setopt(c.WRITEDATA, body)
    c.perform()
    status = c.getinfo(c.RESPONSE_CODE)
    c.close()
    return status, body.getvalue().decode(), pycurl.version_info()[5]


def by_ctypes(n):
    curl = ctypes.CDLL(glob.glob("/usr/lib/*/libcurl.so.4")[0])
    write_type = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
    body = []
    write = write_type(lambda data, size, count, ctx: body.append(ctypes.string_at(data, size * count)) or size * count)
    curl.curl_easy_init.restype = ctypes.c_void_p
    curl.curl_version.restype = ctypes.c_char_p
    handle = ctypes.c_void_p(curl.curl_easy_init())
    keep = [("%s?ctypes%d" % (URL, n)).encode(), CA.encode(), b"n=%d" % n]
    for option, value in zip((10002, 10065, 10015), keep):
        curl.curl_easy_setopt(handle, option, ctypes.c_char_p(value))
    curl.curl_easy_setopt(handle, 20011, write)
    status, code = ctypes.c_long(), curl.curl_easy_perform(handle)
    curl.curl_easy_getinfo(handle, 0x200002, ctypes.byref(status))
    curl.curl_easy_cleanup(handle)
    assert code == 0, code
    return status.value, b"".join(body).decode(), curl.curl_version().decode().split()[1]


for count, who in enumerate(sys.argv[3:]):
    print(who, *{"pycurl": by_pycurl, "ctypes": by_ctypes}[who](count), flush=True)
