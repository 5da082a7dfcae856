"""table.py - every corner case of SGLang's and vLLM's metadata protocols, and both answers to it.

A case is a list of steps in a page space of its own (`pages` of them, under a rank of its own; 0: it has not been
initialized). A step is a request, the answer by default and the answer with strict_upstream, which is upstream's own
unless `differs` says that it cannot be: where upstream's would give two keys one page, or a reader the bytes of
another key. "<p>" stands for a page: its first answer says which, and no two names have the same. After an answer that
refuses, nothing must have changed.

This table is what `conformance` runs; `conformance --differences` prints the cases in which slabkvd differs from upstream.
"""

import dataclasses
import json
import re
import typing

NOTHING = 204  # the answer without a body
ANY_PAGE = "<any>"  # and "<any...>": it may have another name, too

ENDPOINTS = {
    "initialize": "initialize", "exists": "exists", "reserve": "reserve_and_allocate_page_indices",
    "confirm": "confirm_write", "delete": "delete_keys", "clear": "clear", "get": "get_page_indices",
}


@dataclasses.dataclass(frozen=True)
class Refused:
    """{"detail": "..."} in words of ours, which name the culprit."""
    status: int
    word: str

    def __str__(self):
        return f"{self.status}"


@dataclasses.dataclass(frozen=True)
class Exact:
    """Upstream's own words, to the byte or the field. 500 closes the connection."""
    status: int
    body: typing.Any

    def __str__(self):
        return f"{self.status}"


RAISED = Exact(500, "Internal Server Error")  # what upstream answers wherever its Python raises
NOT_FOUND = Exact(404, {"detail": "Not Found"})
NOT_ALLOWED = Exact(405, {"detail": "Method Not Allowed"})
UNKNOWN = Exact(404, {"detail": "Rank {rank} namespace 'kv' not initialized. Please call /{rank}/initialize first."})


@dataclasses.dataclass
class Step:
    path: str
    body: typing.Any  # bytes as they are, else JSON; None: no body
    default: typing.Any
    strict: typing.Any
    told: bool = True
    method: str = "POST"
    headers: typing.Any = None
    shown: str = ""
    changes: bool = False  # although it refuses: pages are lost, here until their deadline

    def expected(self, strict):
        return self.strict if strict else self.default


@dataclasses.dataclass
class Case:
    name: str
    steps: typing.Any  # or the name of a function in `conformance`, with the texts in `told`
    pages: int = 4
    shared: bool = False  # in a space that other cases use too: it only asks, or is refused
    told: typing.Any = None
    differs: str = ""


def step(call, body, default, strict=None, told=True, **more):
    path = "/{rank}/" + ENDPOINTS.get(call, call) if not call.startswith("/") else call
    return Step(path, body, default, default if strict is None else strict, told, **more)


def quiet(call, body, default, strict=None):
    return step(call, body, default, strict, told=False)


def reserve(*keys):
    """Each key gets a page, called as the key."""
    return quiet("reserve", {"keys": [[k, ""] for k in keys]}, {"indices": [[False, f"<{k}>"] for k in keys]})


def confirm(*keys):
    return quiet("confirm", {"written_keys_to_confirm": [[k, f"<{k}>"] for k in keys]}, NOTHING)


def stored(*keys):
    return [reserve(*keys), confirm(*keys)]


def exists(keys, default, strict=None, told=False):
    return step("exists", {"keys": keys}, {"exists": default}, {"exists": default if strict is None else strict}, told)


def get(keys, default, strict=None, told=False):
    return step("get", {"keys": keys}, {"indices": default}, {"indices": default if strict is None else strict}, told)


def asks(keys):
    return {"keys": [[k, ""] for k in keys]}


SHARED = "upstream: two keys on a page, or two pages of a key"
READ = "upstream: a reader's page is given away"

# ---- the seven calls as they are meant -------------------------------------------------------------

