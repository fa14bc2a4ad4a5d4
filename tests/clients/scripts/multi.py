"""One write by pycurl's CurlMulti. Arguments: URL, seconds, user:password or nothing, body, fields|read."""
import io
import sys

import pycurl

url, seconds, user, body, kind = sys.argv[1:6]
multi, curl, answer, source = pycurl.CurlMulti(), pycurl.Curl(), io.BytesIO(), io.BytesIO(body.encode())
curl.setopt(pycurl.URL, url)
if kind == "fields":
    curl.setopt(pycurl.POSTFIELDS, body)
if kind == "read":
    curl.setopt(pycurl.UPLOAD, 1)
    curl.setopt(pycurl.READFUNCTION, source.read)
    curl.setopt(pycurl.INFILESIZE, len(body))
curl.setopt(pycurl.WRITEFUNCTION, answer.write)
curl.setopt(pycurl.HTTPHEADER, ["Content-Type: application/json"])
curl.setopt(pycurl.TIMEOUT, int(seconds))
if user:
    curl.setopt(pycurl.USERPWD, user)
multi.add_handle(curl)
running = 1
while running:
    _, running = multi.perform()
    if running:
        multi.select(1.0)
left, ended, failed = multi.info_read()
assert left == 0 and len(ended) + len(failed) == 1, (left, ended, failed)
code, text = failed[0][1:] if failed else (0, "")
if text:
    print(text, file=sys.stderr)
status = curl.getinfo(pycurl.RESPONSE_CODE)
multi.remove_handle(curl)
print("%s\nsaw status=%d code=%d" % (answer.getvalue().decode("latin-1"), status, code))
sys.exit(1 if code else 22 if status >= 400 else 0)
