"""Modules import only from their own room and those beneath it."""

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "placement"
FOUNDATION = ROOT / "placement_foundation"
CLIENTS = ROOT / "placement_clients"
NODES = ROOT / "placement_nodes"
RESERVATIONS = ROOT / "placement_reservations"

# The rooms of each package, from the top to the bottom.
LAYERS = {
    PACKAGE: [
        {"cmd", "wsgi"},
        {"app"},
        {"policy", "console", "monitoring", "openapi", "demonstration"},
        {"routes"},
        {"handlers"},
        {"placing"},
        {"operation"},
        {"schemas"},
        {"declaration"},
        {"questions"},
        {"forest"},
        {"objects", "search"},
        {"model", "db"},
        {"conf", "errors"},
        {"microversion", "measure"},
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
        {"measure"},
    ],
    RESERVATIONS: [
        {"cmd", "wsgi"},
        {"app"},
        {"policy"},
        {"routes"},
        {"handlers"},
        {"schemas"},
        {"lifecycle"},
        {"conf"},
        {"world"},
        {"compute"},
        {"blazar"},
        {"store"},
        {"db", "capacity", "state", "requirement", "provider"},
        {"clock", "errors", "version", "nova_filter", "measure"},
    ],
    FOUNDATION: [
        {"serving"},
        {"http"},
        {"database"},
        {"observing"},
        {"context", "ending", "errors", "gathering", "option"},
    ],
    CLIENTS: [
        {"request", "explain", "apply", "feed", "audit"},
        {"option"},
        {"output"},
        {"client"},
        {"access", "record"},
        {"errors"},
    ],
}
# Rooms within rooms, as far as they are apart.
INNER = {
    PACKAGE / "questions": [
        {"capacity"},
        {"candidates", "explanation", "placing", "what_if"},
        {"fleet", "name", "overlay", "providers"},
    ],
    PACKAGE / "forest": [
        {"cache"},
        {"fingerprint", "loading"},
        {"forest", "part", "reading"},
        {"vocabulary"},
        {"checksum"},
    ],
    PACKAGE / "objects": [
        {"leasing", "reshaper"},
        {"replacing"},
        {"allocation", "locking"},
        {"aggregate", "copying", "inventory", "reparenting", "trait"},
        {"association", "creation", "lease", "resource_class"},
        {"resource_provider"},
        {"online_migration", "soundness", "standard_name"},
        {"journal", "ledger"},
        {"change_log", "declared", "usage"},
        {"clock", "exact_match", "transaction"},
        {"database_sum", "holding", "own_table", "total"},
    ],
    RESERVATIONS / "blazar": [
        {"carrying"},
        {"judging"},
        {"reading"},
    ],
    FOUNDATION / "http": [
        {"application", "monitoring"},
        {"answer"},
        {"middleware", "policy"},
        {"operation", "identity"},
        {"query_string", "stream"},
        {"schema"},
        {"router", "thread_limit", "version"},
    ],
    FOUNDATION / "database": [
        {"migration"},
        {"storage"},
        {"engine", "sequence"},
        {"trouble", "column", "digest", "origin"},
    ],
    FOUNDATION / "serving": [
        {"upgrade"},
        {"program"},
        {"web_server"},
        {"assembly", "command", "side"},
        {
            "background",
            "completion",
            "interpreter",
            "pipe",
            "terminal",
        },
    ],
    FOUNDATION / "observing": [
        {"metrics", "tracing"},
        {"telemetry", "log", "recent", "progress"},
    ],
}
# Which rooms may use a library: webob is HTTP, jsonschema the wire, and so on. What
# libraries only some modules of a room use, is said by module.
LIBRARIES = {
    "orjson": {"http"},
    "webob": {"http", "console"},
    "routes": {"http"},
    "jsonschema": {"schemas", "http", "apply", "audit"},
    "sqlalchemy": {"objects", "store", "db", "forest", "demonstration", "cmd"}
    | {"database", "http", "serving", "observing", "lifecycle", "blazar"},
    "alembic": {"db", "database"},
    "oslo_config": {"conf", "app", "policy", "cmd", "middleware", "option"}
    | {"console", "monitoring", "serving", "http", "observing", "access"}
    | {"client", "compute", "feed", "audit"},
    "prometheus_client": {"observing", "monitoring", "feed"},
    "opentelemetry": {"observing"},
    "keystoneauth1": {"console", "http", "sync", "access", "client", "compute", "conf"}
    | {"cmd", "audit"},
    "gunicorn": {"serving"},
    "oslo_policy": {"policy", "conf", "http", "option"},
}
MODULES = [
    (package, path) for package in LAYERS for path in sorted(package.rglob("*.py"))
]


