"""Turns what was asked for into a job the farm can do, or says why not. Pure: no SQL, no HTTP.

Every choice left open is filled in here, once, and frozen into the job.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from api.submission import Submission
from api.webhook_wish import checked_url
from shared.errors import TransientError, UsageError
from shared.jobs import (
    DEFAULT_SAMPLE_RATE_HZ,
    SAMPLE_RATES_HZ,
    Fallback,
    JobSpec,
    OnUnspeakable,
    Pauses,
)
from shared.ledger.jobs import NewJob
from shared.ledger.named_webhook import NamedWebhook
from shared.planning import check_text, first_unspeakable, is_any_speakable
from shared.settings import Settings
from shared.voices import EngineInfo, VoiceInfo


class NoEngineError(TransientError):
    """No node has published the engine that is needed: the farm is still starting."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Decides about submissions under one farm's settings."""

    settings: Settings

    def admit(
        self,
        asked: Submission,
        engines: Sequence[EngineInfo],
        *,
        tenant: str,
        idempotency_key: str | None = None,
    ) -> NewJob:
        """The job to write. Raises UsageError (each with its own code) or NoEngineError."""
        text, chapters = self._join(asked)
        if len(text) > self.settings.max_job_chars:
            raise UsageError(
                f"the text has {len(text):,} characters; "
                f"{self.settings.max_job_chars:,} is the most a job may have",
                code="text-too-long",
                characters=len(text),
                max_characters=self.settings.max_job_chars,
            )
        self._check_metadata(asked)
        retention_s = asked.retention_s
        if retention_s is None:
            retention_s = self.settings.retention_s
        engine = self._engine(asked.engine, engines)
        spec = self._resolve(asked, engine, engines)
        webhook = self._webhook(asked)
        for field, piece in _pieces(asked):
            _check_piece(piece, field, spec)
        _check_rest(text, spec)
        return NewJob(
            tenant=tenant,
            spec=spec,
            text=text,
            chapters=chapters,
            title=asked.title,
            metadata=asked.metadata,
            idempotency_key=idempotency_key,
            request_sha256=asked.digest,
            retention_s=retention_s,
            expected_audio_s=engine.speech_s(text, spec.voice) / spec.speed,
            webhook=webhook,
        )

    def _webhook(self, asked: Submission) -> NamedWebhook | None:
        if asked.webhook is None:
            return None
        url = checked_url(asked.webhook.url, self.settings)
        return NamedWebhook(url, asked.webhook.event_types)

    def _join(self, asked: Submission) -> tuple[str, list[tuple[str, int, int]]]:
        """The whole text, and where each chapter lies in it, in characters."""
        if asked.chapters is None:
            return asked.text or "", []
        if not asked.chapters:
            raise UsageError("chapters is empty", code="empty-text", field="chapters")
        if len(asked.chapters) > self.settings.max_parts:
            raise UsageError(
                f"{len(asked.chapters):,} chapters; "
                f"{self.settings.max_parts:,} is the most a job may have",
                code="too-many-chapters",
                max_chapters=self.settings.max_parts,
            )
        placed, end = [], 0
        for chapter in asked.chapters:
            start, end = end, end + len(chapter.text)
            placed.append((chapter.title, start, end))
        return "".join(chapter.text for chapter in asked.chapters), placed

    def _check_metadata(self, asked: Submission) -> None:
        size_bytes = sum(len(k.encode()) + len(v.encode()) for k, v in asked.metadata.items())
        if size_bytes > self.settings.max_metadata_bytes:
            raise UsageError(
                f"metadata takes {size_bytes:,} bytes; "
                f"{self.settings.max_metadata_bytes:,} is the most",
                code="metadata-too-large",
                max_bytes=self.settings.max_metadata_bytes,
            )

    def _resolve(
        self, asked: Submission, engine: EngineInfo, engines: Sequence[EngineInfo]
    ) -> JobSpec:
        voice = _voice(asked.voice, engine)
        language = asked.language or voice.language
        if language not in engine.languages:
            raise UsageError(
                f"engine {engine.name} does not speak the language asked for",
                code="unknown-language",
                choices=list(engine.languages),
            )
        fallback = self._fallback(asked.fallback_engine, engine, language, engines)
        rate_hz = asked.sample_rate_hz
        if rate_hz is None:
            rate_hz = DEFAULT_SAMPLE_RATE_HZ[asked.format]
        if rate_hz not in SAMPLE_RATES_HZ:
            raise UsageError(
                "this sample rate is not delivered",
                code="unknown-sample-rate",
                choices=list(SAMPLE_RATES_HZ),
            )
        return JobSpec(
            engine=engine.name,
            engine_version=engine.version,
            engine_backend=engine.backend,
            engine_rate_hz=engine.sample_rate_hz,
            engine_max_chars=min(e.max_chars for e in (engine, fallback) if e),
            engine_min_chars=max(e.min_chars for e in (engine, fallback) if e),
            languages=engine.languages,
            voice=voice.id,
            language=language,
            tier=asked.tier,
            format=asked.format,
            sample_rate_hz=rate_hz,
            speed=asked.speed,
            seed=asked.seed,
            pauses=Pauses(**asked.pauses.model_dump()),
            newlines=asked.newlines,
            on_unspeakable=asked.on_unspeakable,
            on_error=asked.on_error,
            split_chapters=asked.split_chapters,
            reuse=asked.reuse,
            fallback=None if fallback is None else _frozen(fallback, language),
        )

    def _fallback(
        self, name: str | None, engine: EngineInfo, language: str, engines: Sequence[EngineInfo]
    ) -> EngineInfo | None:
        """The engine for what `engine` gives up: another one, of the same rate and language."""
        if name is None:
            return None
        fallback = self._engine(name, engines)
        wrong = ""
        if fallback.name == engine.name:
            wrong = "is the job's engine already"
        elif fallback.sample_rate_hz != engine.sample_rate_hz:
            wrong = f"speaks at {fallback.sample_rate_hz} Hz, not at {engine.sample_rate_hz} Hz"
        elif language not in fallback.languages:
            wrong = "does not speak the language asked for"
        if wrong:
            raise UsageError(
                f"the fallback engine {fallback.name} {wrong}",
                code="unfit-fallback",
                field="fallback_engine",
            )
        return fallback

    def _engine(self, name: str | None, engines: Sequence[EngineInfo]) -> EngineInfo:
        wanted = name or self.settings.default_engine
        by_name = {engine.name: engine for engine in engines}
        offered = [e.name for e in engines if not e.testing or self.settings.allow_testing_engines]
        if wanted not in by_name:
            if not by_name:
                raise NoEngineError("no engine is registered yet; the farm is still starting")
            if name is None:
                raise NoEngineError(
                    f"the default engine {wanted} is not registered yet; "
                    f"registered: {', '.join(offered) or 'none'}"
                )
            raise UsageError("there is no such engine here", code="unknown-engine", choices=offered)
        if wanted not in offered:
            raise UsageError(
                f"engine {wanted} is for testing only and not allowed here",
                code="testing-engine",
                choices=offered,
            )
        return by_name[wanted]


