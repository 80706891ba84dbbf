"""Rendering one segment: claim, ask the engine host, encode, store, commit.

Whatever goes wrong ends in the ledger, never in Celery: the task itself always succeeds, and a
process that dies between any two lines leaves a lease that runs out.
"""

import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from shared.content import seed_for
from shared.crashpoints import crash_point
from shared.errors import (
    HostLostError,
    SetupError,
    TransientError,
    UtteranceError,
    VoxfarmError,
)
from shared.farm import Farm
from shared.ledger import blame, giving_up, segments, taking_over
from shared.ledger.segments import Claim
from shared.messages import MESSAGE_VERSION, SynthMessage
from shared.tiers import Tier
from worker.assembly.segment_audio import encode_segment
from worker.engines.base import Utterance
from worker.host.link import HostLink
from worker.settling import Outcome, Rendering, settler
from worker.solitude import Solitude, try_canary
from worker.watching import JobWatch

log = logging.getLogger(__name__)


class ClaimLostError(VoxfarmError):
    """The job ended or another worker holds the segment: stop, and change nothing."""


class JobPausedError(VoxfarmError):
    """The job was paused before the host began the segment: it waits for the job to go on."""


@dataclass(slots=True)
class _Lease:
    """Renews a claim when its host shows progress, at most three times in a lease's length.

    Gives it up as soon as its job is known to have ended, or to be paused while the host has not
    begun it, so that the host drops it.
    """

    farm: Farm
    claim: Claim
    watch: JobWatch
    renewed_at: float = field(default_factory=time.monotonic)

    def progress(self) -> None:
        self.look()
        lease_s = self.farm.settings.lease_s
        if time.monotonic() - self.renewed_at < lease_s / 3:
            return
        self.renew()

    def look(self) -> None:
        if self.watch.has_ended(self.claim.job_id):
            raise ClaimLostError

    def wait(self) -> None:
        """Keep the claim while others finish: they end by themselves, or are given up."""
        self.look_for_pause()
        self.progress()

    def look_for_pause(self) -> None:
        if self.watch.is_paused(self.claim.job_id):
            raise JobPausedError

    def renew(self) -> None:
        claim, lease_s = self.claim, self.farm.settings.lease_s

        def extend(conn: Connection) -> bool:
            where = (claim.job_id, claim.index, claim.token)
            mine = segments.renew(conn, *where, lease_s=lease_s)
            if not mine:
                blame.forgive(conn, claim)
            return mine

        if not self.farm.database.transact(extend):
            raise ClaimLostError
        self.renewed_at = time.monotonic()

    def stand_alone(self, *, alone: bool) -> None:
        claim, lease_s = self.claim, self.farm.settings.lease_s
        if not self.farm.database.transact(
            lambda conn: blame.stand_alone(conn, claim, alone=alone, lease_s=lease_s)
        ):
            self.renew()  # which says that it is lost
        self.renewed_at = time.monotonic()


