"""The simulated devices: what a batch costs, and the most one can carry. Knows no policy."""

from dataclasses import dataclass

SENTENCE_AUDIO_S = 6.0  # of an average sentence


@dataclass(frozen=True, slots=True)
class Device:
    """A device whose batches cost the same whatever the lengths of their sentences."""

    slots: int = 8
    base_s: float = 0.05
    per_sentence_s: float = 0.04

    def batch_s(self, size: int) -> float:
        """How long a batch of so many sentences takes."""
        return self.base_s + self.per_sentence_s * size

    @property
    def full_batch_s(self) -> float:
        """How long a full batch takes."""
        return self.batch_s(self.slots)

    @property
    def capacity_xrt(self) -> float:
        """What it renders when every batch is full: audio seconds per second. Load 1.0."""
        return self.slots * SENTENCE_AUDIO_S / self.full_batch_s


DEVICE = Device()
# What late bulk gets of a device must not depend on how fast it is, nor on how many it holds.
OTHER_DEVICES = {
    "batches_of_0.1_s": Device(base_s=0.02, per_sentence_s=0.01),
    "one_slot_of_0.03_s": Device(slots=1, base_s=0.0, per_sentence_s=0.03),
}
SLOTS = DEVICE.slots
FULL_BATCH_S = DEVICE.full_batch_s
CAPACITY_XRT = DEVICE.capacity_xrt