def _frozen(engine: EngineInfo, language: str) -> Fallback:
    spoken = [voice.id for voice in engine.voices if voice.language == language]
    return Fallback(
        engine=engine.name,
        version=engine.version,
        backend=engine.backend,
        voice=spoken[0] if spoken else engine.default_voice,
    )


def _voice(name: str | None, engine: EngineInfo) -> VoiceInfo:
    wanted = name or engine.default_voice
    voice = engine.voice_named(wanted)
    if voice is not None:
        return voice
    choices = [voice.id for voice in engine.voices]
    raise UsageError(
        f"engine {engine.name} has no such voice; it has: {', '.join(choices)}",
        code="unknown-voice",
        choices=choices,
    )


def _pieces(asked: Submission) -> list[tuple[str, str]]:
    """(field path, text) of everything that is to be spoken."""
    if asked.chapters is None:
        return [("text", asked.text or "")]
    return [(f"chapters.{i}.text", chapter.text) for i, chapter in enumerate(asked.chapters)]


def _check_piece(text: str, field: str, spec: JobSpec) -> None:
    """Refuse what cannot be spoken; `offset` counts characters from the field's own start."""
    try:
        check_text(text)
    except UsageError as error:
        raise UsageError(str(error), code=error.code, **{**error.fields, "field": field}) from None
    if spec.on_unspeakable is OnUnspeakable.SKIP:
        return
    found = first_unspeakable(text, spec.languages)
    if found is not None:
        raise UsageError(
            f"engine {spec.engine} cannot speak {found.script} script, which starts at character "
            f"{found.offset} of {field}; on_unspeakable: skip leaves it out",
            code="unspeakable-text",
            field=field,
            offset=found.offset,
            character=found.character,
            script=found.script,
            languages=list(spec.languages),
        )


def _check_rest(text: str, spec: JobSpec) -> None:
    """Refuse a job of which nothing would be left once the unspeakable is skipped."""
    if spec.on_unspeakable is OnUnspeakable.SKIP and not is_any_speakable(text, spec.languages):
        raise UsageError(
            f"without what engine {spec.engine} cannot speak, no text remains",
            code="nothing-speakable",
            languages=list(spec.languages),
        )
