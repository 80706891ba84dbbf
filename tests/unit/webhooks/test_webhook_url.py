"""Which texts may be a webhook's URL."""

import pytest

from shared.errors import UsageError
from shared.webhook_url import checked_webhook_url, read_target

REFUSED = [
    "",
    " https://h.example/",
    "h.example/x",
    "//h.example/x",
    "http://h.example/x",
    "ftp://h.example/x",
    "file:///etc/passwd",
    "gopher://h.example:25/x",
    "https:///x",
    "https://",
    "https://.../",
    "https://user:pw@h.example/x",
    "https://user@h.example/x",
    "https://h.example\\@evil.example/",
    "https://h.example/\\x",
    "https://h.example/x#part",
    "https://h.example:22/",
    "https://h.example:25/",
    "https://h.example:0/",
    "https://h.example:1023/",
    "https://h.example:65536/",
    "https://h.example:99999/",
    "https://h.example\r\nX-Evil: 1/",
    "https://h\x00.example/",
    "https://[fe80::1%25eth0]/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0x7f000001/",
    "https://127.1/",
    "https://0177.0.0.1/",
    "https://127.0.0.1./",
    "https://h.example/" + "x" * 2_048,
    "https://h.example/" + "é" * 1_000,
    "https://" + "a" * 254 + "/",
    "https://a..b/",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_plain_https_url_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        checked_webhook_url(text, allow_http=False)
    assert refused.value.code == "bad-webhook-url"
    assert "evil" not in str(refused.value)
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "host", "port", "target"),
    [
        ("https://h.example", "h.example", 443, b"/"),
        ("HTTPS://H.Example:443/A?b=c", "h.example", 443, b"/A?b=c"),
        ("https://h.example:8443/x", "h.example", 8443, b"/x"),
        ("https://bücher.example/é", "xn--bcher-kva.example", 443, b"/%C3%A9"),
        ("https://[2606:4700::1111]/", "2606:4700::1111", 443, b"/"),
        ("https://1.1.1.1/x", "1.1.1.1", 443, b"/x"),
        ("https://h.example/%0d%0aX:1", "h.example", 443, b"/%0d%0aX:1"),
    ],
)
def test_a_url_is_taken_apart_for_the_wire(text: str, host: str, port: int, target: bytes) -> None:
    checked = checked_webhook_url(text, allow_http=False)
    assert checked_webhook_url(checked, allow_http=False) == checked  # a normal form
    read = read_target(checked, allow_http=False)
    assert (read.scheme, read.host, read.port, read.target) == ("https", host, port, target)


def test_plain_http_is_for_farms_that_allow_it() -> None:
    assert read_target("http://h.example/", allow_http=True).port == 80