CALLS = [
    Case("initialize makes a space", [step("initialize", {"num_pages": 4}, NOTHING)], pages=0),
    Case("initialize again, another size: the first stays", [
        step("initialize", {"num_pages": 9}, NOTHING), reserve(*"abcd"),
        quiet("reserve", asks("e"), {"indices": [[False, -1]]}, RAISED)]),
    Case("initialize again keeps the keys", [
        *stored("a"), step("initialize", {"num_pages": 4}, NOTHING), get(["a"], ["<a>"])]),
    Case("exists of a key that is stored, and of one that is not", [
        *stored("a"), exists(["a", "b"], [True, False], told=True)]),
    Case("exists behind a miss", [
        *stored("a", "c"), exists(["a", "b", "c"], [True, False, False], [True, False, True], told=True)]),
    Case("exists of a key that is reserved and not confirmed", [reserve("a"), exists(["a"], [False], told=True)]),
    Case("no keys", [
        step("exists", {"keys": []}, {"exists": []}), step("get", {"keys": []}, {"indices": []}),
        step("reserve", {"keys": []}, {"indices": []}), step("delete", {"keys": []}, NOTHING)], shared=True),
    Case("reserve of new keys", [
        step("reserve", asks("ab"), {"indices": [[False, "<a>"], [False, "<b>"]]})]),
    Case("reserve of a key that is stored", [
        *stored("a"), step("reserve", asks("ab"), {"indices": [[True, "<a>"], [False, "<b>"]]})]),
    Case("get of keys that are all there", [*stored("a", "b"), get(["b", "a"], ["<b>", "<a>"], told=True)]),
    Case("get where one key is missing", [
        *stored("a", "c"), get(["a", "b", "c"], [None, None, None], ["<a>", None, "<c>"], told=True)]),
    Case("get where all are missing", [get(["a", "b"], [None, None], told=True)], shared=True),
    Case("get of a key that is reserved and not confirmed", [reserve("a"), get(["a"], [None], told=True)]),
    Case("confirm of what was reserved", [
        reserve("a"), step("confirm", {"written_keys_to_confirm": [["a", "<a>"]], "pages_to_release": []}, NOTHING),
        get(["a"], ["<a>"])]),
    Case("confirm with both lists absent", [step("confirm", {}, NOTHING)], shared=True),
    Case("release of a reserved page, then confirm of it", [
        reserve("a"), step("confirm", {"pages_to_release": ["<a>"]}, NOTHING),
        step("confirm", {"written_keys_to_confirm": [["a", "<a>"]]}, NOTHING), get(["a"], [None])],
        differs="upstream maps the key to a page that is free"),
    Case("delete of a key that is there, of one that is not, and again", [
        *stored("a", "b"), step("delete", {"keys": ["a", "x"]}, NOTHING), step("delete", {"keys": ["a"]}, NOTHING),
        get(["b"], ["<b>"]), exists(["a"], [False])]),
    Case("delete of a key that is reserved and not confirmed", [
        reserve("a"), step("delete", {"keys": ["a"]}, NOTHING), confirm("a"), get(["a"], [None])],
        differs="upstream maps the key to its page again"),
    Case("a deleted key's page is free at once", [
        *stored("a"), quiet("delete", {"keys": ["a"]}, NOTHING),
        step("reserve", asks("b"), {"indices": [[False, ANY_PAGE]]})], pages=1),
    Case("clear", [
        *stored("a", "b"), step("clear", {"namespace": "kv"}, NOTHING), exists(["a"], [False]),
        quiet("reserve", asks("cdef"), {"indices": [[False, ANY_PAGE]] * 4})]),
    Case("clear while a page is being written: its confirm is ignored", [
        reserve("a"), step("clear", {}, NOTHING), step("confirm", {"written_keys_to_confirm": [["a", "<a>"]]}, NOTHING),
        exists(["a"], [False])], differs="upstream maps the key to a page that is free"),
]

# ---- ranks, namespaces, tenants --------------------------------------------------------------------

