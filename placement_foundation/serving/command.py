"""Commands: an error is one line for the operator; shells complete arguments."""

import argparse
import contextlib
import io
import itertools
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence

import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exc

from placement_foundation import errors, option
from placement_foundation.database import migration, trouble
from placement_foundation.serving import completion, pipe

# Errors that are not bugs of ours: an option, a file or the database is at fault.
TROUBLE = (
    cfg.Error,
    OSError,
    sa.exc.SQLAlchemyError,
    db_exc.DBError,
    errors.ServiceError,
    migration.MigrationError,
    # A port that is not a number, an option that has no such value.
    ValueError,
)


def add_config_file(parser: argparse.ArgumentParser, project: str) -> None:
    """Add the argument for the configuration files of a project."""
    parser.add_argument(
        "--config-file",
        action="append",
        metavar="PATH",
        help="configuration file; may be repeated, later ones win "
        f"({project}.conf in {option.directory_variable(project)}, or else in "
        f"~/.{project}, ~, /etc/{project}, /etc)",
    )


def describe(exc: BaseException) -> str:
    """Return a description of an error in one line."""
    # The message of a failed transaction is for callers of the API.
    cause = exc.__cause__ if isinstance(exc, errors.ServiceError) else exc
    return trouble.describe(cause or exc)


def complain(
    program: str, exc: BaseException, config: cfg.ConfigOpts | None = None
) -> None:
    """Print what went wrong, for the operator.

    :param config: if its option ``debug`` is set, a traceback comes before the line
    """
    with contextlib.suppress(cfg.Error):
        if config and config.debug:
            traceback.print_exception(exc)
    print(f"{program}: {describe(exc)}", file=sys.stderr)


def completes(
    arguments: Sequence[str],
    program: str,
    run: Callable[[Sequence[str]], object],
    *helps: str,
) -> bool:
    """Print a script that lets a shell complete arguments, if arguments ask for one.

    It is for commands whose parser oslo.config hides.

    :param run: runs the command with arguments
    :param helps: the arguments before ``--help`` that make it show its help
    """
    given = " ".join(arguments).replace("=", " ").split()
    for name, shell in itertools.pairwise(given):
        if name == completion.OPTION and shell in completion.SHELLS:
            words = {word for one in helps for word in _words(run, one.split())}
            with pipe.dropping_the_rest():
                if shell == "zsh":
                    print("autoload -U +X bashcompinit && bashcompinit")
                print(f"complete -W '{' '.join(sorted(words))}' {program}")
            return True
    return False


def _words(run: Callable[[Sequence[str]], object], before: list[str]) -> Iterable[str]:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        run([*before, "--help"])
    text = shown.getvalue()
    yield from re.findall(r"(?<![\w-])--[a-z][\w-]*", text)
    for choices in re.findall(r"\{([\w,-]+)\}", text):
        yield from choices.split(",")
    # An argument with a single choice, such as "check" after "upgrade", has no braces.
    yield from re.findall(
        r"^positional arguments:\n  ([a-z][\w-]*)$", text, re.MULTILINE
    )
