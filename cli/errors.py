"""Errors that only a client or a supervisor can meet, added to the tree of `shared.errors`.

TransientError
└── FarmAwayError         no farm answers at the address (exit 3)
ConflictError
└── AlreadyRunningError   this data folder already has a farm (exit 4)
FatalError
├── JobFailedError        the job ended without everything that was asked for
│   └── JobPartialError   files were delivered, but with named gaps (exit 5)
├── TransferError         a deliverable could not be brought here whole
└── FarmStoppedError      the farm gave up: a process died again and again
"""

from shared.errors import ConflictError, FatalError, TransientError


class FarmAwayError(TransientError):
    """No farm answered, for longer than the caller was willing to wait."""


class AlreadyRunningError(ConflictError):
    """Another farm holds this data folder; `fields` names its pid and URL."""


class JobFailedError(FatalError):
    """The job failed, was cancelled or expired; the message says which and why."""


class JobPartialError(JobFailedError):
    """The job delivered its files with gaps; the manifest names them."""


class TransferError(FatalError):
    """A download could not be completed: wrong checksum, full disk, refused URL."""


class FarmStoppedError(FatalError):
    """The supervisor stopped the farm because a child would not stay alive."""
