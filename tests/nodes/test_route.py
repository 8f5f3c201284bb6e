"""The table of routes of the node service is consistent."""

from placement_nodes import policy
from placement_nodes.routes import ROUTES

ROWS = {
    f"{method} {path}": operation
    for path, methods in ROUTES.items()
    for method, operation in methods.items()
}


def test_every_rule_is_used_and_every_row_has_one() -> None:
    used = {operation.policy for operation in ROWS.values()}
    rules = {rule.name for rule in policy.list_rules()}
    assert {name for name in rules if name.startswith("baremetal:")} == used - {None}
    open_rows = {row for row, operation in ROWS.items() if operation.policy is None}
    assert open_rows == {"GET /", "GET /healthcheck", "GET /v1", "GET /v1/"}
