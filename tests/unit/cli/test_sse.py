"""Server-sent events are read as the standard says."""

import json

from hypothesis import given
from hypothesis import strategies as st

from cli.sse import Event, parse_events


def test_events_end_at_blank_lines_and_comments_are_read_over() -> None:
    lines = [
        ": hello",
        "",
        "event: progress",
        "id: 7",
        'data: {"a":',
        "data: 1}",
        "",
        "data:x",
        "",
        "event: end",
        "data: cut off",
    ]
    assert list(parse_events(lines)) == [Event("progress", '{"a":\n1}'), Event("message", "x")]


def test_an_event_without_data_is_none() -> None:
    assert list(parse_events(["event: end", "", "data: y", ""])) == [Event("message", "y")]


@given(st.lists(st.tuples(st.sampled_from(["progress", "end"]), st.text())))
def test_whatever_json_is_sent_comes_out_again(sent: list[tuple[str, str]]) -> None:
    lines = list[str]()
    for kind, text in sent:
        lines += [": beat", f"event: {kind}", f"data: {json.dumps(text)}", ""]
    assert [(e.kind, json.loads(e.data)) for e in parse_events(lines)] == sent
