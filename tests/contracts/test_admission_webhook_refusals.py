"""Configurations of admission webhooks that are refused when they are written."""

from typing import Any

import pytest

from build.cluster_api import Api
from build.contract_hooks import CONFIG_MAPS, CONFIGURATIONS, configuration
from build.hook_server import hook_server

Obj = dict[str, Any]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            {"name": "short"},
            "should be a domain with at least three segments separated by dots",
        ),
        ({"clientConfig": {}}, "webhooks[0].clientConfig: Required value: exactly one of url or service is required"),
        ({"clientConfig": {"url": "http://a.example/x"}}, "'https' is the only allowed URL scheme"),
        (
            {"admissionReviewVersions": []},
            "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
        ),
        ({"sideEffects": "Some"}, 'sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'),
        ({"timeoutSeconds": 31}, "the timeout value must be between 1 and 30 seconds"),
        ({"rules": [{**CONFIG_MAPS, "operations": []}]}, "webhooks[0].rules[0].operations: Required value"),
        (
            {"failurePolicy": "Maybe"},
            'webhooks[0].failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"',
        ),
        ({"matchConditions": [{"name": "a", "expression": "1 +"}]}, "compilation failed"),
    ],
)
async def test_a_configuration_that_makes_no_sense_is_refused(api: Api, more: Obj, says: str) -> None:
    async with hook_server() as hook:
        body = configuration(api, hook, "ValidatingWebhookConfiguration", "/hook", **more)
        answer = await api.post(f"{CONFIGURATIONS}/validatingwebhookconfigurations", body)
        if answer.code == 201:
            await api.delete(f"{CONFIGURATIONS}/validatingwebhookconfigurations/{body['metadata']['name']}")
        assert says in answer.refused(422, "Invalid")
