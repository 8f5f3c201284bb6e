"""The files of the console, as they are served."""

import dataclasses
import gzip
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

FILES = Path(__file__).parent / "static"
INDEX = "index.html"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
# A name with a hash of the content is never used again for other content.
HASHED = re.compile(r".+-[0-9A-Z]{8}\.\w+")
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"

SECURITY = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclasses.dataclass(frozen=True, slots=True)
class File:
    """A file, plain and compressed; ``tag`` changes with the content."""

    body: bytes
    compressed: bytes
    tag: str
    headers: Mapping[str, str]


def load(directory: Path = FILES) -> dict[str, File]:
    """Return all files by name; no others are served."""
    return {
        path.name: _read(path) for path in directory.iterdir() if path.suffix in TYPES
    }


def _read(path: Path) -> File:
    body = path.read_bytes()
    headers = {
        **SECURITY,
        "content-type": TYPES[path.suffix],
        "cache-control": FOR_EVER if HASHED.fullmatch(path.name) else ASK_AGAIN,
        "vary": "accept-encoding",
    }
    tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    return File(body, gzip.compress(body, mtime=0), tag, headers)
