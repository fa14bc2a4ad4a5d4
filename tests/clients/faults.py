"""What a server may do to a write, and what the program's tries end with: the table of the fault tests.

A try is written as
  an HTTP status with the id of the first order        201, 200
  another HTTP status                                  500, 402 ...
  a CURLcode                                           "rc28"
  a refusal, played as an answer                       "424 unknown-outcome"
  a refusal that must not look like success            "rc56"
"""
PROVIDER_KEYS = "&keys=honour&busy=wait&stores=201.402"
DOUBT = "424 unknown-outcome"
BLOB = '{"amount":500}'

# name: (query, native end of the first try, tries without keys, tries against a deduplicating server)
FAULTS = {
    "late": ("late=1.6&times=1", "rc28", ["rc28", 201, 201, 201, 201], ["rc28", 201, 201, 201, 201]),
    "closed": ("cut=1&times=1", "rc52", ["rc52", "rc56", "rc56", "rc56", "rc56"], ["rc52", 201, 201, 201, 201]),
    "cut-body": ("cutbody=1&times=1", "rc18", ["rc18", "rc56", "rc56", "rc56", "rc56"], ["rc18", 201, 201, 201, 201]),
    "500": ("status=500&times=1", 500, [500, DOUBT, DOUBT, DOUBT, DOUBT], [500, 201, 201, 201, 201]),
    "503": ("status=503&times=1", 503, [503, DOUBT, DOUBT, DOUBT, DOUBT], [503, 201, 201, 201, 201]),
    "503-not-executed": ("status=503&times=1&exec=0", 503, [503, DOUBT, DOUBT, DOUBT, DOUBT], [503, 201, 201, 201, 201]),
    "429": ("status=429&times=1&exec=0&retry_after=1", 429, [429, 201, 201, 201, 201], [429, 201, 201, 201, 201]),
    "chunked-gzip": ("chunked=1&gzip=1", 201, [201] * 5, [201] * 5),
    "307": ("redirect=307&to=/orders", 201, [201] * 5, [201] * 5),
    "303": ("status=303&to=/orders/ID", 200, [200] * 5, [200] * 5),
    "103": ("early=103", 201, [201] * 5, [201] * 5),
    "set-cookie": ("cookie=1", 201, [201] * 5, [201] * 5),
    "401": ("auth=basic", 401, [401, 201, 201, 201, 201], [401, 201, 201, 201, 201]),
    "402": ("status=402&times=1&exec=0", 402, [402, 201, 201, 201, 201], [402, 201, 201, 201, 201]),
}
# A client that tries again by itself on these: its first try ends as the second try of the others does.
RETRIED = {"late": 201, "500": DOUBT, "503": DOUBT, "503-not-executed": DOUBT, "429": 201}
UNSENT = {"503-not-executed"}  # without keys nobody can know that nothing was executed
FREED = {"429", "401", "402"}  # these say that nothing was executed: it is sent again
REDIRECTED = {"307", "303"}


def said(answer):
    """One try in the table's words."""
    if answer.rc:
        return "rc%d" % answer.rc
    if answer.reason:
        assert answer.problem["status"] == answer.status
        return "%d %s" % (answer.status, answer.reason)
    if answer.status in (200, 201):
        return answer.status if answer.order == "ord-1" else answer.body
    return answer.status


def seconds(name):
    """The timeout a program has."""
    return 1 if name == "late" else 30


def user(name, number):
    """The credentials of the program's try: the first ones are wrong where that is the fault."""
    if name != "401":
        return ""
    return "u:wrong" if number == 1 else "u:p"
