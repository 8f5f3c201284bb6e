"""Scripts that let a shell complete the arguments of a command."""

import argparse
from collections.abc import Iterable

import shtab

SHELLS = ("bash", "zsh")
OPTION = "--shell_completion"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the option that prints such a script."""
    shtab.add_argument_to(
        parser,
        OPTION,
        help="Print the script that lets this shell complete arguments, and exit.",
    )


def script(shell: str, program: str, words: Iterable[str]) -> str:
    """Return the script that makes a shell complete words after a command.

    It is for commands whose parser oslo.config hides.
    """
    completing = f"complete -W '{' '.join(sorted(set(words)))}' {program}"
    if shell == "zsh":
        return f"autoload -U +X bashcompinit && bashcompinit\n{completing}"
    return completing
