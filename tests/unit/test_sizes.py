"""How large the code is: bounds that only ever fall.

Code lines are those that are neither blank, nor a comment, nor part of a docstring.
"""

import ast
import collections
import functools
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Code lines by package. What shrinks lowers its bound in the same change.
BOUNDS = {
    "placement": 17_464,
    "placement_foundation": 4_047,
    "placement_clients": 4_774,
    "placement_nodes": 2_238,
    "placement_reservations": 5_480,
}
LINES_OF_TESTS = 51186
LONGEST_FUNCTION = 50
MOST_COMPLEX = 15
LARGEST_MODULE = 450
# What is above these bounds still, by name.
LARGER: dict[str, int] = {}
# Names that two public classes of one package have still.
NAMESAKES: dict[str, set[str]] = {}

_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.Assert)
_DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@functools.cache
def _parse(path: Path) -> tuple[ast.Module, frozenset[int]]:
    """Return the syntax tree of a module, and the numbers of its code lines."""
    source = path.read_text()
    tree = ast.parse(source)
    left_out = set()
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            left_out |= set(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.line.strip().startswith("#"):
            left_out.add(token.start[0])
    lines = enumerate(source.splitlines(), 1)
    return tree, frozenset(
        {number for number, line in lines if line.strip()} - left_out
    )


def _modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(_parse(path)[0]):
        if isinstance(node, _FUNCTIONS):
            yield node


def _complexity(function: ast.AST) -> int:
    """Return the cyclomatic complexity: the number of branches, and one."""
    count = 1
    for node in ast.walk(function):
        count += isinstance(node, (*_BRANCHES, ast.match_case))
        if isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        if isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
    return count


@pytest.mark.parametrize("package", BOUNDS)
def test_a_package_is_not_larger_than_it_was(package: str) -> None:
    lines = sum(len(_parse(path)[1]) for path in _modules(package))
    assert lines <= BOUNDS[package]


def test_the_tests_are_not_longer_than_they_were() -> None:
    lines = sum(len(path.read_text().splitlines()) for path in _modules("tests"))
    assert lines <= LINES_OF_TESTS


@pytest.mark.parametrize("package", BOUNDS)
def test_no_function_is_long_and_no_module_large(package: str) -> None:
    for path in _modules(package):
        lines = _parse(path)[1]
        name = str(path.relative_to(ROOT))
        assert len(lines) <= LARGER.get(name, LARGEST_MODULE), name
        for function in _functions(path):
            body = range(function.lineno, (function.end_lineno or 0) + 1)
            named = f"{name}:{function.name}"
            assert len(lines & set(body)) <= LONGEST_FUNCTION, named
            assert _complexity(function) <= LARGER.get(named, MOST_COMPLEX), named


@pytest.mark.parametrize("package", BOUNDS)
def test_no_two_public_classes_have_the_same_name(package: str) -> None:
    places = collections.defaultdict(set)
    for path in _modules(package):
        for node in ast.walk(_parse(path)[0]):
            # A row of a table has the name of its value; migrations have their own.
            of_a_table = "alembic" in path.parts or path.name == "models.py"
            if (
                isinstance(node, ast.ClassDef)
                and node.name[0] != "_"
                and not of_a_table
            ):
                places[node.name].add(str(path.relative_to(ROOT / package)))
    twice = {name for name, paths in places.items() if len(paths) > 1}
    assert twice == NAMESAKES.get(package, set())
