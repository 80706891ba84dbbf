"""The simulated device: what a batch costs, and the most it can carry. Knows no policy."""

SLOTS = 8
BASE_S = 0.05
PER_SENTENCE_S = 0.04
SENTENCE_AUDIO_S = 6.0  # of an average sentence


def batch_s(size: int) -> float:
    """How long a batch of so many sentences takes, whatever their lengths."""
    return BASE_S + PER_SENTENCE_S * size


FULL_BATCH_S = batch_s(SLOTS)
# Load 1.0 is what one device renders when every batch is full: audio seconds per second.
CAPACITY_XRT = SLOTS * SENTENCE_AUDIO_S / FULL_BATCH_S
