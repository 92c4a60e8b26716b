"""Recognises text that addresses the run's judge, also in disguise: look-alike letters, encodings.

It is narrow on purpose, because agents ordinarily instruct, review, grade or audit each other. A text
that is not recognised cannot change an outcome either: a model's word alone never makes a run a success
(`assembly`).
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from mast_trace_judge.local.addressing.phrases import holds_phrase, may_hold_phrase

if TYPE_CHECKING:
    from collections.abc import Iterator

_INVISIBLE = {"Cc", "Cf", "Co", "Cs", "Cn"}
_CONTROL = bytes(code for code in (*range(32), 127) if chr(code) not in "\n\t")
_VARIATION = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_NOT_PRINTED = re.compile(r"[^\n\t -~]+")

_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁһкмтвнԛԝοαεινκρτυχιηβ"  # Cyrillic and Greek, on purpose
    "АЕОРСУХІЈЅКМТВНΟΑΕΙΝΚΡΤΥΧΗΒ"  # noqa: RUF001
    "ոօսհցզյքռՕՍՏᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",  # Armenian, and small capitals
    "aeopcyxijsdhkmtbhqwoaeivkptuxinbAEOPCYXIJSKMTBHOAEINKPTYXHB"
    "nouhgqjfnOUSabcdefghijklmnoprstuvwyz",
)
_LEET = str.maketrans("013457@$!|", "oieastasil")
_DIGIT_IN_WORD = re.compile(r"[013457@$!|](?:(?=[A-Za-z])|(?<=[A-Za-z].))")
_CODED = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{24,4000}={0,2}")
_CODED_FROM = 24
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def clean(text: str) -> str:
    """Return the visible text: NFKC, without control, zero-width and other invisible characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text.encode("ascii").translate(None, _CONTROL).decode("ascii")
    folded = _VARIATION.sub("", unicodedata.normalize("NFKC", text))
    if folded.isprintable():
        return folded
    return _NOT_PRINTED.sub(_seen, folded)


def _seen(found: re.Match[str]) -> str:
    piece = found[0]
    if piece.isprintable():
        return piece
    return "".join(char for char in piece if unicodedata.category(char) not in _INVISIBLE)


def addresses_reader(text: str) -> bool:
    """Return whether a passage of a cleaned text addresses the run's judge."""
    return any(map(holds_phrase, _forms(text)))


def may_address_reader(text: str) -> bool:
    """Return whether a cleaned text may address the judge, alone or joined with a neighbouring text."""
    return any(map(may_hold_phrase, _forms(text)))


def _forms(text: str) -> Iterator[str]:
    """Yield the text and its decoded forms: with replaced letters restored and encodings undone."""
    yield text
    plain = text if text.isascii() else _NOT_ASCII.sub(_in_ascii, text)
    if plain != text:
        yield plain
    if _DIGIT_IN_WORD.search(plain):
        yield plain.translate(_LEET)
    if max(map(len, plain.split()), default=0) >= _CODED_FROM:
        for coded in _CODED.findall(plain):
            yield from _decoded(coded)
    yield from _unescaped(text)


def _unescaped(text: str) -> Iterator[str]:
    """Yield a text with the escapes of JSON, HTML and URLs decoded, for each kind that it has."""
    if "\\u" in text:
        yield _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    if "&" in text and ";" in text:
        yield html.unescape(text)
    if "%" in text and _PERCENT.search(text):
        yield unquote_plus(text)


def _in_ascii(found: re.Match[str]) -> str:
    """Return letters without accents, with those that look like Latin letters replaced by them."""
    parts = unicodedata.normalize("NFD", found[0])
    seen = [char for char in parts if unicodedata.category(char) != "Mn"]
    return "".join(seen).translate(_LOOKALIKES)


def _decoded(coded: str) -> Iterator[str]:
    """Yield the text that a passage encodes in base64, if it does."""
    try:
        said = base64.b64decode(coded + "=" * (-len(coded) % 4)).decode("utf-8")
    except (binascii.Error, ValueError):
        return
    if said.isprintable():
        yield said
