"""What a client may ask of webhooks, and whether its URL may be one. Looks nothing up."""

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue
from pydantic_core import PydanticCustomError

from api.reading import read_as
from shared.addresses import AddressPolicy
from shared.errors import UsageError
from shared.settings import Settings
from shared.webhook_url import checked_webhook_url, read_target
from shared.webhooks import MAX_URL_CHARS, EventType

EXAMPLE: dict[str, JsonValue] = {"url": "https://example.org/voxfarm", "events": ["job.completed"]}
_LOOPBACK = ipaddress.IPv4Address("127.0.0.1")


def _each_once(events: list[str]) -> list[str]:
    if len(set(events)) != len(events):
        raise PydanticCustomError("event_twice", "An event is named twice")
    return events


Events = Annotated[
    list[Literal["job.completed", "job.partial", "job.failed", "job.cancelled", "job.progress"]],
    Field(min_length=1, description="what it is told; default: each end of a job"),
    AfterValidator(_each_once),
]


class WebhookWish(BaseModel):
    """An address that is to be told of jobs."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, json_schema_extra={"example": EXAMPLE}
    )

    url: str = Field(min_length=1, max_length=MAX_URL_CHARS, description="https, without a user")
    events: Events = Field(default=["job.completed", "job.partial", "job.failed", "job.cancelled"])

    @property
    def event_types(self) -> tuple[EventType, ...]:
        """The events as words of the farm."""
        return tuple(map(EventType, self.events))


def read_wish(body: bytes) -> WebhookWish:
    """The wish in a request body. Raises UsageError."""
    return read_as(WebhookWish, body)


def checked_url(url: str, settings: Settings) -> str:
    """The URL in its normal form. Raises UsageError `bad-webhook-url`.

    Refuses what can be told from the text alone; a name is looked up whenever it is sent to.
    """
    checked = checked_webhook_url(url, allow_http=settings.webhook_allow_http)
    target = read_target(checked, allow_http=settings.webhook_allow_http)
    name = target.host.rstrip(".")
    address = target.address
    if address is None and (name == "localhost" or name.endswith(".localhost")):
        address = _LOOPBACK
    policy = AddressPolicy(settings.webhook_allowed_networks)
    if address is not None and not policy.permits(address):
        raise UsageError(
            "a webhook leads to a public address, or to a network that the farm's operator allows",
            code="bad-webhook-url",
            field="webhook.url",
        )
    return checked