SPACES = [
    Case("no namespace is kv", [
        *stored("a"), step("get", {"keys": ["a"], "namespace": "kv"}, {"indices": ["<a>"]}),
        step("get", {"keys": ["a"]}, {"indices": ["<a>"]})]),
    Case("namespaces share nothing", [
        *stored("a"), quiet("initialize", {"num_pages": 4, "namespace": "mamba"}, NOTHING),
        step("exists", {"keys": ["a"], "namespace": "mamba"}, {"exists": [False]}),
        step("clear", {"namespace": "mamba"}, NOTHING), get(["a"], ["<a>"])]),
    Case("the last pages of a prompt alone, in the main pool", [
        *stored("c", "d"), exists(list("abcd"), [False] * 4, [False, False, True, True], told=True),
        get(list("abcd"), [None] * 4, [None, None, "<c>", "<d>"], told=True)]),
    Case("the last pages of a prompt alone, in another pool", [
        quiet("initialize", {"num_pages": 4, "namespace": "mamba"}, NOTHING),
        quiet("reserve", {**asks("cd"), "namespace": "mamba"}, {"indices": [[False, "<c>"], [False, "<d>"]]}),
        quiet("confirm", {"written_keys_to_confirm": [["c", "<c>"], ["d", "<d>"]], "namespace": "mamba"}, NOTHING),
        step("exists", {"keys": list("abcd"), "namespace": "mamba"}, {"exists": [False, False, True, True]}),
        step("get", {"keys": list("abcd"), "namespace": "mamba"}, {"indices": [None, None, "<c>", "<d>"]})]),
    *[Case(f"a namespace of {what}", [
        quiet("initialize", {"num_pages": 2, "namespace": name}, NOTHING),
        step("reserve", {"keys": [["a", ""]], "namespace": name}, {"indices": [[False, "<a>"]]}, shown=shown),
        quiet("confirm", {"written_keys_to_confirm": [["a", "<a>"]], "namespace": name}, NOTHING),
        quiet("get", {"keys": ["a"], "namespace": name}, {"indices": ["<a>"]})], pages=0)
      for what, name, shown in (
          ("odd characters", "a/b c:=\u00fc\n", ""), ("no characters", "", ""),
          ("300 bytes", "n" * 300, "reserve, namespace of 300 bytes"))],
    Case("ranks share nothing", [
        *stored("a"), quiet("/0/initialize", {"num_pages": 4}, NOTHING),
        step("/0/exists", {"keys": ["a"]}, {"exists": [False]})]),
    Case("leading zeros of a rank", [
        *stored("a"), step("/00{rank}/get_page_indices", {"keys": ["a"]}, {"indices": ["<a>"]})]),
    Case("a negative rank", [
        step("/-1/initialize", {"num_pages": 4}, Refused(422, "rank"), NOTHING),
        step("/-1/exists", {"keys": ["a"]}, Refused(422, "rank"), {"exists": [False]})], shared=True),
    *[Case(f"a rank that is no number: {rank}", [
        step(f"/{rank}/exists", {"keys": ["a"]}, Refused(422, "rank"), Refused(422, "rank"))], shared=True)
      for rank in ("abc", "1.5", "0x1")],
    Case("a space that nobody has initialized", [
        step("exists", {"keys": ["a", "b"]}, {"exists": [False, False]}, UNKNOWN),
        step("get", {"keys": ["a", "b"]}, {"indices": [None, None]}, UNKNOWN),
        step("reserve", asks("ab"), {"indices": [[False, -1], [False, -1]]}, UNKNOWN),
        step("confirm", {"written_keys_to_confirm": [["a", 0]], "pages_to_release": [1]}, NOTHING, UNKNOWN),
        step("delete", {"keys": ["a"]}, NOTHING, UNKNOWN), step("clear", {}, NOTHING, UNKNOWN)], pages=0),
    Case("a path prefix is a tenant", [
        *stored("a"), step("/team-a/{rank}/initialize", {"num_pages": 4}, NOTHING, NOT_FOUND),
        step("/team-a/{rank}/exists", {"keys": ["a"]}, {"exists": [False]}, NOT_FOUND)]),
    *[Case(f"a path prefix that is no tenant: {name}", [
        step(f"/{name}/0/exists", {"keys": ["a"]}, NOT_FOUND)], shared=True) for name in ("v1", "7", "metrics")],
]

# ---- a full store ----------------------------------------------------------------------------------

