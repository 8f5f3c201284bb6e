"""Progress of long work, on a terminal and elsewhere."""

import io
import time
from collections.abc import Callable

import pytest

from placement_foundation.observing import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MOMENT", 0.01)
    monkeypatch.setattr(progress, "LINE_EVERY", 0.01)


def wait_for(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_nothing_is_shown_of_work_that_is_soon_done(kind: type[io.StringIO]) -> None:
    stream = kind()
    with progress.shown("program", stream) as told:
        told.begin("storing hosts", 3)
        told.advance()
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("impatient")
def test_lines_say_how_far_the_work_is() -> None:
    stream = io.StringIO()
    with progress.shown("program", stream) as told:
        wait_for(lambda: "program: working (0 s so far)\n" in stream.getvalue())
        told.begin("storing hosts", 20_000)
        told.advance(1_500)
        line = "program: storing hosts 1 500 of 20 000 (0 s so far)\n"
        wait_for(lambda: line in stream.getvalue())
        told.begin("waiting")
        wait_for(lambda: "program: waiting (0 s so far)\n" in stream.getvalue())
        told.advance()
        wait_for(lambda: "program: waiting 1 (0 s so far)\n" in stream.getvalue())
    ended = stream.getvalue()
    time.sleep(0.05)
    assert stream.getvalue() == ended


@pytest.mark.usefixtures("impatient")
def test_a_terminal_shows_a_bar_that_goes_away() -> None:
    stream = Terminal()
    with progress.shown("program", stream) as told:
        told.begin("storing hosts", 20)
        told.advance(15)
        wait_for(lambda: "15 of 20" in stream.getvalue())
        assert "storing hosts" in stream.getvalue()
        told.begin("storing traits", 7)
        wait_for(lambda: "storing traits" in stream.getvalue())
    # The last thing is to erase the line and to show the cursor again.
    assert "\x1b[2K" in stream.getvalue()[-40:]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_a_failure_passes_and_ends_the_progress(kind: type[io.StringIO]) -> None:
    stream = kind()

    def fail() -> None:
        with progress.shown("program", stream) as told:
            told.begin("dividing")
            wait_for(lambda: "dividing" in stream.getvalue())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    ended = stream.getvalue()
    time.sleep(0.05)
    assert stream.getvalue() == ended


@pytest.mark.usefixtures("impatient")
def test_what_the_command_prints_stays_where_it_goes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = Terminal()
    with progress.shown("program", stream) as told:
        told.begin("storing hosts")
        wait_for(lambda: "storing hosts" in stream.getvalue())
        print("an answer")
    assert capsys.readouterr().out == "an answer\n"
    assert "an answer" not in stream.getvalue()


@pytest.mark.usefixtures("impatient")
def test_work_goes_on_when_its_reader_has_gone() -> None:
    class Closed(io.StringIO):
        asked = False

        def write(self, text: str) -> int:
            self.asked = True
            raise BrokenPipeError

    stream = Closed()
    with progress.shown("program", stream):
        wait_for(lambda: stream.asked)
