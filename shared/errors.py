"""The failure tree, named by what the caller can do about it.

VoxfarmError
├── UsageError          the request is wrong: change it (4xx, exit 2)
│   ├── NotFoundError   no such job, voice, part ...
│   └── ConflictError   right request, wrong moment (state forbids it, key reused)
├── TransientError      nothing is wrong with the work: wait and try again; burns no attempt
│   ├── LedgerBusyError the SQL database is locked or away
│   ├── StoreError      the object store is away or refuses for now
│   ├── BrokerError     Redis is away
│   ├── CapacityError   the farm, or the tenant's share of it, takes no more just now
│   └── HostLostError   the engine host died or went silent under this utterance
└── FatalError          trying again will not help
    ├── UtteranceError  the engine refused this one utterance
    ├── LostAudioError  stored audio is gone or damaged: only speaking it again helps
    └── SetupError      the installation lacks something; the message says what mends it

Code decides by class, never by message text.
"""


class VoxfarmError(Exception):
    """Root of every error Voxfarm raises on purpose."""


class UsageError(VoxfarmError):
    """The request cannot be served as it stands.

    `code` is a stable kebab-case word for programs; `fields` adds machine-readable detail
    (for example the offset of the first unspeakable character).
    """

    def __init__(self, message: str, *, code: str = "bad-request", **fields: object) -> None:
        super().__init__(message)
        self.code = code
        self.fields = fields


class NotFoundError(UsageError):
    """The named thing does not exist (or is not this tenant's)."""

    def __init__(self, message: str, *, code: str = "not-found", **fields: object) -> None:
        super().__init__(message, code=code, **fields)


class ConflictError(UsageError):
    """The request is sound but the present state forbids it."""

    def __init__(self, message: str, *, code: str = "conflict", **fields: object) -> None:
        super().__init__(message, code=code, **fields)


class TransientError(VoxfarmError):
    """Infrastructure trouble: the same work may succeed later and no attempt is burned."""


class LedgerBusyError(TransientError):
    """The SQL database is locked beyond its busy timeout, or cannot be reached."""


class StoreError(TransientError):
    """The object store cannot be reached or failed this call."""


class BrokerError(TransientError):
    """Redis cannot be reached."""


class CapacityError(TransientError):
    """There is no room for this request now; there will be, after about `retry_after_s` seconds.

    `code` is a stable kebab-case word for programs; `fields` adds machine-readable detail.
    """

    def __init__(self, message: str, *, code: str, retry_after_s: float, **fields: object) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_s = retry_after_s
        self.fields = fields


class HostLostError(TransientError):
    """The engine host died or fell silent while this utterance was on its device.

    `companions` counts the other utterances that were there: with none, this one is the suspect.
    """

    def __init__(self, message: str = "", *, companions: int = 0) -> None:
        super().__init__(message)
        self.companions = companions


class FatalError(VoxfarmError):
    """Trying the same again will not help."""


class UtteranceError(FatalError):
    """The engine refused or failed this one utterance; its neighbours are unharmed."""


class LostAudioError(FatalError):
    """The store answers, and has not the audio that was committed: it is gone or damaged."""


class SetupError(FatalError):
    """The installation lacks something; the message names the command that mends it.

    `mend` is that command or change alone, for whoever lists it; empty when none is known.
    """

    def __init__(self, message: str, *, mend: str = "") -> None:
        super().__init__(message)
        self.mend = mend