FULL = [
    Case("full of reserved pages", [reserve("a", "b"), step("reserve", asks("c"), {"indices": [[False, -1]]}, RAISED)],
         pages=2),
    Case("more keys than pages", [
        step("reserve", asks("abc"), {"indices": [[False, "<a>"], [False, "<b>"], [False, -1]]}, RAISED, changes=True)],
        pages=2),
    Case("full, and the key is stored", [
        *stored("a"), reserve("b"), step("reserve", asks("ac"), {"indices": [[True, "<a>"], [False, -1]]})],
        pages=2, differs="upstream evicts the key that it has just told of"),
    Case("full of stored keys: one goes", [
        *stored("a", "b"), step("reserve", asks("c"), {"indices": [[False, ANY_PAGE]]})], pages=2),
    Case("full of keys that exists has just told of", [
        *stored("a", "b"), exists(["a", "b"], [True, True]), step("reserve", asks("c"), {"indices": [[False, -1]]}),
        get(["a", "b"], ["<a>", "<b>"])], pages=2, differs=READ),
    Case("full of keys that get has just told of", [
        *stored("a", "b"), get(["a", "b"], ["<a>", "<b>"]), step("reserve", asks("c"), {"indices": [[False, -1]]}),
        exists(["a", "b"], [True, True])], pages=2, differs=READ),
    Case("a page that a reader may still read is not free when its key is deleted", [
        *stored("a"), get(["a"], ["<a>"]), quiet("delete", {"keys": ["a"]}, NOTHING),
        step("reserve", asks("b"), {"indices": [[False, -1]]})], pages=1, differs=READ),
    *[Case(f"num_pages {n}", [
        step("initialize", {"num_pages": n}, NOTHING), step("exists", {"keys": ["a"]}, {"exists": [False]}),
        step("reserve", asks("a"), {"indices": [[False, -1]]}, RAISED)], pages=0) for n in (0, -1)],
]

# ---- what upstream trusts a client with ------------------------------------------------------------

TRUST = [
    Case("a reserve sent again, its answer lost", [
        reserve("a", "b"), step("reserve", asks("ab"), {"indices": [[True, -1], [True, -1]]}), confirm("a", "b"),
        get(["a", "b"], ["<a>", "<b>"])], differs=SHARED),
    Case("a key twice in a reserve", [
        step("reserve", asks("aba"), {"indices": [[False, "<a>"], [False, "<b>"], [True, -1]]})], differs=SHARED),
    Case("a stored key twice in a reserve", [
        *stored("a"), step("reserve", asks("aa"), {"indices": [[True, "<a>"], [True, "<a>"]]})]),
    Case("a key twice in exists, get and delete", [
        *stored("a"), step("exists", {"keys": ["a", "a"]}, {"exists": [True, True]}),
        step("get", {"keys": ["a", "a"]}, {"indices": ["<a>", "<a>"]}), step("delete", {"keys": ["a", "a"]}, NOTHING)]),
    Case("a confirm sent again", [
        *stored("a"), step("confirm", {"written_keys_to_confirm": [["a", "<a>"]]}, NOTHING), get(["a"], ["<a>"])]),
    Case("confirm of a page that nobody reserved", [
        step("confirm", {"written_keys_to_confirm": [["x", 0], ["y", 3]]}, NOTHING),
        exists(["x", "y"], [False, False]), reserve(*"abcd")], differs=SHARED),
    Case("confirm of a page that another key reserved", [
        reserve("a"), step("confirm", {"written_keys_to_confirm": [["x", "<a>"]]}, NOTHING), exists(["x"], [False]),
        confirm("a"), get(["a"], ["<a>"])], differs=SHARED),
    Case("confirm of a page that another key has", [
        *stored("a"), reserve("b"), step("confirm", {"written_keys_to_confirm": [["b", "<a>"]]}, NOTHING),
        exists(["b"], [False]), get(["a"], ["<a>"])], differs=SHARED),
    Case("confirm of a stored key on another page", [
        *stored("a"), step("confirm", {"written_keys_to_confirm": [["a", 0], ["a", 1], ["a", 2], ["a", 3]]}, NOTHING),
        get(["a"], ["<a>"])], differs=SHARED),
    Case("confirm of pages out of range", [
        step("confirm", {"written_keys_to_confirm": [["x", 999], ["y", -1], ["z", 1 << 62]]}, NOTHING),
        exists(["x"], [False]), exists(["y"], [False]), exists(["z"], [False])], differs=SHARED),
    Case("confirm and release of the same page", [
        reserve("a"),
        step("confirm", {"written_keys_to_confirm": [["a", "<a>"]], "pages_to_release": ["<a>"]}, NOTHING),
        get(["a"], ["<a>"])], differs=SHARED),
    Case("release of a page that is free, and of one twice", [
        step("confirm", {"pages_to_release": [0, 0, 1]}, NOTHING), reserve(*"abcd"),
        quiet("reserve", asks("e"), {"indices": [[False, -1]]}, RAISED)]),
    Case("release of pages out of range", [
        step("confirm", {"pages_to_release": [777, -1, 1 << 62]}, NOTHING), reserve(*"abcd"),
        quiet("reserve", asks("e"), {"indices": [[False, -1]]}, RAISED)], differs="upstream hands page 777 out later"),
    Case("release of a page that a key has", [
        *stored("a"), step("confirm", {"pages_to_release": ["<a>"]}, NOTHING), get(["a"], ["<a>"]), reserve(*"bcd"),
        quiet("reserve", asks("e"), {"indices": [[False, -1]]})], differs=SHARED),
]

