"""The table of routes says what can be true."""

import inspect

import pytest

from placement import policy
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


@pytest.fixture(params=ROWS)
def operation(request: pytest.FixtureRequest) -> Operation:
    return ROWS[request.param]


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
