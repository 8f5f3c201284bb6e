"""Progress of long work: a bar on a terminal, a line now and then elsewhere.

It goes to standard error, and nothing is shown of work that takes no longer than a
moment. Code that does the work gets a ``Progress``, and need not know who looks.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Protocol, TextIO

# After how many seconds a bar appears, and after how many a line elsewhere.
MOMENT = 1.0
LINE_EVERY = 5.0


class Progress(Protocol):
    """What long work reports to."""

    def begin(self, what: str, total: int | None = None) -> None:
        """Begin another part of the work.

        :param total: how many steps it has, None if that is not known
        """

    def advance(self, steps: int = 1) -> None:
        """Report that some steps of this part are done."""


class Silent:
    """Progress that nobody looks at."""

    def begin(self, what: str, total: int | None = None) -> None:
        """Begin another part of the work."""

    def advance(self, steps: int = 1) -> None:
        """Report that some steps of this part are done."""


SILENT = Silent()


@contextlib.contextmanager
def shown(program: str, stream: TextIO | None = None) -> Iterator[Progress]:
    """Show the progress of what is done while the context is open.

    :param program: the name of the command, which begins each line
    :param stream: where to show it, standard error by default
    """
    stream = stream or sys.stderr
    kind = _Bar(stream) if stream.isatty() else _Lines(program, stream)
    with kind.running():
        yield kind


class _Bar:
    """A bar for each part of the work, which is removed at the end."""

    def __init__(self, stream: TextIO) -> None:
        # Most commands end before this library would be loaded.
        from rich import progress
        from rich.console import Console

        self._bars = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[steps]}"),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            console=Console(file=stream),
            transient=True,
            # What the command prints would otherwise follow the bar to its stream.
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=sys.stderr.isatty(),
        )
        self._task: progress.TaskID | None = None
        self._timer = threading.Timer(MOMENT, self._bars.start)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        self._timer.daemon = True
        self._timer.start()
        try:
            yield
        finally:
            self._timer.cancel()
            self._timer.join()
            self._bars.stop()

    def begin(self, what: str, total: int | None = None) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(what, total=total, steps="")

    def advance(self, steps: int = 1) -> None:
        if self._task is None:
            return
        self._bars.advance(self._task, steps)
        [task] = self._bars.tasks
        self._bars.update(self._task, steps=_steps(int(task.completed), task.total))


class _Lines:
    """A line every few seconds, for logs and pipes."""

    def __init__(self, program: str, stream: TextIO) -> None:
        self._program = program
        self._stream = stream
        self._ended = threading.Event()
        self._what = ""
        self._total: int | None = None
        self._done = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        began = time.monotonic()
        thread = threading.Thread(target=self._print_lines, args=(began,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def begin(self, what: str, total: int | None = None) -> None:
        self._what, self._total, self._done = what, total, 0

    def advance(self, steps: int = 1) -> None:
        self._done += steps

    def _print_lines(self, began: float) -> None:
        while not self._ended.wait(LINE_EVERY):
            parts = [self._what, _steps(self._done, self._total)]
            said = " ".join(filter(None, parts)) or "working"
            seconds = round(time.monotonic() - began)
            line = f"{self._program}: {said} ({seconds} s so far)"
            with contextlib.suppress(OSError, ValueError):
                # Work does not fail because nobody reads of it any more.
                print(line, file=self._stream, flush=True)


def _steps(done: int, total: float | None) -> str:
    """Return how many steps are done, in words."""
    if total:
        return f"{done:,} of {total:,.0f}".replace(",", " ")
    return f"{done:,}".replace(",", " ") if done else ""