# ---- keys ------------------------------------------------------------------------------------------

KEYS = [
    Case("any text is a key", [
        *stored("", "\u00e9\u4e2d\U0001f600", "a\0b", "k" * 64 + "-k_deepseek_v4_c4_indexer_state"),
        step("get", b'{"keys":["","\\u00e9\\u4e2d\\ud83d\\ude00","a\\u0000b"]}',
             {"indices": ["<>", "<\u00e9\u4e2d\U0001f600>", "<a\0b>"]})]),
    Case("no folding of letters that look alike", [
        *stored("\u00e9"), step("exists", {"keys": ["e\u0301"]}, {"exists": [False]})]),
    Case("a number is another key than its text", [
        *stored("1"), step("exists", {"keys": [1]}, {"exists": [False]}), exists(["1"], [True])]),
    Case("numbers that are equal are one key", [
        step("reserve", {"keys": [[1, ""]]}, {"indices": [[False, "<n>"]]}),
        quiet("confirm", {"written_keys_to_confirm": [[1, "<n>"]]}, NOTHING),
        step("get", b'{"keys":[1,1.0,true,10e-1]}', {"indices": ["<n>"] * 4})]),
    Case("null, false and fractions are keys", [
        step("reserve", {"keys": [[None, ""], [False, ""], [1.5, ""]]},
             {"indices": [[False, "<n>"], [False, "<f>"], [False, "<x>"]]}),
        quiet("confirm", {"written_keys_to_confirm": [[None, "<n>"], [False, "<f>"], [1.5, "<x>"]]}, NOTHING),
        step("get", b'{"keys":[null,0,1.5]}', {"indices": ["<n>", "<f>", "<x>"]})]),
    Case("a key of 1023 bytes", [
        step("reserve", asks(["k" * 1023]), {"indices": [[False, "<k>"]]}, shown="reserve of a key of 1023 bytes")]),
    Case("a key of 1024 bytes", [
        step("reserve", asks(["k" * 1024]), {"indices": [[False, -1]]}, shown="reserve of a key of 1024 bytes"),
        step("exists", {"keys": ["k" * 1024]}, {"exists": [False]}, shown="exists of it"),
        step("get", {"keys": ["k" * 1024]}, {"indices": [None]}, shown="get of it")],
        differs="longer keys are not kept"),
    *[Case(f"prefix_key {what}", [
        step("reserve", {"keys": [["a", prefix], ["b", prefix]]}, {"indices": [[False, "<a>"], [False, "<b>"]]}),
        confirm("a", "b"), get(["a", "b"], ["<a>", "<b>"])])
      for what, prefix in (("null", None), ("of some key", "x"), ("that is a number", 5), ("that is the key", "a"))],
]

# ---- what is written wrong -------------------------------------------------------------------------


def wrong(name, call, body, default, strict=RAISED):
    return Case(name, [step(call, body, default, strict)], shared=True)


NO_JSON = Refused(400, "")


def field(word):
    return Refused(422, word)