class Renderer:
    """Carries out sentence messages on the engine hosts of this node, by engine name."""

    def __init__(self, farm: Farm, hosts: Mapping[str, HostLink], watch: JobWatch) -> None:
        self.farm = farm
        self.hosts = hosts
        self.watch = watch
        self._settler = settler(farm)
        self._solitude = Solitude()

    def render(self, message: SynthMessage) -> None:
        """Render the segment of a message, unless the message is stale. Never raises."""
        if message.v > MESSAGE_VERSION:
            log.warning("message version %d is newer than this worker", message.v)
            return
        with self._solitude.among_others():
            self._render(message)

    def _render(self, message: SynthMessage) -> None:
        try:
            claim = self.farm.database.transact(
                lambda conn: segments.claim(
                    conn,
                    message.job_id,
                    message.index,
                    message.dispatch_no,
                    lease_s=self.farm.settings.lease_s,
                )
            )
        except TransientError as error:  # the scheduler will find the dispatch unclaimed
            log.warning("cannot claim %s/%d: %s", message.job_id, message.index, error)
            return
        if claim is None:
            return
        crash_point("segment.claimed")
        self._carry_out(claim)

    def _carry_out(self, claim: Claim) -> None:
        try:
            outcome = self._produce(claim)
        except ClaimLostError:
            outcome = Outcome(None, window_is_low=True)  # most likely its job was cancelled
        except JobPausedError:
            outcome = self._put_back(claim)
        except HostLostError as error:
            # With companions on the device nobody knows whose fault it was: next time alone.
            alone = error.companions == 0
            outcome = self._give_back(claim, error, crashed=alone, suspect=not alone)
        except (
            TransientError,
            SetupError,
        ) as error:  # not the sentence's fault, nor its neighbours'
            outcome = self._give_back(claim, error)
        except UtteranceError as error:
            outcome = self._give_back(claim, error, crashed=True)
        except Exception as error:
            log.exception("segment %s/%d failed", claim.job_id, claim.index)
            outcome = self._give_back(claim, error, crashed=True)
        self._follow_up(claim, outcome)

    def _produce(self, claim: Claim) -> Outcome:
        if claim.follows and (outcome := self._take_over(claim)) is not None:
            return outcome
        lease = _Lease(self.farm, claim, self.watch)
        host = self.hosts.get(claim.engine)
        if host is None:
            raise TransientError(f"this node does not run the engine {claim.engine}")
        patient = claim.tier != Tier.RUSH
        if claim.suspect:  # companions are not kept waiting while it waits to be alone
            rendering = self._speak_alone(host, lease)
            with self._settler.on_the_way(claim.job_id) as settle:
                return settle(rendering, patient=patient)
        with self._settler.on_the_way(claim.job_id) as settle:
            return settle(self._speak(host, lease), patient=patient)

    def _speak_alone(self, host: HostLink, lease: _Lease) -> Rendering:
        """Speak a suspect with nothing beside it, in this process and on the device.

        If it takes us down, its note remains, and says that it stood alone. A phrase that is known
        to be good goes before, so that a broken node dies of that, and blames nobody's text.
        """
        with self.watch.watching(lease.claim.job_id), self._solitude.alone(lease.wait):
            try_canary(host, on_progress=lease.progress)
            lease.stand_alone(alone=True)
            rendering = self._speak(host, lease)
            lease.stand_alone(alone=False)  # a store that stands still is not its fault
        return rendering

    def _speak(self, host: HostLink, lease: _Lease) -> Rendering:
        claim = lease.claim
        with self.watch.watching(claim.job_id):
            samples = host.synthesize(
                _utterance(claim),
                on_progress=lease.progress,
                on_idle=lease.look,
                on_waiting=lease.look_for_pause,
                alone=claim.suspect,
            )
        crash_point("segment.rendered", claim.text)
        rate_hz = host.info().sample_rate_hz
        return Rendering(claim, encode_segment(samples, rate_hz), len(samples), rate_hz)

    def _take_over(self, claim: Claim) -> Outcome | None:
        """Take audio that another job has had made meanwhile. None: it must be spoken."""

        def commit(conn: Connection) -> Outcome | None:
            taken = taking_over.take_over(conn, claim)
            if taken is None:
                return None
            low = self.farm.dispatcher.is_low(conn, Tier(claim.tier))
            return Outcome(taken.step_id, window_is_low=low)

        return self.farm.database.transact(commit)

    def _put_back(self, claim: Claim) -> Outcome:
        """Undo the claim; others may have the room in the window."""

        def undo(conn: Connection) -> Outcome:
            segments.put_back(conn, claim.job_id, claim.index, claim.token)
            return Outcome(None, self.farm.dispatcher.is_low(conn, Tier(claim.tier)))

        try:
            return self.farm.database.transact(undo)
        except TransientError:  # then the lease runs out
            return Outcome(None, window_is_low=False)

    def _give_back(
        self, claim: Claim, error: Exception, *, crashed: bool = False, suspect: bool = False
    ) -> Outcome:
        """Release the claim; crashed too often, the segment falls back or is quarantined.

        What the engine did counts even when the lease ran out meanwhile: a hang shows no progress.
        """
        reason = f"{type(error).__name__}: {error}"
        log.warning("segment %s/%d goes back: %s", claim.job_id, claim.index, reason)

        def decide(conn: Connection) -> Outcome:
            crashes = claim.crashes
            if crashed or suspect:
                held = blame.testify(conn, claim, crashed=crashed, suspect=suspect)
                if held is None:
                    return Outcome(None, window_is_low=False)
                if held.crashes >= self.farm.settings.max_attempts:
                    return _give_up(conn, claim, held.token, reason)
                crashes = held.crashes
            delay_s = random.uniform(0.2, 1.0) * 2**crashes  # noqa: S311 - jitter
            where = (claim.job_id, claim.index, claim.token)
            mine = segments.release(conn, *where, delay_s=delay_s, error=reason)
            if not (mine or crashed or suspect):
                blame.forgive(conn, claim)
            return Outcome(None, window_is_low=True)

        try:
            return self.farm.database.transact(decide)
        except TransientError:  # then the lease runs out
            return Outcome(None, window_is_low=False)

    def _follow_up(self, claim: Claim, outcome: Outcome) -> None:
        """Send what the commit made ready; the scheduler does it if we cannot."""
        try:
            if outcome.step_id is not None:
                self.farm.dispatcher.send_steps()
            if outcome.window_is_low:
                self.farm.dispatcher.fill(Tier(claim.tier))
        except TransientError as error:
            log.warning("left to the scheduler: %s", error)


def _give_up(conn: Connection, claim: Claim, token: int, reason: str) -> Outcome:
    given_up = giving_up.give_up(conn, claim.job_id, claim.index, token, reason)
    return Outcome(given_up.step_id, window_is_low=True)


def _utterance(claim: Claim) -> Utterance:
    return Utterance(
        id=f"{claim.job_id}.{claim.index}.{claim.token}",
        text=claim.text,
        voice=claim.voice,
        language=claim.language,
        speed=claim.speed,
        seed=seed_for(claim.content_key, claim.take),
        tier=claim.tier,
        due_at=claim.due_at,
    )
