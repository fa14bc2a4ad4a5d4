"""Two equal writes by ctypes. Arguments: a libcurl, URL."""
import ctypes
import sys

curl = ctypes.CDLL(sys.argv[1])
curl.curl_easy_init.restype = ctypes.c_void_p
URL, POSTFIELDS, STATUS = 10002, 10015, 0x200002
for _ in range(2):
    handle = ctypes.c_void_p(curl.curl_easy_init())
    curl.curl_easy_setopt(handle, URL, ctypes.c_char_p(sys.argv[2].encode()))
    curl.curl_easy_setopt(handle, POSTFIELDS, ctypes.c_char_p(b"a=1"))
    sys.stdout.flush()
    code, status = curl.curl_easy_perform(handle), ctypes.c_long()
    curl.curl_easy_getinfo(handle, STATUS, ctypes.byref(status))
    ctypes.CDLL(None).fflush(None)
    print(" code=%d status=%d" % (code, status.value), flush=True)
    curl.curl_easy_cleanup(handle)