WRONG = [
    *[wrong(f"{call} with {what}", call, body, answer)
      for call in ("initialize", "exists", "reserve", "confirm", "delete", "get", "clear")
      for what, body, answer in (("bad JSON", b'{"keys":["a"', NO_JSON),
                                 ("an array", b'["a"]', Refused(400, "object")))],
    wrong("bytes that are no UTF-8", "exists", b'{"keys":["\xff"]}', NO_JSON),
    wrong("half a surrogate pair", "exists", b'{"keys":["\\ud800"]}', NO_JSON),
    wrong("something behind the JSON", "exists", b'{"keys":["a"]} x', NO_JSON),
    wrong("NaN", "exists", b'{"keys":[NaN]}', NO_JSON),
    *[wrong(f"{call} without a body", call, None, NO_JSON)
      for call in ("initialize", "exists", "reserve", "delete", "get")],
    wrong("clear without a body", "/9/clear", None, NOTHING),
    *[wrong(f"{call} without keys", call, {}, field("keys")) for call in ("exists", "reserve", "delete", "get")],
    *[wrong(f"{call} with keys {shown}", call, {"keys": keys}, field("keys"))
      for call in ("exists", "reserve", "delete", "get") for shown, keys in (("null", None), ("5", 5))],
    wrong("exists with a string for the list", "exists", {"keys": "ab"}, field("keys"), {"exists": [False, False]}),
    wrong("get with a string for the list", "get", {"keys": "ab"}, field("keys"), {"indices": [None, None]}),
    wrong("delete with a string for the list", "delete", {"keys": "ab"}, field("keys"), NOTHING),
    wrong("reserve with a string for the list", "reserve", {"keys": "ab"}, field("keys")),
    *[wrong(f"{call} with a key that is {shown}", call, {"keys": [key]}, field("keys"))
      for call in ("exists", "delete", "get") for shown, key in (("a list", ["a"]), ("an object", {}))],
    wrong("reserve with keys that are no pairs", "reserve", {"keys": ["a"]}, field("keys")),
    wrong("reserve with a pair of one", "reserve", {"keys": [["a"]]}, field("keys")),
    wrong("reserve with a pair of three", "reserve", {"keys": [["a", "", ""]]}, field("keys")),
    wrong("reserve whose last pair is wrong", "reserve", {"keys": [["a", ""], ["b"]]}, field("keys")),
    wrong("reserve with a key that is a list", "reserve", {"keys": [[["a"], ""]]}, field("keys")),
    wrong("confirm with a pair of one", "confirm", {"written_keys_to_confirm": [["a"]]}, field("written_keys")),
    wrong("confirm with null", "confirm", {"written_keys_to_confirm": None}, field("written_keys")),
    wrong("release of null", "confirm", {"pages_to_release": None}, field("pages_to_release")),
    wrong("confirm of a page that is a string", "confirm", {"written_keys_to_confirm": [["a", "x"]]},
          field("written_keys"), NOTHING),
    wrong("release of a page that is a fraction", "confirm", {"pages_to_release": [1.5]}, field("pages"), NOTHING),
    *[Case(f"initialize with num_pages {shown}", [
        step("initialize", body, field("num_pages"), RAISED),
        quiet("exists", {"keys": ["a"]}, {"exists": [False]}, UNKNOWN)], pages=0)
      for shown, body in (("absent", {}), ("4.0", b'{"num_pages":4.0}'), ('"4"', {"num_pages": "4"}),
                          ("null", {"num_pages": None}), ("[4]", {"num_pages": [4]}))],
]

# ---- HTTP ------------------------------------------------------------------------------------------

HELLO = {"exists": [True]}

HTTP = [
    Case("other fields are ignored", [
        *stored("a"),
        step("exists", b'{ "zz" : [1,{"x":null}] ,\n"namespace":"kv", "keys" : [ "a" ],"rank":"x"}', HELLO)]),
    Case("a query string is ignored", [
        *stored("a"), step("/{rank}/exists?x=1&keys=b", {"keys": ["a"]}, HELLO)]),
    Case("any Content-Type, or none", [
        *stored("a"),
        step("exists", {"keys": ["a"]}, HELLO, headers={"Content-Type": "text/plain"}, shown="exists as text/plain"),
        step("exists", {"keys": ["a"]}, HELLO, headers={"Content-Type": None}, shown="exists without a type")]),
    *[Case(f"{method}", [
        step("exists", None, NOT_ALLOWED, method=method),
        step("/{rank}/nothing", None, NOT_FOUND, method=method)], shared=True)
      for method in ("GET", "PUT", "DELETE")],
    Case("an unknown call", [step("/{rank}/nothing", {}, NOT_FOUND), step("/{rank}", {}, NOT_FOUND)], shared=True),
    Case("a trailing slash", "trailing_slash", told=("exists/", "307 to the path without it", "the same")),
    Case("two segments, and one byte at a time", "segments", told=("exists", '{"exists": [true]}', "the same")),
    Case("a hundred calls on one connection", "keep_alive", told=(
        "reserve, confirm, exists, get", "200, 204", "the same")),
    Case("half a request, then the connection ends", "half", told=("half of a reserve", "nothing changes", "the same")),
    Case("18 MB of keys", "eighteen_megabytes", told=("exists of 270,000 keys", "200", "the same")),
    Case("20,000 keys in one call", "many_keys", told=(
        "reserve, confirm, exists, get, delete", "200, 204", "the same")),
]

