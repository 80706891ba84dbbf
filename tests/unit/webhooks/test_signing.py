"""Signatures, judged by the independent `standardwebhooks` package."""

import base64
import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from shared.webhook_secrets import SecretIdentity, SigningSecrets
from worker.webhooks.signing import signed_headers

SECRETS = SigningSecrets(b"root")
WHICH = SecretIdentity("tenant", "01KB9Z7Q4C4F6W8Y2N3M5P7R9T", 2)
BODY = '{"type":"job.completed","data":{"title":"Ein Buch: 你好"}}'.encode()


def test_the_independent_package_accepts_a_signature_and_no_other_body_or_secret() -> None:
    headers = signed_headers("id", int(time.time()), BODY, [SECRETS.key(WHICH)])
    verifier = Webhook(SECRETS.written(WHICH))
    assert verifier.verify(BODY, headers)["type"] == "job.completed"
    with pytest.raises(WebhookVerificationError):
        verifier.verify(BODY + b" ", headers)
    with pytest.raises(WebhookVerificationError):
        verifier.verify(BODY, headers | {"webhook-id": "other"})
    other = SecretIdentity("other", WHICH.webhook_id, WHICH.generation)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRETS.written(other)).verify(BODY, headers)


def test_during_a_change_both_secrets_verify() -> None:
    former = WHICH.former
    assert former is not None
    keys = [SECRETS.key(WHICH), SECRETS.key(former)]
    headers = signed_headers("id", int(time.time()), BODY, keys)
    assert headers["webhook-signature"].count("v1,") == 2
    for which in (WHICH, former):
        Webhook(SECRETS.written(which)).verify(BODY, headers)


def test_a_secret_has_the_form_and_length_of_the_specification() -> None:
    written = SECRETS.written(WHICH)
    assert written.startswith("whsec_")
    assert 24 <= len(base64.b64decode(written.removeprefix("whsec_"), validate=True)) <= 64


def test_secrets_differ_by_root_tenant_webhook_and_generation_and_show_nowhere() -> None:
    keys = {
        SigningSecrets(root).key(SecretIdentity(tenant, hook, generation))
        for root in (b"root", b"roos")
        for tenant in ("a", "b")
        for hook in ("x", "y")
        for generation in (1, 2)
    }
    assert len(keys) == 16
    assert "root" not in repr(SECRETS)
    assert SECRETS.mark(WHICH) not in SECRETS.written(WHICH)
