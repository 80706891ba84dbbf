"""The assemble step: stitch, encode and upload one part.

A part is assembled while others render. Everything streams: segments are fetched a little ahead,
decoded, stitched and encoded into an upload; nothing is kept on disk.
"""

import hashlib
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator

import numpy as np

from shared import object_keys
from shared.crashpoints import crash_point
from shared.errors import FatalError, LostAudioError, StoreError
from shared.farm import Farm
from shared.jobs import AudioFormat, JobSpec
from shared.ledger import deliverables, encodings, jobs, renderings
from shared.ledger.deliverables import Deliverable, PartCommit, PartRecord
from shared.ledger.steps import StepClaim
from shared.ledger.tables import WHOLE_JOB
from worker.assembly.encoders import CONTENT_TYPES, encoder_for
from worker.assembly.multipart import write_audio
from worker.assembly.part_key import part_key
from worker.assembly.stitch import Clip, Stitcher
from worker.closing import close_job
from worker.fetching import fetched
from worker.healing import heal, is_worth_a_doubt
from worker.step_progress import StepLease, StepLostError, drop_unknown, rows_of
from worker.stored_audio import samples_of
from worker.uploading import upload_to

log = logging.getLogger(__name__)


def run_assemble(farm: Farm, claimed: StepClaim) -> None:
    """Assemble one part, or close the job when the step is the whole job's."""
    try:
        if claimed.part == WHOLE_JOB:
            close_job(farm, claimed)
        else:
            _assemble_part(farm, claimed)
    except StepLostError:
        log.info("step %s of job %s is another's now", claimed.id, claimed.job_id)


def _assemble_part(farm: Farm, claimed: StepClaim) -> None:
    tenant, spec = farm.database.read(lambda conn: jobs.read_spec(conn, claimed.job_id))
    parts = farm.database.read(lambda conn: deliverables.parts(conn, claimed.job_id))
    name = _file_name(parts[claimed.part], len(parts), spec)
    lease = StepLease(farm, claimed)
    key = _part_key(farm, claimed, spec, lease.progress)
    committed = None
    if spec.reuse:
        committed = _reuse(farm, claimed, tenant, key, name=name, format_=spec.format)
    if committed is None:
        object_key = object_keys.deliverable(
            tenant, claimed.job_id, claimed.id, claimed.token, name
        )
        try:
            file = _make(farm, claimed, spec, object_key, name=name, lease=lease)
        except (LostAudioError, StoreError) as error:
            if isinstance(error, StoreError) and not is_worth_a_doubt(claimed):
                raise
            heal(farm, claimed, error, tier=spec.tier, progress=lease.progress)
            return
        committed = farm.database.transact(
            lambda conn: deliverables.commit_part(conn, claimed, file, part_key=key)
        )
        if not committed.won:
            drop_unknown(farm, file.object_key)
    crash_point("assemble.committed")
    if committed.step_id is not None:
        farm.dispatcher.send_steps()


def _part_key(farm: Farm, claimed: StepClaim, spec: JobSpec, progress: Callable[[], None]) -> str:
    return part_key(
        ((r.sha256, r.pause_after_s) for r in rows_of(farm, claimed, progress, claimed.part)),
        format_=spec.format,
        in_rate_hz=spec.engine_rate_hz,
        out_rate_hz=spec.sample_rate_hz,
    )


def _reuse(
    farm: Farm, claimed: StepClaim, tenant: str, key: str, *, name: str, format_: AudioFormat
) -> PartCommit | None:
    """Commit the part with a file that another job's assembly made. None: there is none."""
    found = farm.database.read(lambda conn: encodings.find(conn, tenant, key))
    if found is None:
        return None
    there = farm.store.stat(found.object_key)
    if there is None or there.size_bytes != found.size_bytes:
        log.warning("the store has lost or damaged %s", found.object_key)
        farm.database.transact(lambda conn: renderings.distrust(conn, [found.object_key]))
        return None
    return farm.database.transact(
        lambda conn: deliverables.reuse_part(
            conn,
            claimed,
            found,
            name=name,
            format_=format_,
            content_type=CONTENT_TYPES[format_],
        )
    )


def _make(
    farm: Farm,
    claimed: StepClaim,
    spec: JobSpec,
    key: str,
    *,
    name: str,
    lease: StepLease,
) -> Deliverable:
    """Stitch, encode and upload the part's file."""
    stitcher = Stitcher(in_rate_hz=spec.engine_rate_hz, out_rate_hz=spec.sample_rate_hz)
    with upload_to(farm.store, key, CONTENT_TYPES[spec.format], lease.waiting) as upload:
        size_bytes = write_audio(
            stitcher.blocks(_clips(farm, claimed, lease.progress)),
            encoder_for(spec.format, spec.sample_rate_hz),
            upload,
        )
    crash_point("assemble.stored")
    return Deliverable(
        part=claimed.part,
        kind="audio",
        name=name,
        format=spec.format,
        content_type=CONTENT_TYPES[spec.format],
        object_key=key,
        size_bytes=size_bytes,
        sha256=upload.sha256 or _sha256_of_stored(farm, key, size_bytes, lease.progress),
        samples=stitcher.total_samples,
        rate_hz=spec.sample_rate_hz,
        timeline=[
            [p.index, p.start_sample, min(p.end_sample, stitcher.total_samples)]
            for p in stitcher.placed
        ],
    )


def _clips(farm: Farm, claimed: StepClaim, progress: Callable[[], None]) -> Iterator[Clip]:
    """The part's clips in order, each checked against its hash. Raises LostAudioError."""
    rows = rows_of(farm, claimed, progress, claimed.part)
    for row, data in fetched(farm.store, rows, progress):
        progress()
        samples = _NOTHING if data is None else samples_of(row, data)
        yield Clip(row.index, samples, row.pause_after_s)


_NOTHING = np.zeros(0, np.float32)


def _sha256_of_stored(farm: Farm, key: str, size_bytes: int, progress: Callable[[], None]) -> str:
    """Read a large file back: it cannot be hashed as it is written, since its head comes last."""
    digest, total = hashlib.sha256(), 0
    for piece in farm.store.stream(key):
        progress()
        digest.update(piece)
        total += len(piece)
    if total != size_bytes:
        raise FatalError(f"the store holds {total} bytes of a file of {size_bytes}")
    return digest.hexdigest()


def _file_name(part: PartRecord, parts: int, spec: JobSpec) -> str:
    """`audio.mp3` for a single part, `03-the-title.mp3` for a chapter: safe on any file system."""
    if parts == 1:
        return f"audio.{spec.format}"
    plain = unicodedata.normalize("NFKC", part.title).lower()
    slug = re.sub(r"[^\w]+", "-", plain).strip("-_")[:60].strip("-_")
    number = str(part.index + 1).zfill(max(2, len(str(parts))))
    return f"{number}-{slug}.{spec.format}" if slug else f"{number}.{spec.format}"
