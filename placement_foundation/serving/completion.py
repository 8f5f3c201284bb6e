"""Scripts that let a shell complete the arguments of a command."""

import argparse
from collections.abc import Iterable, Iterator
from typing import Any

SHELLS = ("bash", "zsh")
OPTION = "--shell_completion"


def script(shell: str, program: str, words: Iterable[str]) -> str:
    """Return the script that makes a shell complete words after a command."""
    told = f"complete -W '{' '.join(sorted(set(words)))}' {program}"
    if shell == "zsh":
        return f"autoload -U +X bashcompinit && bashcompinit\n{told}"
    return told


def add(parser: argparse.ArgumentParser) -> None:
    """Add the option that prints such a script."""
    parser.add_argument(
        OPTION,
        action=_Complete,
        choices=SHELLS,
        help="Print the script that lets this shell complete arguments, and exit.",
    )


class _Complete(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        shell: Any,
        option: str | None = None,
    ) -> None:
        print(script(shell, parser.prog, _words(parser)))
        parser.exit()


def _words(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from (word for word in action.option_strings if word.startswith("--"))
        if isinstance(action.choices, dict):
            for name, below in action.choices.items():
                yield name
                yield from _words(below)
        elif action.choices:
            yield from map(str, action.choices)