# ---- vLLM: /rank, /keys, /clear; one story, for its spaces are the server's -------------------------


def vllm(name, path, body, default, strict=None, told=True, **more):
    return Case(f"vLLM: {name}", [step(path, body, default, strict, told=told, **more)], pages=0)


ALLOCATE, CONFIRM = "/keys/batch_allocate", "/keys/confirm_write"
EXISTS, LOCATIONS = "/keys/batch_exists", "/keys/get_locations"


def raised(text):
    return Exact(500, {"detail": text})


def bad(text):
    return Exact(400, {"detail": text})


VLLM = [
    vllm("initialize, num_pages 0", "/rank/0/initialize", {"num_pages": 0}, bad("Invalid initialization parameters")),
    vllm("initialize, a scheduler", "/rank/0/initialize", {"role": "scheduler"},
         {"message": "Scheduler role does not require initialization"}),
    vllm("an unknown rank", ALLOCATE, {"rank": 8, "keys": [["a", ""]]}, {"rank": 8, "results": [["a", -1]]},
         raised("Allocation failed: Rank 8 not initialized")),
    vllm("an unknown rank, locations", LOCATIONS, {"rank": 8, "keys": ["a"]}, {"locations": [None]},
         raised("Failed to get key locations: Rank 8 not initialized")),
    vllm("initialize, a worker", "/rank/0/initialize", {"num_pages": 4, "role": "worker"},
         {"message": "Rank 0 initialized with 4 pages"}),
    vllm("initialize, no role", "/rank/1/initialize", {"num_pages": 4}, {"message": "Rank 1 initialized with 4 pages"}),
    Case("vLLM: a key is there when all ranks have confirmed it", [
        step(ALLOCATE, {"rank": 0, "keys": [["a", ""]]}, {"rank": 0, "results": [["a", "<a0>"]]}),
        quiet(CONFIRM, {"rank": 0, "confirmations": [["a", "<a0>"]], "pages_to_release": []}, NOTHING),
        step(EXISTS, {"keys": ["a"]}, {"exists": [False]}),
        step(LOCATIONS, {"rank": 0, "keys": ["a"]}, {"locations": [None]}),
        quiet(ALLOCATE, {"rank": 1, "keys": [["a", ""]]}, {"rank": 1, "results": [["a", "<any1>"]]}),
        quiet(CONFIRM, {"rank": 1, "confirmations": [["a", "<any1>"]]}, NOTHING),
        step(EXISTS, {"keys": ["a"]}, {"exists": [True]}),
        step(LOCATIONS, {"rank": 0, "keys": ["a"]}, {"locations": ["<a0>"]}),
        step(ALLOCATE, {"rank": 0, "keys": [["a", ""]]}, {"rank": 0, "results": [["a", "<a0>"]]})], pages=0),
    vllm("no keys field", EXISTS, {}, {"exists": []}),
    vllm("keys that are no list", EXISTS, {"keys": "a"}, bad("Invalid keys format")),
    vllm("allocate without rank", ALLOCATE, {"keys": []}, bad("Invalid request format: need 'rank' and 'keys'")),
    vllm("confirm without rank", CONFIRM, {"confirmations": []},
         bad("Invalid request format: need 'rank' and 'confirmations'")),
    vllm("locations, keys that are no list", LOCATIONS, {"rank": 0, "keys": {}},
         bad("Invalid request format: need 'rank' and 'keys'")),
    vllm("bad JSON", EXISTS, b"{", NO_JSON, RAISED),
    vllm("confirm of a page that nobody allocated", CONFIRM, {"rank": 0, "confirmations": [["x", 3]]}, NOTHING),
    Case("vLLM: full", [
        step(ALLOCATE, {"rank": 0, "keys": [["b", ""], ["c", ""], ["d", ""]]},
             {"rank": 0, "results": [["b", "<b>"], ["c", "<c>"], ["d", "<d>"]]}),
        step(ALLOCATE, {"rank": 0, "keys": [["e", ""]]}, {"rank": 0, "results": [["e", -1]]})], pages=0),
    vllm("clear", "/clear", {}, NOTHING),
    vllm("exists afterwards", EXISTS, {"keys": ["a"]}, {"exists": [False]}),
]

