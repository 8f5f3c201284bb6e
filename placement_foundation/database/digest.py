"""Numbers that stand for strings, the same in Python and in each database."""

import hashlib
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

# How many hexadecimal digits of a SHA-256 are the number.
DIGITS = 7
# What SQLite calls the function that each connection gets.
NAME = "text_digest"


def digest_of(text: str) -> int:
    """Return the digest of a string: of two strings, it most likely differs."""
    hashed = hashlib.sha256(text.encode(), usedforsecurity=False)
    return int(hashed.hexdigest()[:DIGITS], 16)


class digest(FunctionElement[int]):  # noqa: N801
    """The digest of a string, in SQL."""

    type = sa.BigInteger()
    name = NAME
    inherit_cache = True


@compiles(digest, "postgresql")
def _on_postgresql(element: digest, compiler: Any, **options: Any) -> str:
    text = compiler.process(element.clauses, **options)
    hashed = f"encode(sha256(convert_to({text}, 'UTF8')), 'hex')"
    return f"CAST(CAST('x' || left({hashed}, {DIGITS}) AS bit({4 * DIGITS})) AS bigint)"


@compiles(digest, "mysql")
@compiles(digest, "mariadb")
def _on_mysql(element: digest, compiler: Any, **options: Any) -> str:
    text = compiler.process(element.clauses, **options)
    hashed = f"sha2(convert({text} USING utf8mb4), 256)"
    return f"CAST(conv(left({hashed}, {DIGITS}), 16, 10) AS signed)"


@compiles(digest, "sqlite")
def _on_sqlite(element: digest, compiler: Any, **options: Any) -> str:
    return f"{NAME}({compiler.process(element.clauses, **options)})"
