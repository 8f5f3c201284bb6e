"""The packages that the service is founded on are required, and used."""

import ast
import configparser
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "WebOb": "webob",
    "Routes": "routes",
    "SQLAlchemy": "sqlalchemy",
    "alembic": "alembic",
    "oslo.config": "oslo_config",
    "oslo.db": "oslo_db",
    "oslo.policy": "oslo_policy",
    "os-traits": "os_traits",
    "jsonschema": "jsonschema",
}
FOR_TESTS = {"gabbi": "gabbi", "pytest": "pytest"}


@functools.cache
def _list_imports(directory: str) -> frozenset[str]:
    """Return the top-level modules that the code below a directory imports."""
    names = set()
    for path in (ROOT / directory).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.partition(".")[0])
    return frozenset(names)


def _list_requirements(section: str, option: str) -> set[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    lines = parser[section][option].split("\n")
    return {re.split(r"[<>=\[]", line)[0] for line in lines if line}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_service_requires_and_imports_it(package: str) -> None:
    assert package in _list_requirements("options", "install_requires")
    imported = _list_imports("placement") | _list_imports("placement_foundation")
    assert PACKAGES[package] in imported


@pytest.mark.parametrize("package", FOR_TESTS)
def test_the_tests_require_and_import_it(package: str) -> None:
    assert package in _list_requirements("options.extras_require", "test")
    assert FOR_TESTS[package] in _list_imports("tests")
