"""The table of routes says what can be true."""

import inspect

import pytest

from placement import errors, policy
from placement.microversion import MAXIMUM, VERSIONS
from placement.routes import ROUTES
from placement_foundation.http.operation import Operation
from placement_foundation.http.router import Router
from placement_foundation.http.version import Version

ROUTER = Router(ROUTES)
ROWS = {
    f"{method} {path}": operation
    for path, methods in ROUTES.items()
    for method, operation in methods.items()
}
ALLOW = {
    "/": "GET",
    "/resource_classes": "GET, POST",
    "/resource_classes/{name}": "GET, PUT, DELETE",
    "/resource_providers": "GET, POST",
    "/resource_providers/{uuid}": "GET, DELETE, PUT",
    "/resource_providers/{uuid}/inventories": "GET, POST, PUT, DELETE",
    "/resource_providers/{uuid}/inventories/{resource_class}": "GET, PUT, DELETE",
    "/resource_providers/{uuid}/usages": "GET",
    "/resource_providers/{uuid}/aggregates": "GET, PUT",
    "/resource_providers/{uuid}/allocations": "GET",
    "/resource_providers/{uuid}/traits": "GET, PUT, DELETE",
    "/allocations": "POST",
    "/allocations/{consumer_uuid}": "GET, PUT, DELETE",
    "/allocation_candidates": "GET",
    "/traits": "GET",
    "/traits/{name}": "GET, PUT, DELETE",
    "/usages": "GET",
    "/reshaper": "POST",
    "/ledger/v1": "GET",
    "/ledger/v1/explanation": "GET",
    "/ledger/v1/capacity": "GET",
    "/ledger/v1/what-if": "POST",
    "/ledger/v1/apply": "POST",
    "/ledger/v1/declared": "GET",
    "/ledger/v1/names": "GET",
    "/ledger/v1/audits": "GET",
    "/ledger/v1/audits/{name}": "PUT, DELETE",
    "/ledger/v1/fleet": "GET",
    "/ledger/v1/placements": "POST",
    "/ledger/v1/changes": "GET",
    "/ledger/v1/history": "GET",
    "/ledger/v1/history/allocations": "GET",
    "/ledger/v1/leases": "GET",
    "/ledger/v1/leases/{consumer_uuid}": "GET, PUT, DELETE",
}


@pytest.fixture(params=ROWS)
def operation(request: pytest.FixtureRequest) -> Operation:
    return ROWS[request.param]


def test_every_path_and_method_of_the_api_is_there() -> None:
    assert {path: ", ".join(methods) for path, methods in ROUTES.items()} == ALLOW


def test_a_row_names_a_known_policy(operation: Operation) -> None:
    known = {rule.name for rule in policy.list_rules()}
    assert operation.policy is None or operation.policy in known


def test_every_operation_rule_is_used() -> None:
    used = {operation.policy for operation in ROWS.values()}
    rules = {rule.name for rule in policy.list_rules()}
    assert {name for name in rules if name.startswith("placement:")} == used - {None}


def test_rules_describe_the_operations_that_they_guard() -> None:
    described = {
        f"{operation['method']} {operation['path']}": rule.name
        for rule in policy.list_rules()
        for operation in getattr(rule, "operations", [])
    }
    guarded = {row: operation.policy for row, operation in ROWS.items()}
    assert described == {row: rule for row, rule in guarded.items() if rule}


def test_a_row_sets_the_flags_that_its_handlers_take(operation: Operation) -> None:
    for handler in operation.handler.values():
        keywords = {
            parameter.name
            for parameter in inspect.signature(handler).parameters.values()
            if parameter.kind is parameter.KEYWORD_ONLY
        }
        assert keywords == set(operation.flags)


def test_versions_of_a_row_are_versions_of_the_api(operation: Operation) -> None:
    histories = [
        history
        for history in (
            operation.handler,
            operation.query,
            operation.body,
            operation.status,
            operation.reply,
        )
        if history
    ]
    named = {version for history in histories for version in history.versions()}
    named |= {Version(*first) for first in operation.flags.values()}
    assert named <= {Version(*version) for version in VERSIONS}


def test_a_subject_takes_the_parameters_of_its_path() -> None:
    for path, methods in ROUTES.items():
        _, parameters = ROUTER.find(path)
        for operation in methods.values():
            for load in operation.subject.values() if operation.subject else ():
                inspect.signature(load).bind(object(), **parameters)
            if operation.parse_path:
                inspect.signature(operation.parse_path).bind(**parameters)


def test_every_operation_is_there_at_the_last_version(operation: Operation) -> None:
    assert operation.handler.at(MAXIMUM)


@pytest.mark.parametrize(
    "path",
    [
        "/cows",
        "/traits/",
        "/traits\n",
        "/resource_providers//traits",
        "/resource_providers/a/b",
    ],
)
def test_other_paths_are_not_found(path: str) -> None:
    with pytest.raises(errors.NotFound):
        ROUTER.find(path)


@pytest.mark.parametrize(
    "name", ["a b", "ä", "a;b", "{uuid}", "a\nb", "a\n", "..", "\ufffd"]
)
def test_a_parameter_may_be_any_text_without_a_slash(name: str) -> None:
    _, parameters = ROUTER.find(f"/traits/{name}")
    assert parameters == {"name": name}
