"""Modules import only from their own layer and those beneath it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "placement"
FOUNDATION = ROOT / "placement_foundation"
CONSUMERS = ROOT / "placement_consumers"
NODES = CONSUMERS / "nodes"

# From the top to the bottom, of each package.
LAYERS = {
    PACKAGE: [
        {"cmd", "wsgi"},
        {"app"},
        {"policy", "console", "monitoring", "openapi"},
        {"routes"},
        {"handlers"},
        {"operation"},
        {"schemas"},
        {"objects"},
        {"explanation"},
        {"search", "db"},
        {"conf", "errors"},
        {"microversion"},
    ],
    NODES: [
        {"cmd", "wsgi"},
        {"app"},
        {"policy"},
        {"routes"},
        {"handlers"},
        {"schemas"},
        {"objects"},
        {"db"},
        {"conf", "errors", "middleware"},
        {"version"},
        # The agent knows the service by its API only.
        {"sync"},
    ],
    FOUNDATION: [
        {"serving"},
        {"application", "command", "refusal"},
        {"middleware", "policy"},
        {"operation"},
        {"query_string", "json_text"},
        {"schema"},
        {"migration"},
        {"storage"},
        {"engine"},
        {"health"},
        {"trouble", "page", "metrics", "tracing"},
        {
            "context",
            "errors",
            "log",
            "option",
            "recent",
            "stream",
            "telemetry",
            "version",
            "worker",
        },
        {"completion", "garbage", "quotation"},
    ],
}
# Which modules may use a library: webob is HTTP, jsonschema the wire, and so on.
LIBRARIES = {
    "orjson": {"json_text"},
    "webob": {"application", "middleware", "refusal"},
    "routes": {"application"},
    "jsonschema": {"schemas", "schema", "query_string"},
    "sqlalchemy": {"objects", "db", "cmd", "storage", "migration", "engine"}
    | {"application", "command", "operation", "serving", "trouble"}
    | {"metrics"},
    "alembic": {"command", "db", "migration"},
    "oslo_config": {"conf", "app", "policy", "cmd", "log", "middleware", "option"}
    | {"command", "console", "monitoring", "serving"},
    "prometheus_client": {"metrics", "monitoring"},
    "opentelemetry": {"tracing"},
    "keystoneauth1": {"console", "sync"},
    "gunicorn": {"serving", "worker"},
    "oslo_policy": {"policy", "conf", "option"},
}
MODULES = [
    (package, path) for package in LAYERS for path in sorted(package.rglob("*.py"))
]


def layer_of(package: Path, path: Path) -> str:
    return path.relative_to(package).parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(package: Path, path: Path) -> set[str]:
    prefix = ".".join(package.relative_to(ROOT).parts) + "."
    names = (name for name in imports_of(path) if name.startswith(prefix))
    return {name.removeprefix(prefix).split(".")[0] for name in names}


@pytest.mark.parametrize(
    ("package", "path"), MODULES, ids=lambda path: str(path.relative_to(ROOT))
)
def test_a_module_imports_only_downwards(package: Path, path: Path) -> None:
    height = {
        name: -depth for depth, names in enumerate(LAYERS[package]) for name in names
    }
    if path == package / "__init__.py":
        assert not ours(package, path)
        return
    layer = layer_of(package, path)
    upwards = {name for name in ours(package, path) if height[name] > height[layer]}
    assert not upwards, f"{layer} imports {upwards}"


def test_the_foundation_knows_nothing_of_what_stands_on_it() -> None:
    for path in FOUNDATION.rglob("*.py"):
        roots = {name.split(".")[0] for name in imports_of(path)}
        assert not roots & {"placement", "placement_consumers"}, path


def test_the_service_knows_nothing_of_programs_that_use_it() -> None:
    for path in PACKAGE.rglob("*.py"):
        roots = {name.split(".")[0] for name in imports_of(path)}
        assert "placement_consumers" not in roots, path


def test_programs_that_use_the_service_do_not_import_it() -> None:
    for path in CONSUMERS.rglob("*.py"):
        roots = {name.split(".")[0] for name in imports_of(path)}
        assert "placement" not in roots, path


def test_handlers_do_not_call_handlers() -> None:
    for path in (PACKAGE / "handlers").glob("*.py"):
        assert "handlers" not in ours(PACKAGE, path)


def test_the_search_imports_nothing_of_ours_and_no_library() -> None:
    for path in (PACKAGE / "search").glob("*.py"):
        assert ours(PACKAGE, path) <= {"search"}
        roots = {name.split(".")[0] for name in imports_of(path)}
        assert not roots & {"sqlalchemy", "oslo_log", "webob", "jsonschema"}
        assert "placement_foundation" not in roots


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_is_used_in_its_place_only(library: str) -> None:
    users = {
        layer_of(package, path)
        for package, path in MODULES
        if any(name.split(".")[0] == library for name in imports_of(path))
    }
    assert users <= LIBRARIES[library]


def test_requests_are_made_without_knowing_of_http() -> None:
    for path in (CONSUMERS / "scheduling").glob("*.py"):
        roots = {name.split(".")[0] for name in imports_of(path)}
        assert not roots & {"keystoneauth1", "requests", "urllib3", "http"}
