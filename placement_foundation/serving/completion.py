"""Scripts that let a shell complete the arguments of a command."""

import argparse

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
