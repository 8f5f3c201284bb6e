"""Progress of long work: a bar on a terminal, and nothing elsewhere.

It goes to standard error. Code that does the work gets a ``Progress``, whether or not
that is shown.
"""

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bars


class Progress:
    """A receiver of reports of long work. This one shows nothing."""

    def begin(self, what: str, total: int | None = None) -> None:
        """Begin another part of the work.

        :param total: how many steps it has, None if that is not known
        """

    def advance(self, steps: int = 1) -> None:
        """Report that some steps of this part are done."""


SILENT = Progress()


@contextlib.contextmanager
def shown(stream: TextIO | None = None) -> Iterator[Progress]:
    """Show the progress of work while the context is open.

    :param stream: where to show it, standard error by default
    """
    stream = stream or sys.stderr
    if not stream.isatty():
        yield SILENT
        return
    # Most commands end before this library would be loaded.
    from rich import progress
    from rich.console import Console

    bars = progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(" of "),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=Console(file=stream),
        transient=True,
        # Otherwise the output of the command would follow the bar to its stream.
        redirect_stdout=sys.stdout.isatty(),
        redirect_stderr=sys.stderr.isatty(),
    )
    with bars:
        yield _Bar(bars)


class _Bar(Progress):
    """A bar for each part of the work, which is removed at the end."""

    def __init__(self, bars: "Bars") -> None:
        self._bars = bars

    def begin(self, what: str, total: int | None = None) -> None:
        for task_id in self._bars.task_ids:
            self._bars.remove_task(task_id)
        self._bars.add_task(what, total=total)

    def advance(self, steps: int = 1) -> None:
        for task_id in self._bars.task_ids:
            self._bars.advance(task_id, steps)
