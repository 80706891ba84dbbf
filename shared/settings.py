"""Every setting of every process, read once from `VOXFARM_*` in its composition root.

Nothing here is global: a process builds one `Settings` and passes it on.
"""

import json
from pathlib import Path
from typing import Annotated, Self

from platformdirs import user_data_path
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    IPvAnyNetwork,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from shared.jobs import DEFAULT_RETENTION_S, LEAST_RETENTION_S, MOST_RETENTION_S
from shared.tiers import Tier

MaxBatch = Annotated[int, Field(ge=1, le=8)]


class TierSettings(BaseModel):
    """How one tier is served."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    first_audio_s: float = Field(description="target from submit to the first segment's audio")
    per_1000_chars_s: float = Field(description="target time per 1,000 characters")
    floor_s: float = Field(description="least completion target, whatever the length")
    max_batch: MaxBatch = Field(default=8, description="utterances in one batch")
    max_wait_s: float = Field(default=0.05, ge=0, description="longest wait to fill a batch")
    max_batch_by_engine: dict[str, MaxBatch] = Field(
        default_factory=dict,
        description="`max_batch` of single engines, by name; `voxfarm tune` adds its own",
    )

    def max_batch_of(self, engine: str) -> int:
        """The most utterances that this engine gets in one batch of the tier."""
        return self.max_batch_by_engine.get(engine, self.max_batch)


DEFAULT_TIERS: dict[Tier, TierSettings] = {
    Tier.RUSH: TierSettings(
        first_audio_s=2, per_1000_chars_s=10, floor_s=15, max_batch=4, max_wait_s=0.0
    ),
    Tier.STANDARD: TierSettings(first_audio_s=30, per_1000_chars_s=60, floor_s=120),
    Tier.BULK: TierSettings(first_audio_s=3600, per_1000_chars_s=600, floor_s=4 * 3600),
}


TIERS_FILE = "tiers.json"


class Settings(BaseSettings):
    """Settings of a Voxfarm process, from the environment (prefix `VOXFARM_`)."""

    model_config = SettingsConfigDict(env_prefix="VOXFARM_", extra="ignore", frozen=True)

    data_dir: Path = Field(
        default_factory=lambda: user_data_path("voxfarm", appauthor=False),
        description="folder of the embedded farm; cluster processes keep nothing there",
    )
    database_url: str = Field(
        default="", description="SQLAlchemy URL; empty: SQLite file voxfarm.db in data_dir"
    )
    redis_url: str = Field(
        default="redis://127.0.0.1:6379/0",
        description="Redis or Valkey database that belongs to this farm alone",
    )
    s3_endpoint: str = Field(default="127.0.0.1:9000", description="host:port, no scheme")
    s3_public_endpoint: str = Field(
        default="", description="host:port that clients use for presigned URLs; empty: s3_endpoint"
    )
    s3_secure: bool = Field(default=False, description="speak TLS to the store")
    s3_region: str = Field(default="us-east-1", description="region that requests are signed for")
    s3_bucket: str = Field(default="voxfarm", description="made by the scheduler if absent")
    s3_access_key: str = Field(default="voxfarm", description="access key of the store")
    s3_secret_key: SecretStr = Field(
        default=SecretStr("voxfarm"), description="secret key of the store"
    )
    farm_secret: SecretStr = Field(
        default=SecretStr(""),
        description="root secret of content keys; empty: farm-secret file in data_dir",
    )

    api_host: str = Field(default="127.0.0.1", description="address the API listens on")
    api_port: int = Field(default=8080, description="port the API listens on; 0: any free one")
    max_body_bytes: int = Field(default=32 * 1024 * 1024, description="larger bodies: 413")
    max_job_chars: int = Field(default=5_000_000, description="longer texts: 413")
    max_parts: int = Field(default=2_000, description="chapters in one job")
    max_metadata_bytes: int = Field(default=8_192, description="a job's metadata, as JSON")
    presign_s: int = Field(default=3_600, description="life of presigned URLs, seconds")
    allow_testing_engines: bool = Field(
        default=False, description="let jobs name engines that are meant for tests"
    )
    allow_unauthenticated: bool = Field(
        default=False, description="serve a non-loopback address although nobody is authenticated"
    )
    local_key: SecretStr = Field(
        default=SecretStr(""),
        description="an API key of the tenant `default` that is not in the ledger; "
        "`voxfarm up` sets it from its data folder, for the commands on this machine",
    )
    requests_per_s: int = Field(
        default=100, ge=0, description="requests of one tenant, per API process; 0: no limit"
    )
    refuse_when_full: bool = Field(
        default=True,
        description="refuse rush and standard jobs that would miss their tier's promise (503)",
    )
    bulk_backlog_audio_s: float = Field(
        default=3_600_000.0,
        gt=0,
        description="most bulk audio that may wait, in seconds; further bulk jobs: 503",
    )

    public_url: str = Field(
        default="",
        description="address of the API as clients see it, for the links in webhooks; "
        "empty: paths only",
    )
    webhook_allow_http: bool = Field(default=False, description="let webhooks be sent without TLS")
    webhook_allowed_networks: tuple[IPvAnyNetwork, ...] = Field(
        default=(),
        description="networks that are not public but may be sent to, as CIDRs; whoever may submit "
        "a job can then have them called",
    )
    webhook_ca_file: str = Field(
        default="", description="PEM file of certificate authorities trusted besides the usual ones"
    )
    webhook_timeout_s: float = Field(
        default=15.0, gt=0, description="a receiver has this long, from look-up to answer"
    )
    webhook_retry_s: tuple[float, ...] = Field(
        default=(0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400),
        min_length=1,
        description="waits before each try of a delivery, seconds; as many tries as waits",
    )
    webhook_retry_after_max_s: float = Field(
        default=3_600.0, ge=0, description="most that a receiver's Retry-After can ask for"
    )
    webhook_hold_s: float = Field(
        default=5.0,
        gt=0,
        description="a webhook that failed five times in a row is left alone for this long, then "
        "for twice as long, and so on",
    )
    webhook_hold_max_s: float = Field(default=300.0, gt=0, description="and never longer than this")
    webhook_concurrency: int = Field(
        default=4, ge=1, description="deliveries at once to one webhook that answers well"
    )
    webhook_threads: int = Field(
        default=32, ge=4, description="deliveries at once of one deliver worker"
    )
    webhook_window: int = Field(
        default=64, ge=4, description="deliveries handed out at once, on the whole farm"
    )
    webhook_progress_s: float = Field(
        default=60.0, gt=0, description="time between two progress events of a job"
    )
    webhook_overlap_s: float = Field(
        default=86_400.0, ge=0, description="a webhook's former secret still signs for this long"
    )
    webhook_log_s: float = Field(
        default=30 * 86_400.0, gt=0, description="events and their deliveries are kept this long"
    )

    engine_options: dict[str, dict[str, object]] = Field(
        default_factory=dict, description="options passed to an engine, by engine name (JSON)"
    )
    engines: tuple[str, ...] = Field(default=("hibari",), description="engines a node runs")
    default_engine: str = Field(default="hibari", description="for jobs that name none")
    nodes: int = Field(default=0, description="nodes of the embedded farm; 0: one per CPU core")
    cpu_workers: int = Field(default=1, description="processes of the cpu worker")
    lease_s: float = Field(default=15.0, gt=0, description="a claim without progress lasts this")
    visibility_timeout_s: float = Field(
        default=20.0,
        description="what a killed worker held comes back to the queue after this; above lease_s",
    )
    host_silence_s: float = Field(
        default=60.0,
        description="an engine host silent this long under work is killed; sooner, but not before "
        "10 s, one whose step takes 20 times the longest of those before it",
    )
    host_max_batches: int = Field(
        default=0, ge=0, description="an engine host is renewed after so many batches; 0: never"
    )
    host_max_growth_mb: float = Field(
        default=0.0,
        ge=0,
        description="an engine host is renewed when grown by so many megabytes; 0: never",
    )
    window_factor: float = Field(
        default=2.5, ge=1, description="window = factor * slots, of standard and bulk together"
    )
    window_factor_padded: float = Field(
        default=6.0, ge=1, description="the same for engines whose batches are padded"
    )
    window_min: int = Field(default=16, ge=1, description="least window of a tier, in segments")
    commit_most: int = Field(
        default=8, ge=1, le=64, description="sentences stored in one object and committed together"
    )
    commit_wait_s: float = Field(
        default=0.5,
        ge=0,
        description="a finished sentence waits so long for others to be committed with; "
        "rush never waits",
    )
    step_window: int = Field(
        default=1, ge=1, description="steps of each kind that are sent ahead of the workers"
    )
    redispatch_after_s: float = Field(
        default=5.0, description="a dispatch is not suspected lost before this age"
    )
    scheduler_period_s: float = Field(default=1.0, description="time between its rounds")
    max_attempts: int = Field(
        default=3,
        description="crashes alone before quarantine, losses of stored audio before a job fails",
    )
    retention_s: int = Field(
        default=DEFAULT_RETENTION_S,
        ge=LEAST_RETENTION_S,
        le=MOST_RETENTION_S,
        description="files and text of an ended job are kept so long, unless it says otherwise",
    )
    reuse_s: float = Field(
        default=7 * 86_400.0,
        ge=0,
        description="audio of expired jobs may still be reused for so long; "
        "0: it goes with the last job that holds it",
    )
    delete_grace_s: float = Field(
        default=600.0,
        ge=0,
        description="audio that nobody needs any more is deleted after this, "
        "so that nobody loses what is being read",
    )
    orphan_after_s: float = Field(
        default=3_600.0,
        ge=0,
        description="what dead workers left in the store is removed so long after its job is over",
    )
    max_job_age_s: float = Field(default=31 * 86_400.0, description="then a live job fails")
    tiers: dict[Tier, TierSettings] = Field(
        default_factory=lambda: dict(DEFAULT_TIERS),
        description="how each tier is served; left out: tiers.json in data_dir, if it is there; "
        "a tier that is not named keeps its default",
    )

    @field_validator("tiers")
    @classmethod
    def _name_every_tier(cls, named: dict[Tier, TierSettings]) -> dict[Tier, TierSettings]:
        return {**DEFAULT_TIERS, **named}

    @model_validator(mode="before")
    @classmethod
    def _read_tier_file(cls, given: object) -> object:
        """Tiers that nobody named come from the data folder's tier file, if `tune` wrote one."""
        if not isinstance(given, dict) or "tiers" in given:
            return given
        folder = given.get("data_dir") or user_data_path("voxfarm", appauthor=False)
        path = Path(folder) / TIERS_FILE
        try:
            tiers = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return given
        except (OSError, ValueError) as error:
            msg = f"{path} cannot be read: delete it, then run `voxfarm tune` again ({error})"
            raise ValueError(msg) from error
        return {**given, "tiers": tiers}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.visibility_timeout_s <= self.lease_s:
            msg = "VOXFARM_VISIBILITY_TIMEOUT_S must be greater than VOXFARM_LEASE_S"
            raise ValueError(msg)
        return self

    @property
    def sqlalchemy_url(self) -> str:
        """The database URL, with the SQLite default filled in."""
        return self.database_url or f"sqlite:///{self.data_dir / 'voxfarm.db'}"
