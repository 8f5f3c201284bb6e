"""Output for people: tables, error messages, and the exit status."""

import io
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from placement_clients.access import Misconfigured
from placement_clients.errors import PlacementError
from placement_clients.record import Json
from placement_foundation.serving import pipe, terminal
from placement_foundation.serving.terminal import visible

# Wide enough to keep every line in a pipe unfolded.
PIPE_WIDTH = 100_000
# With these, a spreadsheet begins a formula.
FORMULA = tuple("=+-@\t\r\n")
# The exit status if Placement did not answer, where 1 means that no host is valid.
NO_ANSWER = 3
# The exit status that a shell reports for Ctrl-C.
INTERRUPTED = 130


class Unusable(Exception):
    """The command cannot be carried out as it was given. Each problem says why."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def run(
    program: str,
    work: Callable[[], int],
    *,
    unusable: int = 1,
    no_answer: int = NO_ANSWER,
    ends_with_reader: bool = False,
) -> int:
    """Run a command and return its exit status, whatever ends it early.

    :param unusable: the exit status if an argument or a file cannot be used
    :param no_answer: that if Placement refuses this, or could not be reached
    :param ends_with_reader: whether the command is done, without an error, when the
        reader of standard output has left
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names may have characters that a terminal does not.
            stream.reconfigure(errors="backslashreplace")
    status = 0
    try:
        with pipe.dropping_the_rest(ends_with_reader=ends_with_reader):
            status = work()
    except (PlacementError, Misconfigured) as exc:
        complain(program, [describe(exc)])
        return no_answer
    except pipe.Unwritable as exc:
        complain(program, [str(exc)])
        return no_answer
    except Unusable as exc:
        complain(program, exc.problems)
        return unusable
    except OSError as exc:
        reason = f"{exc.filename}: {exc.strerror}" if exc.filename else str(exc)
        complain(program, [reason])
        return unusable
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def describe(exc: PlacementError | Misconfigured) -> str:
    """Return in a sentence whether Placement refuses, or could not be reached."""
    status = exc.status if isinstance(exc, PlacementError) else None
    if status and 400 <= status < 500:
        return f"Placement refuses this: {exc}"
    if isinstance(exc, PlacementError) and exc.code:
        # The error names the obstacle itself, such as a missing table.
        return f"Placement cannot do this: {exc}"
    return f"Placement could not be reached: {exc}"


def read_text(path: str | Path) -> str:
    """Return the content of a file, or of standard input if it is ``-``.

    :raises Unusable: it is not UTF-8
    """
    raw = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = raw[: exc.start].count(b"\n") + 1
        raise Unusable(f"{path}:{line}: this is not UTF-8") from exc


def text_of(text: str, style: str = "") -> Text:
    """Return a string for rich, without control characters."""
    return Text(visible(text), style=style)


def show_json(document: Json) -> None:
    """Print a document."""
    print(json.dumps(document, indent=2))


def console_of(stream: Any) -> Console:
    """Return the console of a stream: in a pipe, without folding lines."""
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, highlight=False, width=width)


def table_of(console: Console, *, header: bool = True) -> Table:
    """Return an empty table, which has lines on a terminal only."""
    return Table(
        box=box.SIMPLE_HEAD if console.is_terminal and header else None,
        pad_edge=False,
        show_header=header,
        header_style="bold",
    )


def print_table(console: Console, table: Table) -> None:
    """Print a table; in a pipe, without trailing blanks."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    lines = (line.rstrip() for line in captured.get().splitlines())
    print("\n".join(lines), file=console.file)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table of strings."""
    console = console_of(sys.stdout)
    table = table_of(console)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(text_of, row))
    print_table(console, table)


def csv_cell(value: Json) -> Json:
    """Return a value for a file of CSV, which no spreadsheet takes for a formula.

    Names come from other users.
    """
    is_formula = isinstance(value, str) and value[:1] in FORMULA
    return f"'{value}" if is_formula else value


def agrees(question: str) -> bool:
    """Return whether a person agrees.

    :raises Unusable: standard input is not a terminal
    """
    check_can_ask()
    return terminal.agrees(question)


def check_can_ask() -> None:
    """Check that a person can answer a question.

    :raises Unusable: standard input is not a terminal
    """
    if not sys.stdin.isatty():
        raise Unusable("--yes is needed where there is no terminal to confirm on")


def complain(program: str, lines: Iterable[str]) -> None:
    """Print lines to standard error, each prefixed with the name of the program.

    They come after earlier output, even if both streams go to one place.
    """
    if sys.stdout:
        sys.stdout.flush()
    for line in lines:
        # A sentence of the service may have several lines.
        shown = "\n".join(visible(part) for part in line.split("\n"))
        try:
            print(f"{program}: {shown}", file=sys.stderr)
        except OSError:
            # A closed standard error does not end the work.
            pipe.drop(sys.stderr)