def layer_of(package: Path, path: Path) -> str:
    return path.relative_to(package).parts[0].removesuffix(".py")


@functools.cache
def imports_of(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def ours(package: Path, path: Path) -> set[str]:
    prefix = ".".join(package.relative_to(ROOT).parts) + "."
    names = (name for name in imports_of(path) if name.startswith(prefix))
    return {name.removeprefix(prefix).split(".")[0] for name in names}


def roots_of(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports_of(path)}


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


@pytest.mark.parametrize("room", INNER, ids=lambda room: str(room.relative_to(ROOT)))
def test_a_module_of_a_room_imports_only_downwards(room: Path) -> None:
    height = {name: -depth for depth, names in enumerate(INNER[room]) for name in names}
    for path in room.glob("*.py"):
        if path.stem != "__init__":
            # A module that is not listed is above all others.
            above = height.get(path.stem, 1)
            used = ours(room, path) - {path.stem}
            assert not {name for name in used if height.get(name, 1) > above}, path


@pytest.mark.parametrize(
    ("package", "others"),
    [
        (FOUNDATION, {PACKAGE, CLIENTS, NODES, RESERVATIONS}),
        (PACKAGE, {CLIENTS, NODES, RESERVATIONS}),
        (CLIENTS, {PACKAGE, NODES, RESERVATIONS}),
        (NODES, {PACKAGE, RESERVATIONS}),
        (RESERVATIONS, {PACKAGE, NODES}),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_a_package_knows_nothing_of_those_beside_or_above_it(
    package: Path, others: set[Path]
) -> None:
    names = {other.name for other in others}
    for path in package.rglob("*.py"):
        assert not roots_of(path) & names, path


def test_handlers_do_not_call_handlers() -> None:
    for path in (PACKAGE / "handlers").rglob("*.py"):
        assert "handlers" not in ours(PACKAGE, path)


def test_the_search_and_the_model_import_no_library() -> None:
    for room, used in (("search", {"search", "model"}), ("model", {"model"})):
        for path in (PACKAGE / room).glob("*.py"):
            assert ours(PACKAGE, path) <= used
            assert not roots_of(path) & {"sqlalchemy", "oslo_log", "webob"}
            assert not roots_of(path) & {"jsonschema", "placement_foundation"}


@pytest.mark.parametrize("room", ["questions", "schemas", "search", "model"])
def test_what_is_pure_knows_no_database(room: str) -> None:
    # Nor does anything of this package that it imports.
    known: set[Path] = set()
    waiting = list((PACKAGE / room).rglob("*.py"))
    while waiting:
        path = waiting.pop()
        if path in known:
            continue
        known.add(path)
        assert not roots_of(path) & {"sqlalchemy", "oslo_db", "alembic"}, path
        for name in ours_in_full(path):
            module = (ROOT / name.replace(".", "/")).with_suffix(".py")
            waiting += [module] if module.exists() else []


def ours_in_full(path: Path) -> Iterator[str]:
    """Yield each name of this package that is imported, and the module it is in."""
    for name in imports_of(path):
        if name.startswith(f"{PACKAGE.name}."):
            yield name
            yield name.rpartition(".")[0]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_is_used_in_its_place_only(library: str) -> None:
    users = {
        layer_of(package, path)
        for package, path in MODULES
        if any(name.split(".")[0] == library for name in imports_of(path))
    }
    assert users <= LIBRARIES[library]


def test_sql_about_the_forest_is_in_one_module() -> None:
    users = {
        path.name
        for path in (PACKAGE / "forest").glob("*.py")
        if "sqlalchemy" in roots_of(path)
    }
    assert users == {"reading.py"}


def test_requests_are_made_without_knowing_of_http() -> None:
    for path in (CLIENTS / "request").glob("*.py"):
        assert not roots_of(path) & {"keystoneauth1", "requests", "urllib3", "http"}


@pytest.mark.parametrize(
    ("name", "unwanted"),
    [
        ("placement.cmd.manage", {"placement.routes", "placement.cmd.api", "alembic"}),
        ("placement.cmd.manage", {"gunicorn", "keystoneauth1", "oslo_policy.policy"}),
        ("placement.cmd.status", {"placement.routes", "alembic", "keystoneauth1"}),
        # A service that neither migrates nor authenticates needs none of these.
        ("placement.app", {"alembic", "keystoneauth1", "keystonemiddleware"}),
    ],
)
def test_programs_begin_without_what_few_of_them_need(
    name: str, unwanted: set[str]
) -> None:
    script = f"import sys, {name}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    assert not unwanted & set(done.stdout.split())
