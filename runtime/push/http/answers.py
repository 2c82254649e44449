"""What a server said, as a person would read it: unpacked and decoded, whatever it says of how it was packed."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

#: Bytes of an answer's body, on the wire and unpacked.
MOST_BYTES = 50_000_000
#: Ways of packing that are announced.
PACKED = ("gzip", "deflate")
#: An answer may be packed so many times over.
MOST_PACKED = 3
#: Codecs that make text of bytes, by the names that Python gives them. Others are none (base64), read a language (idna,
#: unicode_escape) or never work (undefined).
_CHARSETS = re.compile(
    r"utf-(8|8-sig|16|16-[bl]e|32|32-[bl]e)|ascii|iso8859-\d+|cp\d+|koi8-[rut]|mac-\w+|tis-620|hp-roman8|ptcp154|kz1048"
    r"|gb2312|gbk|gb18030|hz|big5|big5hkscs|euc_\w+|shift_jis\w*|iso2022_\w+|johab"
)
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class TooLarge(ValueError):
    """More than MOST_BYTES."""

    def __init__(self) -> None:
        super().__init__(f"answer over {MOST_BYTES // 1_000_000} MB")


@dataclass  # not frozen: that costs a microsecond or two for each
class Answer:
    """What a server said; the same again may be the same object. Header names are in lower case, repeated ones joined
    by comma and space. `remarks` say what was not as announced, for the run's log."""

    status: int
    headers: dict[str, str]
    body: bytes
    told: Any = None  # how push functions get it, once they did
    remarks: list[str] = field(default_factory=list)
    _text: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Answer, (self.status, self.headers, self.body)  # the rest follows from these

    @property
    def text(self) -> str:
        if self._text is None:
            self._text, remark = decoded(self.body, self.headers.get("content-type", ""))
            if remark:
                self.remarks.append(remark)
        return self._text


def read(status: int, headers: dict[str, str], body: bytes) -> Answer:
    """The answer with its body unpacked. Raises TooLarge."""
    packing = headers.get("content-encoding")
    if not packing or not body:
        return Answer(status, headers, body)
    body, remark = unpacked(body, packing)
    return Answer(status, headers, body, remarks=[remark] if remark else [])


def unpacked(body: bytes, packing: str) -> tuple[bytes, str]:
    """The body as it was before it was packed, or as it stands where it cannot be unpacked; and a remark. Raises
    TooLarge."""
    names = [n for name in packing.lower().split(",") if (n := name.strip()) not in ("", "identity")]
    told = f"it says {packing[:50]!r}"
    if len(names) > MOST_PACKED or any(n.removeprefix("x-") not in PACKED for n in names):
        return body, f"{told}, which was not asked for: read as it stands"

    whole = body
    for name in reversed(names):
        try:
            whole, ended = _inflated(whole, name)
        except zlib.error:
            return body, f"{told} and is not packed like that: read as it stands"
        if not ended:
            return whole, f"{told} and ends before its end: read as far as it goes"
    return whole, ""


def _inflated(body: bytes, name: str) -> tuple[bytes, bool]:
    """Unpacked, and whether its end was there. Raises zlib.error, TooLarge."""
    if name == "deflate":
        try:
            return _parts(body, zlib.MAX_WBITS)
        except zlib.error:  # as old servers send it, without a head
            return _parts(body, -zlib.MAX_WBITS)
    return _parts(body, 16 + zlib.MAX_WBITS)


def _parts(body: bytes, wbits: int) -> tuple[bytes, bool]:
    """A gzip file may have several parts; what follows the last one and is none is padding."""
    whole = b""
    while True:
        reader = zlib.decompressobj(wbits)
        try:
            whole += reader.decompress(body, MOST_BYTES + 1 - len(whole))
        except zlib.error:
            if whole:
                return whole, True
            raise
        if len(whole) > MOST_BYTES:
            raise TooLarge
        body = reader.unused_data
        if not reader.eof or not body:
            return whole, reader.eof


def decoded(body: bytes, content_type: str) -> tuple[str, str]:
    """The body as text without a byte order mark, and a remark. Bytes that are no character become U+FFFD."""
    for mark, charset in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(charset, "replace"), ""
    said = _charset(content_type)
    known = _codec(said)
    if known:
        return body.decode(known, "replace").removeprefix("\ufeff"), ""
    return body.decode("utf-8", "replace"), f"its charset {said[:50]!r} is none that is known: read as UTF-8"


def _charset(content_type: str) -> str:
    found = "utf-8"
    for part in content_type.split(";")[1:]:
        name, _, value = part.strip().partition("=")
        if name.strip().lower() == "charset":
            found = value.strip("\"' ") or found
    return found


@lru_cache(maxsize=256)
def _codec(charset: str) -> str:
    """Python's name of a charset; empty for what is none."""
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return ""
    return name if _CHARSETS.fullmatch(name) else ""


def read_head(lines: Sequence[bytes]) -> dict[str, str]:
    """The fields of the last head: one of an interim answer may stand before it. Raises ValueError where it was cut
    off."""
    start = max((i for i, line in enumerate(lines) if line.startswith(b"HTTP/")), default=0)
    found: dict[str, str] = {}
    for line in lines[start + 1 :]:
        if not line.strip():
            return found
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode("latin-1")
        name, _, value = text.partition(":")
        name, value = name.strip().lower(), value.strip()
        found[name] = f"{found[name]}, {value}" if name in found else value
    raise ValueError("the answer was cut off within its head")
