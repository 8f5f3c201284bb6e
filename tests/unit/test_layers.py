"""Modules import only from their own layer and those beneath it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "placement"

# From the top to the bottom.
LAYERS = [
    {"cmd", "wsgi"},
    {"app"},
    {"middleware", "policy"},
    {"routes"},
    {"handlers"},
    {"operation"},
    {"schemas"},
    {"objects"},
    {"search", "db"},
    {"conf", "context", "errors"},
    {"microversion"},
]
HEIGHT = {name: -depth for depth, names in enumerate(LAYERS) for name in names}
# Who may use a library: webob is HTTP, jsonschema the wire, and so on.
LIBRARIES = {
    "webob": {"app", "middleware"},
    "jsonschema": {"schemas"},
    "sqlalchemy": {"objects", "db", "operation", "app", "cmd"},
    "alembic": {"db", "cmd"},
    "oslo_config": {"conf", "app", "middleware", "policy", "cmd"},
    "oslo_policy": {"policy", "app", "conf"},
}
MODULES = sorted(PACKAGE.rglob("*.py"))
CONSUMERS = PACKAGE.with_name("placement_consumers")


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(path: Path) -> set[str]:
    names = (name.split(".") for name in imports_of(path))
    return {name[1] for name in names if name[0] == "placement" and len(name) > 1}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.name))
def test_a_module_imports_only_downwards(path: Path) -> None:
    if path == PACKAGE / "__init__.py":
        assert not ours(path)
        return
    layer = layer_of(path)
    upwards = {name for name in ours(path) if HEIGHT[name] > HEIGHT[layer]}
    assert not upwards, f"{layer} imports {upwards}"


def test_handlers_do_not_call_handlers() -> None:
    for path in (PACKAGE / "handlers").glob("*.py"):
        assert "handlers" not in ours(path)


def test_the_search_imports_nothing_of_ours_and_no_library() -> None:
    for path in (PACKAGE / "search").glob("*.py"):
        assert ours(path) <= {"search"}
        roots = {name.split(".")[0] for name in imports_of(path)}
        assert not roots & {"sqlalchemy", "oslo_log", "webob", "jsonschema"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_is_used_in_its_place_only(library: str) -> None:
    users = {
        layer_of(path)
        for path in MODULES
        if any(name.split(".")[0] == library for name in imports_of(path))
    }
    assert users <= LIBRARIES[library]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.name))
def test_the_service_knows_nothing_of_programs_that_use_it(path: Path) -> None:
    roots = {name.split(".")[0] for name in imports_of(path)}
    assert CONSUMERS.name not in roots


def test_requests_are_made_without_knowing_of_http() -> None:
    for path in (CONSUMERS / "scheduling").glob("*.py"):
        roots = {name.split(".")[0] for name in imports_of(path)}
        assert not roots & {"keystoneauth1", "requests", "urllib3", "http"}