PARTS = {
    "Calls": CALLS, "Ranks, namespaces, tenants": SPACES, "A full store": FULL, "What a client is trusted with": TRUST,
    "Keys": KEYS, "Bad input": WRONG, "HTTP": HTTP, "vLLM": VLLM,
}

# ---- as Markdown -----------------------------------------------------------------------------------


def shown_json(value):
    """Pages in words: "page a", for the page of key a, or "any page"."""
    def words(found):
        name = found.group(1)
        return "any page" if name.startswith("any") else f"page {name}" if name.isalnum() else "a page"
    return re.sub(r'"<([^>]*)>"', words, json.dumps(value))


def shown_answer(answer):
    if isinstance(answer, Exact) and answer.status in (404, 405, 500) and answer is not UNKNOWN:
        return f"{answer.status}" + ("" if isinstance(answer.body, str) else f" {answer.body['detail']}")
    if isinstance(answer, (Refused, Exact, int)):
        return str(answer)
    return f"`{shown_json(answer)}`"


def shown_request(s):
    if s.shown:
        return s.shown
    call = {path: call for call, path in ENDPOINTS.items()}.get(s.path.removeprefix("/{rank}/"), s.path)
    if s.method != "POST":
        call = f"{s.method} {call}"
    if s.body is None:
        return f"`{call}`"
    if isinstance(s.body, bytes):
        body = s.body.decode("utf-8", "backslashreplace").replace("\n", " ")
    else:
        body = shown_json(s.body)
    return f"`{call} {body}`"


def cells(case):
    """Request, answer, answer with strict_upstream."""
    if isinstance(case.steps, str):
        asked, default, strict = case.told
    else:
        told = [s for s in case.steps if s.told]
        asked = "<br>".join(shown_request(s) for s in told)
        default = "<br>".join(shown_answer(s.default) for s in told)
        strict = "<br>".join(shown_answer(s.strict) for s in told)
    strict = "the same" if strict == default else strict
    return asked, default, f"{strict}{f' ({case.differs})' if case.differs else ''}"


def markdown():
    """All cases."""
    lines = []
    for part, cases in PARTS.items():
        lines += [f"### {part}", "", "| case | request | answer | with `strict_upstream` |", "|---|---|---|---|"]
        lines += [f"| {case.name} | {' | '.join(cells(case))} |" for case in cases] + [""]
    return "\n".join(lines)


def names(cases):
    """Of cases that are answered alike: "exists, get with bad JSON; NaN"."""
    calls = {}
    for case in cases:
        call, _, rest = case.name.partition(" ")
        calls.setdefault(rest if call in ENDPOINTS else case.name, []).append(call if call in ENDPOINTS else "")
    who = {rest: "any call" if len(c) == len(ENDPOINTS) else ", ".join(c) for rest, c in calls.items()}
    return "; ".join(f"{who[rest]} {rest}".strip() for rest in calls)


def differences():
    """The cases that upstream answers otherwise; those with the same answers in one row."""
    alike = {}
    for part, cases in PARTS.items():
        for case in cases:
            if cells(case)[2] != "the same":
                alike.setdefault((part, *cells(case)[1:]), []).append(case)
    lines = ["| case | request | answer | with `strict_upstream` |", "|---|---|---|---|"]
    for (_, *answers), cases in alike.items():
        asked = {cells(case)[0] for case in cases}
        if len(asked) > 1:
            asked = {re.sub(r"`(\w+)[^`]*`", r"\1", a) for a in asked}
        lines.append(f"| {names(cases)} | {asked.pop() if len(asked) == 1 else ''} | {' | '.join(answers)} |")
    return "\n".join(lines) + "\n"
