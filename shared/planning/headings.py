"""Recognises the heading of a chapter or part in one line. Knows nothing of what surrounds it."""

# ruff: noqa: RUF001 -- full-width marks and typographic quotes are meant here

import re
from dataclasses import dataclass

LONGEST_LINE = 160  # characters; a longer line is prose
_LONGEST_CHINESE_TITLE = 30

_UNITS = "one two three four five six seven eight nine"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth last"
_ANY_UNIT = _UNITS.replace(" ", "|")
_NUMBER = (
    rf"(?:\d{{1,4}}|[IVXLCDM]{{1,8}}|(?:{_TENS.replace(' ', '|')})(?:[- ](?:{_ANY_UNIT}))?"
    rf"|{_TEENS.replace(' ', '|')}|{_ANY_UNIT}|(?:the\s)?(?:{_ORDINALS.replace(' ', '|')}))"
)
_RANK_OF_WORD = {"volume": 0, "book": 1, "part": 2}
_NUMBERED = re.compile(
    r"(?P<word>chapter|part|book|volume|section|act|scene|canto|stave|letter)\s+"
    rf"(?P<number>{_NUMBER})(?P<gap>\s*[.:;—–-]+\s*|\s+|$)(?P<title>.*)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?P<word>prologue|epilogue|preface|introduction|foreword|afterword|interlude|conclusion"
    r"|postscript|appendix)(?:(?P<gap>\s*[.:;—–-]+\s*)(?P<title>.*))?",
    re.IGNORECASE,
)
_CHINESE_NUMBERED = re.compile(
    r"第(?P<number>[0-9０-９零〇一二三四五六七八九十百千两廿卅]{1,8})(?P<word>[章回节節卷部篇集幕])"
    r"(?P<gap>[\s：:、.．·—-]*)(?P<title>.*)"
)
_CHINESE_NAMED = re.compile(
    r"(?P<word>序章|序言|序幕|序|前言|引子|引言|楔子|尾声|尾聲|后记|後記|终章|終章|番外|附录|附錄)"
    r"(?:(?P<gap>[\s：:、.．·—-]+)(?P<title>.*))?"
)
_CHINESE_RANK = {"卷": 1, "集": 1, "部": 2, "篇": 2}
_CHAPTER_RANK = 3
_CHINESE_STOP = re.compile(r"[，。！？；…,!?;]")
_SENTENCE_END = re.compile(r"[.!?。！？][\"'”’」』]*$")
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True, slots=True)
class Heading:
    """One recognised heading line. `rank` orders volume, book, part, chapter: 0 is outermost."""

    key: str  # kind and number, equal in a table of contents and at the chapter itself
    rank: int
    title: str  # what follows the number, "" when the line holds no more


def heading_of(line: str) -> Heading | None:
    """The heading that a line of spoken text is, or None for prose."""
    if len(line) > LONGEST_LINE:
        return None
    if (match := _NUMBERED.fullmatch(line)) or (match := _NAMED.fullmatch(line)):
        word, title = match["word"], match["title"] or ""
        number = match["number"] if "number" in match.re.groupindex else ""
        if not word[0].isupper() or (title and not _may_follow(match["gap"], title)):
            return None
        key = f"{word} {number}".lower()
        return Heading(key, _RANK_OF_WORD.get(word.lower(), _CHAPTER_RANK), title)
    if (match := _CHINESE_NUMBERED.fullmatch(line)) or (match := _CHINESE_NAMED.fullmatch(line)):
        title = match["title"] or ""
        if title and not is_title(title):
            return None
        key = line[: len(line) - len(title)].strip(" ：:、.．·—-\u3000")
        return Heading(key, _CHINESE_RANK.get(match["word"], _CHAPTER_RANK), title)
    return None


def is_title(line: str) -> bool:
    """Whether a line by itself could be a title: short, capitalised, not a sentence."""
    if not line.isascii() and not any(one.isupper() or one.islower() for one in line):
        return len(line) <= _LONGEST_CHINESE_TITLE and not _CHINESE_STOP.search(line)
    if len(line) > LONGEST_LINE or not any(one.isalpha() for one in line):
        return False
    if line.isupper():
        return True
    words = _LONG_WORD.findall(line)
    small = sum(word[0].islower() for word in words)
    starts_well = next(one for one in line if one.isalnum()).islower() is False
    return starts_well and not line.endswith((".", ",", ";", ":", "-")) and small * 3 <= len(words)


def goes_on(heading: Heading, rest: str) -> bool:
    """Whether `rest`, the further lines of a heading's paragraph, still belong to its title."""
    if not heading.title:
        return is_title(rest)
    if len(rest) > LONGEST_LINE or (heading.title.isupper() and not rest.isupper()):
        return False
    return rest.isupper() or not _SENTENCE_END.search(rest)


def _may_follow(gap: str, title: str) -> bool:
    """After a colon or full stop anything may be a title; after a space, what looks like one."""
    return bool(gap.strip()) or is_title(title)
