"""Reads addresses (URLs, e-mail, file paths) out as words. Pure; knows no numbers or money."""
# ruff: noqa: RUF001 - look-alike characters are the subject of this module

import re

_TLD = (
    "com|org|net|edu|gov|int|mil|io|co|uk|de|fr|es|it|nl|ch|at|eu|us|ca|au|jp|cn|ru|in|br|info|biz"
    "|tv|me|ly|ai|dev|app|xyz|fm|gg"
)
_ADDRESS = re.compile(
    r"(?:https?|ftps?|file|mailto)://\S+"  # a URL
    r"|\bwww\.\S+"
    r"|(?<!\S)[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # e-mail
    rf"|(?<![\w.-])(?:[a-z0-9][a-z0-9-]*\.)+(?:{_TLD})\b(?:[/:?#]\S*)?(?![\w-])"  # bare host
    r"|(?<!\S)(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]*)*"  # /usr/bin, ~/notes.txt
    r"|\b[A-Z]:\\\S*",  # C:\dir
    re.IGNORECASE,
)
_TRAILING = re.compile(r"[.,;:!?)\]}>'\"”’»]+$")
_MARKS = {
    "://": "colon slash slash",
    ".": "dot",
    "/": "slash",
    "\\": "backslash",
    ":": "colon",
    "?": "question mark",
    "=": "equals",
    "&": "and",
    "@": "at",
    "#": "hash",
    "%": "percent",
    "~": "tilde",
    "+": "plus",
    "-": "dash",
    "_": "underscore",
}
_PIECE = re.compile(r"://|[^\W_]+|.", re.DOTALL)


def read_addresses(text: str) -> str:
    """`www.x.org/a?b=1` becomes `w w w dot x dot org slash a question mark b equals 1`."""
    return _ADDRESS.sub(_spell, text)


def _spell(match: re.Match[str]) -> str:
    address = match.group()
    trailing = _TRAILING.search(address)
    tail = trailing.group() if trailing else ""
    pieces = _PIECE.findall(address.removesuffix(tail))
    words = ("w w w" if p.lower() == "www" else _MARKS.get(p, p) for p in pieces)
    return " ".join(words) + tail
