"""One write by tornado's curl client, which runs libcurl under its own epoll loop. Arguments: URL, seconds,
user:password or nothing, body."""
import asyncio
import sys

from tornado.curl_httpclient import CurlError
from tornado.httpclient import AsyncHTTPClient

url, seconds, user, body = sys.argv[1:5]
AsyncHTTPClient.configure("tornado.curl_httpclient.CurlAsyncHTTPClient")
login = dict(zip(("auth_username", "auth_password"), user.split(":"))) if user else {}


async def main():
    try:
        answer = await AsyncHTTPClient().fetch(url, method="POST", body=body, request_timeout=float(seconds), raise_error=False,
                                               headers={"Content-Type": "application/json"}, **login)
    except CurlError as problem:
        print(problem, file=sys.stderr)
        print("\nsaw status=0 code=%d" % problem.errno)
        return 1
    print("%s\nsaw status=%d code=0" % (answer.body.decode("latin-1"), answer.code))
    return 22 if answer.code >= 400 else 0


sys.exit(asyncio.run(main()))
