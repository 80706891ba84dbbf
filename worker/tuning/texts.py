"""Texts to measure an engine with: of a wanted length, in its language, none like another. Pure."""

LEAST_CHARS = 8  # a shorter one may hold no whole word

_ENGLISH = (
    "The harbour was quiet when the last boat came in and the gulls had settled on the wall. "
    "Nobody spoke of the storm, although every one of them had seen it rise beyond the islands. "
    "In the morning they would mend the nets, count the oars and begin again, as they always had. "
)
_CHINESE = (
    "清晨的港口很安静，最后一条船已经靠岸，海鸥停在石墙上。没有人提起昨夜的风暴，"  # noqa: RUF001 - its own comma
    "虽然他们都看见它从群岛那边升起。天亮以后他们会修补渔网，清点船桨，像往常一样重新开始。"  # noqa: RUF001 - its own comma
)
_NUMBERS = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10. "


def text_of(language: str, chars: int, number: int) -> str:
    """The `number`-th text of about `chars` characters, never more; it ends with a full stop.

    `chars` is `LEAST_CHARS` or more.
    """
    source = {"en": _ENGLISH, "zh": _CHINESE}.get(language, _NUMBERS)
    start = number * 29 % len(source)
    rolled = (source[start:] + source) * (1 + chars // len(source))
    if language != "zh":
        rolled = rolled.partition(" ")[2].lstrip()
    stop = "。" if language == "zh" else "."
    cut = rolled[: max(1, chars - 1)]
    if language != "zh" and " " in cut:
        cut = cut.rpartition(" ")[0]
    return cut.rstrip(" ,.，。") + stop  # noqa: RUF001 - its own comma
