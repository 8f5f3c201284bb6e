"""Progress of long work, on a terminal and elsewhere."""

import io

import pytest

from placement_foundation.observing import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_bar_that_goes_away(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = Terminal()
    with progress.shown(stream) as report:
        report.begin("waiting")
        report.begin("storing hosts", 20)
        report.advance(15)
        print("an answer")
    assert "storing hosts" in stream.getvalue()
    assert "15 of 20" in stream.getvalue()
    # The last thing is to erase the line and to show the cursor again.
    assert "\x1b[2K" in stream.getvalue()[-40:]
    # What the command prints stays where it goes.
    assert "an answer" not in stream.getvalue()
    assert capsys.readouterr().out == "an answer\n"


def test_nothing_is_shown_elsewhere() -> None:
    stream = io.StringIO()
    with progress.shown(stream) as report:
        report.begin("storing hosts", 20)
        report.advance()
    assert stream.getvalue() == ""
