"""uri.py - what a peer's data SDK makes of the URI of a location: a file and a byte range in it."""

import os
import urllib.parse


class Place:
    """Bytes of one spec of one block."""

    def __init__(self, uri):
        parts = urllib.parse.urlsplit(uri)
        parameters = urllib.parse.parse_qs(parts.query, strict_parsing=True)
        assert all(len(v) == 1 for v in parameters.values()), uri
        names = [p.split("=")[0] for p in parts.query.split("&")]
        assert names == sorted(names), f"parameters are not in order: {uri}"
        assert set(names) == {"blkid", "size"}, uri
        self.uri, self.scheme, self.storage, self.path = uri, parts.scheme, parts.netloc, parts.path
        self.blkid, self.size = int(parameters["blkid"][0]), int(parameters["size"][0])
        assert self.path.startswith("/") and "//" not in self.path, uri
        assert self.blkid >= 0 and self.size > 0, uri

    def __repr__(self):
        return self.uri

    @property
    def offset(self):
        return self.blkid * self.size

    @property
    def range(self):
        """Of the slab file itself: a place that is read has another path than the same one that is written."""
        return os.path.realpath(self.path), self.offset, self.offset + self.size

    def write(self, data):
        """As the peer's local SDK: exactly the bytes of the spec, into a file that is made if need be."""
        assert len(data) == self.size
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            assert os.pwrite(fd, data, self.offset) == self.size
        finally:
            os.close(fd)

    def read(self):
        fd = os.open(self.path, os.O_RDONLY)
        try:
            return os.pread(fd, self.size, self.offset)
        finally:
            os.close(fd)


def places(location):
    """{spec name: Place} of a location; specs without bytes (placeholders) are left out."""
    return {s["name"]: Place(s["uri"]) for s in location["location_specs"] if s["uri"]}


def disjoint(all_places):
    """No two byte ranges meet."""
    last = None
    for path, begin, end in sorted(p.range for p in all_places):
        if last and last[0] == path:
            assert last[2] <= begin, f"{path}: {last[1:]} meets {(begin, end)}"
        last = path, begin, end
