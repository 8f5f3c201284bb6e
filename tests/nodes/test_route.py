"""The table of routes of the node service is consistent."""

import inspect

import pytest

from placement_foundation.errors import NotFound
from placement_foundation.http.operation import Operation
from placement_foundation.http.router import Router
from placement_foundation.http.version import Version
from placement_nodes import policy, version
from placement_nodes.routes import ROUTES

ROWS = {
    f"{method} {path}": operation
    for path, methods in ROUTES.items()
    for method, operation in methods.items()
}
ALLOW = {
    "/": "GET",
    "/healthcheck": "GET",
    "/v1": "GET",
    "/v1/": "GET",
    "/v1/drivers": "GET",
    "/v1/nodes": "GET, POST",
    "/v1/nodes/": "GET, POST",
    "/v1/nodes/detail": "GET",
    "/v1/nodes/{ident}": "GET, PATCH, DELETE",
    "/v1/nodes/{ident}/validate": "GET",
    "/v1/nodes/{ident}/states": "GET",
    "/v1/nodes/{ident}/states/provision": "PUT",
    "/v1/nodes/{ident}/states/power": "PUT",
    "/v1/nodes/{ident}/maintenance": "PUT, DELETE",
    "/v1/nodes/{ident}/traits": "GET, PUT, DELETE",
    "/v1/nodes/{ident}/traits/{trait}": "PUT, DELETE",
}


@pytest.fixture(params=ROWS)
def operation(request: pytest.FixtureRequest) -> Operation:
    return ROWS[request.param]


def test_every_path_and_method_of_the_api_is_there() -> None:
    assert {path: ", ".join(methods) for path, methods in ROUTES.items()} == ALLOW


def test_every_rule_is_used_and_every_row_has_one() -> None:
    used = {operation.policy for operation in ROWS.values()}
    rules = {rule.name for rule in policy.list_rules()}
    assert {name for name in rules if name.startswith("baremetal:")} == used - {None}
    open_rows = {row for row, operation in ROWS.items() if operation.policy is None}
    assert open_rows == {"GET /", "GET /healthcheck", "GET /v1", "GET /v1/"}


def test_versions_of_a_row_are_versions_of_the_api(operation: Operation) -> None:
    histories = [
        history
        for history in (
            operation.handler,
            operation.subject,
            operation.query,
            operation.body,
        )
        if history
    ]
    named = {found for history in histories for found in history.versions()}
    assert named <= {Version(1, 0), *(Version(*each) for each in version.VERSIONS)}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/nodes/detail", ("/v1/nodes/detail", {})),
        ("/v1/nodes/detail\n", ("/v1/nodes/{ident}", {"ident": "detail\n"})),
        ("/v1/nodes/a\n/traits", ("/v1/nodes/{ident}/traits", {"ident": "a\n"})),
    ],
)
def test_a_line_feed_belongs_to_the_parameter_that_it_is_in(
    path: str, expected: tuple[str, dict[str, str]]
) -> None:
    assert Router(ROUTES).find(path) == expected


def test_a_path_that_ends_in_a_line_feed_is_not_one_without() -> None:
    with pytest.raises(NotFound):
        Router(ROUTES).find("/v1/nodes\n")


def test_a_subject_takes_the_parameters_of_its_path() -> None:
    router = Router(ROUTES)
    for path, methods in ROUTES.items():
        _, parameters = router.find(path)
        for operation in methods.values():
            for load in operation.subject.values() if operation.subject else ():
                inspect.signature(load).bind(object(), **parameters)
