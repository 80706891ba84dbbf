"""Where objects live in the bucket. The one place where object keys are made.

Segment audio is immutable: an object is named by the fencing token of its first segment, so a late
writer can never replace the audio that a newer token committed.
"""

PROBE = "probe"  # overwritten now and then, always alike, to see whether a store works


def segment_audio(tenant: str, job_id: str, index: int, token: int, *, together: int) -> str:
    """Key of the audio of a segment and of those that ended with it, `together` in all (FLAC).

    How many there are is in the name: one that is stored alone, because the others' company came
    to nothing, must not replace what was stored then.
    """
    return f"t/{tenant}/jobs/{job_id}/segments/{index:07d}.{token}x{together}.flac"


def deliverable(tenant: str, job_id: str, step_id: str, token: int, filename: str) -> str:
    """Key of a file the user gets, by the claim that wrote it: a step and its token."""
    return f"t/{tenant}/jobs/{job_id}/out/{step_id}.{token}/{filename}"


def job_prefix(tenant: str, job_id: str) -> str:
    """Prefix of everything stored for a job."""
    return f"t/{tenant}/jobs/{job_id}/"
