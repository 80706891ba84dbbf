"""What is measured of an engine at one batch size and text length. Plain data."""

from pydantic import BaseModel, ConfigDict, Field


class Figures(BaseModel):
    """The batch of `batch` utterances of about `chars` characters; times are medians.

    A `mixed` batch has members of all the lengths that are measured, the longest of `chars`.
    `difference_db` is the worst member's distance from what it sounds like alone (root mean square
    of the difference, relative to the audio): None when equal bit for bit, 0 when the lengths
    differ or a sample is no number. `fault` names what the engine raised; the other figures then
    mean nothing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch: int
    chars: int
    mixed: bool = False
    batch_s: float = Field(default=0.0, description="from admission to the last chunk")
    first_chunk_s: float = 0.0
    audio_s: float = 0.0
    memory_mb: float = Field(default=0.0, description="of the process, its device included")
    difference_db: float | None = None
    fault: str = ""

    @property
    def x_real_time(self) -> float:
        """Seconds of audio for each second of work."""
        return self.audio_s / self.batch_s if self.batch_s else 0.0
