"""Secrets with a name or a known form are replaced in logs, messages and configuration; other text stays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.store.support_bundle.secrets_in_text import REDACTED, value_without_secrets, without_secrets

PLANTED = "Zq8vK2mPx9LtR4wN"
KEY = f"-----BEGIN RSA PRIVATE KEY-----\nMIIEow{PLANTED}\nabc/def+\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "text",
    [
        f"password={PLANTED}",
        f"PASSWORD: {PLANTED}",
        f'"password": "{PLANTED}"',
        f"'api_key': '{PLANTED}'",
        f'{{\\"token\\":\\"{PLANTED}\\"}}',
        f"WANDB_API_KEY={PLANTED} python train.py",
        f"export AWS_SECRET_ACCESS_KEY={PLANTED}",
        f"--token {PLANTED}",
        f"--hub-token={PLANTED}",
        f"Authorization: Bearer {PLANTED}",
        f"sent header bearer {PLANTED} to server",
        f"  clientSecret: two words {PLANTED}",
        f"redis://user:{PLANTED}@redis:6379/0",
        f"https://{PLANTED}@github.com/x.git",
        f"GET /x?X-Amz-Signature={PLANTED}&y=1",
        f"eyJ{PLANTED}.eyJ{PLANTED}.{PLANTED}",
        f"hf_{PLANTED}",
        f"login with ghp_{PLANTED}, then push",
        f"AKIA{PLANTED}",
        f'password = "two words {PLANTED}"',
        f"Set-Cookie: session={PLANTED}; Path=/",
        f"db_pwd=>{PLANTED}",
        KEY,
    ],
)
def test_a_secret_is_replaced(text: str) -> None:
    found = without_secrets(text)
    assert PLANTED not in found
    assert REDACTED in found


@pytest.mark.parametrize(
    "text",
    [
        "pod team-a/train-0: 8 nvidia.com/gpu are requested",
        "image nvcr.io/nvidia/pytorch:24.10-py3@sha256:0123456789abcdef",
        'secrets "x" is forbidden: User "bob" cannot get resource "secrets" in API group ""',
        "secretName: webhook-tls",
        "GET https://10.96.0.1:443/api/v1/pods?limit=500 200 OK",
        "loaded the tokenizer of the model",
        "level=info msg=started port=8080",
        "",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert without_secrets(text) == text


def test_the_rest_of_a_line_stays() -> None:
    assert without_secrets(f"user=bob password={PLANTED} port=1") == f"user=bob password={REDACTED} port=1"
    assert without_secrets(f"a\n{KEY}\nb") == f"a\n{REDACTED}\nb"


def test_objects_lose_values_of_variables_and_former_configurations() -> None:
    found = value_without_secrets(
        {
            "metadata": {
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": PLANTED,
                    "note": f"token={PLANTED}",
                },
                "managedFields": [{"manager": PLANTED}],
            },
            "env": [
                {"name": "DATABASE", "value": PLANTED},
                {"name": "X", "valueFrom": {"secretKeyRef": {"name": "s"}}},
            ],
            "args": [f"--password={PLANTED}", "--port=8080"],
            "apiToken": PLANTED,
            "empty": {"password": ""},
            "count": 3,
        }
    )
    assert PLANTED not in str(found)
    assert found["env"] == [
        {"name": "DATABASE", "value": REDACTED},
        {"name": "X", "valueFrom": {"secretKeyRef": {"name": "s"}}},
    ]
    assert found["args"] == [f"--password={REDACTED}", "--port=8080"]
    assert found["empty"] == {"password": ""}
    assert found["count"] == 3


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["--token", PLANTED], ["--token", REDACTED]),
        (["train", "-db-password", PLANTED, "--port", "80"], ["train", "-db-password", REDACTED, "--port", "80"]),
        (["--token", f"-{PLANTED}"], ["--token", REDACTED]),
        (["--rotate-secrets", "--token", PLANTED], ["--rotate-secrets", "--token", REDACTED]),
        (["--token", {"x": 1}, "--token"], ["--token", {"x": 1}, "--token"]),
        (["--tokenizer", "bert", "secrets", "pods"], ["--tokenizer", "bert", "secrets", "pods"]),
    ],
)
def test_the_item_after_an_option_with_the_name_of_a_secret_is_replaced(given: list[Any], kept: list[Any]) -> None:
    assert value_without_secrets({"args": given}) == {"args": kept}


@pytest.mark.parametrize(
    "text",
    [
        f'{{"spec": {{"containers": [{{"env": [{{"name": "A", "value": "{PLANTED}"}}]}}]}}}}',
        f'"{{\\"env\\":[{{\\"name\\":\\"A\\",\\"value\\":\\"{PLANTED}\\"}}]}}"',
        f"containers:\n- env:\n  - name: A\n    value: {PLANTED}",
    ],
)
def test_annotations_with_copies_of_variables_are_left_out(text: str) -> None:
    pod = {"metadata": {"annotations": {"a": "the environment: env", "tool.example/former": text}}}
    nested = {"spec": {"template": pod}}
    assert value_without_secrets([pod, nested]) == [
        {"metadata": {"annotations": {"a": "the environment: env"}}},
        {"spec": {"template": {"metadata": {"annotations": {"a": "the environment: env"}}}}},
    ]


@given(st.text(alphabet="ab:=\"'\\ tokenpassword\n/@-{}&", max_size=200))
def test_a_second_reading_changes_nothing_more(text: str) -> None:
    once = without_secrets(text)
    assert without_secrets(once) == once
