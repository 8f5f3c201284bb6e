"""What a person sees: tables on a terminal, plain columns in a pipe."""

import json
import sys
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from placement_consumers.client import Json

# Wide enough that nothing in a pipe is folded.
PIPE_WIDTH = 100_000


def show_json(document: Json) -> None:
    """Print a document."""
    print(json.dumps(document, indent=2))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, as wide as the terminal at most."""
    on_terminal = sys.stdout.isatty()
    table = Table(
        box=box.SIMPLE_HEAD if on_terminal else None,
        pad_edge=on_terminal,
        header_style="bold",
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(
        highlight=False, width=None if on_terminal else PIPE_WIDTH, soft_wrap=False
    )
    if on_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def complain(program: str, lines: Iterable[str]) -> None:
    """Print lines to standard error, each after the name of the program."""
    for line in lines:
        print(f"{program}: {line}", file=sys.stderr)
