"""The description of the API is complete, and contains nothing else."""

import json
from typing import Any

import pytest

from placement import openapi
from placement.cmd import manage
from placement.microversion import VERSIONS
from placement_foundation.http.operation import Operation
from placement_foundation.http.version import Version
from tests import description

ROWS = {
    f"{method} {path}": row
    for path, rows in openapi.TABLE.items()
    for method, row in rows.items()
}
OLDEST, NEWEST = Version(1, 0), Version(1, 39)


@pytest.fixture(params=ROWS)
def row(request: pytest.FixtureRequest) -> Operation:
    return ROWS[request.param]


@pytest.fixture(params=VERSIONS, ids=lambda version: f"{Version(*version)}")
def version(request: pytest.FixtureRequest) -> Version:
    return Version(*request.param)


def operations(version: Version) -> dict[str, Any]:
    return {
        f"{method.upper()} {path}": operation
        for path, item in description.described(version)["paths"].items()
        for method, operation in item.items()
    }


def test_a_description_has_the_rows_of_its_microversion(version: Version) -> None:
    there = {name for name, row in ROWS.items() if row.handler.at(version)}
    assert operations(version).keys() == there


def test_operations_have_names_of_their_own(version: Version) -> None:
    names = [each["operationId"] for each in operations(version).values()]
    assert len(names) == len(set(names))


def test_all_that_is_referred_to_is_there(version: Version) -> None:
    document = description.described(version)

    def look(part: Any) -> None:
        if isinstance(part, dict):
            if "$ref" in part:
                assert description.resolve(document, part)
            for each in part.values():
                look(each)
        elif isinstance(part, list):
            for each in part:
                look(each)

    look(document)


def test_a_body_is_described_by_the_schema_that_checks_it(version: Version) -> None:
    for name, operation in operations(version).items():
        row = ROWS[name]
        schema = row.body.at(version) if row.body else None
        if schema is None:
            assert "requestBody" not in operation
        else:
            content = operation["requestBody"]["content"]["application/json"]
            assert content["schema"] == schema.document


def parameters(name: str, version: Version) -> dict[str, Any]:
    document = description.described(version)
    listed = operations(version)[name]["parameters"]
    resolved = [description.resolve(document, each) for each in listed]
    return {each["name"]: each for each in resolved}


def test_a_query_is_described_as_it_is_checked() -> None:
    old = parameters("GET /allocation_candidates", Version(1, 10))
    assert old.keys() == {"OpenStack-API-Version", "resources"}
    assert old["resources"]["required"]
    new = parameters("GET /allocation_candidates", NEWEST)
    assert new["limit"]["schema"] == {"type": "string", "pattern": "^[1-9][0-9]*$"}
    assert (
        "^resources([a-zA-Z0-9_-]{1,64})?$"
        in (new["request_groups"]["schema"]["patternProperties"])
    )


def test_the_microversion_is_asked_for() -> None:
    asked = parameters("GET /resource_providers", Version(1, 7))
    header = asked["OpenStack-API-Version"]
    assert header["required"]
    assert header["schema"] == {"const": "placement 1.7"}


def test_errors_that_a_handler_raises_are_described_with_their_codes() -> None:
    name = "PUT /resource_providers/{uuid}/inventories"
    new = operations(NEWEST)[name]["responses"]["409"]["description"]
    assert "out of date (`placement.concurrent_update`)" in new
    old = operations(OLDEST)[name]["responses"]["409"]["description"]
    assert "out of date" in old
    assert "placement." not in old


def test_members_come_with_their_microversion() -> None:
    def members(version: Version) -> set[str]:
        reply = operations(version)["GET /resource_providers/{uuid}"]["responses"]
        schema = reply["200"]["content"]["application/json"]["schema"]
        return set(schema["required"])

    assert members(NEWEST) - members(Version(1, 13)) == {
        "parent_provider_uuid",
        "root_provider_uuid",
    }


def test_what_is_open_needs_no_token() -> None:
    for name, operation in operations(NEWEST).items():
        is_open = operation.get("security") == []
        assert is_open == (name in ("GET /", "GET /openapi.json"))
        assert is_open == ("401" not in operation["responses"])


def test_the_command_prints_what_the_service_answers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OS_PLACEMENT_DATABASE__CONNECTION", raising=False)
    assert manage.main(["openapi", "--microversion", "1.7"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == description.described(Version(1, 7))


def test_the_command_refuses_other_microversions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert manage.main(["openapi", "--microversion", "1.40"]) == 1
    assert "'1.40' is not a microversion" in capsys.readouterr().err
