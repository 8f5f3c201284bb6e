"""``placement-apply``: what a file declares, compared and applied."""

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from placement_clients import record
from placement_clients.apply import declaration, drawing, export, ordinary, yaml12
from placement_clients.apply.declaration import Declaration
from placement_clients.apply.fault import Fault
from placement_clients.client import Client, Json, NotFound
from placement_clients.console_script import NO_ANSWER
from placement_clients.option import parser_of, placement_of
from placement_clients.output import (
    PIPE_WIDTH,
    Unusable,
    agrees,
    check_can_ask,
    complain,
    run,
    show_json,
)

PROGRAM = "placement-apply"
NOTHING, ERROR, SOMETHING = range(3)
VERSION = "latest"
OWNER = "fleet"
PARSE_DONE = record.parser_with(trees=list)
PARSE_DRIFT = record.parser_with(declared=list)
# How many trees are sent at a time.
PORTION = 500

USAGE = """\
placement-apply FILE... [--owner NAME] [--force] [--prune] [--yes] [options]
       placement-apply plan FILE... [--owner NAME] [--force] [--prune] [options]
       placement-apply export [--host NAME]... [--all] [options]
       placement-apply drift [--owner NAME] [options]"""
DESCRIPTION = """\
Make the hardware in Placement what files declare: hosts with what is in them, their
inventories, traits and aggregates. `plan` only shows what would change, `export` writes
such a file, `drift` shows where Placement differs from what was declared.
"""
EPILOG = """\
A FILE is YAML or JSON; - is standard input. It may be called like a command as ./plan.

exit status:
  0  nothing to change, or all done
  1  error: wrong options, a bad file, a conflict, something refused, no answer
  2  plan and drift: something differs

examples:
  placement-apply plan fleet.yaml
  placement-apply --yes --owner gpu-team gpus.yaml
  placement-apply export --host compute-1 > compute-1.yaml
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    try:
        status = run(PROGRAM, partial(_run, arguments))
    except SystemExit as exc:
        # argparse exits with 2, which means here that something differs.
        raise SystemExit(ERROR if exc.code else NOTHING) from None
    return ERROR if status == NO_ANSWER else status


def _parse(
    arguments: Sequence[str] | None,
) -> tuple[str, Sequence[str], argparse.Namespace]:
    """Return the command, its files and the options."""
    parser = _parser()
    asked = parser.parse_intermixed_args(arguments)
    command, files = "apply", asked.what
    if asked.what[0] in COMMANDS:
        command, *files = asked.what
    if bool(files) == (command in ("export", "drift")):
        parser.error(f"{command} takes {'no' if files else 'a'} FILE")
    if command != "export" and (asked.host or asked.all):
        parser.error("--host and --all are for export: a file is applied as a whole")
    if command == "export" and asked.owner:
        parser.error("export takes no --owner: it writes what all of them declared")
    return command, files, asked


def _run(arguments: Sequence[str] | None) -> int:
    command, files, asked = _parse(arguments)
    try:
        declared = declaration.load(_texts(files))
        return COMMANDS[command](placement_of(asked), declared, asked)
    except (Fault, Unusable) as exc:
        complain(PROGRAM, [str(exc)])
        return ERROR


def _texts(files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the names of files, and what is in them.

    :raises Unusable: one of them cannot be read
    """
    for name in files:
        try:
            raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
            yield name, raw.decode("utf-8")
        except OSError as exc:
            raise Unusable(f"{name}: {exc.strerror}") from exc
        except UnicodeDecodeError as exc:
            line = raw[: exc.start].count(b"\n") + 1
            raise Unusable(f"{name}:{line}: this is not UTF-8") from exc


def plan(placement: Client, declared: Declaration, asked: argparse.Namespace) -> int:
    """Show what applying files would change."""
    applier = _Applier(placement, declared, asked)
    trees = applier.send(dry_run=True)
    applier.show(drawing.PLANNED)
    if _have_failed(trees):
        return ERROR
    return SOMETHING if applier.differ(trees) else NOTHING


def apply(placement: Client, declared: Declaration, asked: argparse.Namespace) -> int:
    """Show what would change, ask, and change it."""
    if not asked.yes:
        check_can_ask()
    applier = _Applier(placement, declared, asked)
    if not asked.yes:
        planned = applier.send(dry_run=True)
        applier.show(drawing.PLANNED, as_json=False)
        if not applier.differ(planned):
            # What is declared is remembered, even if nothing differs.
            return ERROR if _have_failed(planned) else _done(applier)
        if not agrees("Apply this?"):
            raise Unusable("nothing was changed")
    return _done(applier)


def _done(applier: "_Applier") -> int:
    try:
        trees = applier.send(dry_run=False)
    except BaseException:
        # Whatever ends it, what is done is done.
        if applier.done:
            applier.show(drawing.DONE)
        raise
    applier.show(drawing.DONE)
    return ERROR if _have_failed(trees) else NOTHING


def show_export(
    placement: Client, declared: Declaration, asked: argparse.Namespace
) -> int:
    """Print what there is as a file."""
    try:
        document = export.export(placement, asked.host, VERSION, everything=asked.all)
    except NotFound as exc:
        raise Unusable(exc.reason) from exc
    if asked.json:
        show_json(document)
    else:
        print(yaml12.dump(document), end="")
    return NOTHING


def show_drift(
    placement: Client, declared: Declaration, asked: argparse.Namespace
) -> int:
    """Print where Placement differs from what was declared."""
    query = {"drift": "true"}
    if asked.owner:
        query["owner"] = asked.owner
    try:
        document = PARSE_DRIFT(
            placement.get("/ledger/v1/declared", version=VERSION, query=query)
        )
    except NotFound as exc:
        raise Unusable(
            "this Placement has no /ledger/v1, so it does not know what was declared"
        ) from exc
    if asked.json:
        show_json(document)
    else:
        drawing.draw_drift(_console(sys.stdout), document["declared"])
    return SOMETHING if document["declared"] else NOTHING


COMMANDS: Mapping[str, Callable[[Client, Declaration, argparse.Namespace], int]] = {
    "apply": apply,
    "plan": plan,
    "export": show_export,
    "drift": show_drift,
}


@dataclasses.dataclass(slots=True)
class _Applier:
    """Sends a declaration, some trees at a time."""

    placement: Client
    declared: Declaration
    asked: argparse.Namespace
    # Whether there is /ledger/v1; None as long as that is not known.
    has_ledger: bool | None = None
    # What becomes of each tree, as far as it has been sent.
    done: list[Json] = dataclasses.field(default_factory=list)
    # What becomes of the names of aggregates and projects, by path.
    names: dict[str, Json] = dataclasses.field(default_factory=dict)

    def show(self, words: Mapping[str, str], *, as_json: bool = True) -> None:
        """Show what becomes of trees and names."""
        names = list(self.names.values())
        if self.asked.json and as_json:
            show_json({"trees": self.done, "names": names})
            return
        # Standard output is for the document alone.
        console = _console(sys.stderr if self.asked.json else sys.stdout)
        drawing.draw_trees(console, self.done)
        drawing.draw_names(console, names)
        drawing.draw_summary(console, self.done, words)

    def differ(self, trees: Sequence[Json]) -> bool:
        """Return whether anything is not as it is to be."""
        made = ("created", "changed", "removed")
        return bool(self.names) or any(tree["result"] in made for tree in trees)

    def send(self, *, dry_run: bool) -> list[Json]:
        """Send all trees, and return what becomes of each."""
        self.done, self.names = [], {}
        if dry_run:
            self._send_portions(dry_run=True)
            return self.done
        with _progress() as progress:
            task = progress.add_task("applying", total=len(self.declared.trees))
            self._send_portions(dry_run=False, advance=partial(progress.advance, task))
        return self.done

    def _send_portions(
        self, *, dry_run: bool, advance: Callable[[float], None] = lambda count: None
    ) -> None:
        known = self.declared.trees
        size = PORTION
        if self.asked.prune and dry_run:
            # Only a complete declaration says what is no longer declared.
            size = max(len(known), 1)
        # A file without trees may still have names.
        for start in range(0, max(len(known), 1), size):
            portion = known[start : start + size]
            whole = self.asked.prune and dry_run
            # One by one: what ends it does not hide what was done before.
            for tree in self._post(portion, dry_run=dry_run, whole=whole):
                self.done.append(tree)
            advance(len(portion))
        if self.asked.prune and not dry_run:
            everything = list(self._post(known, dry_run=False, whole=True))
            pruned = everything[len(known) :]
            self.done = [*map(_join, self.done, everything), *pruned]

    def _post(
        self, trees: Sequence[Json], *, dry_run: bool, whole: bool
    ) -> Iterable[Json]:
        if self.has_ledger is False:
            return self._post_ordinary(trees, dry_run=dry_run)
        members = {
            "owner": self.asked.owner or OWNER,
            "dry_run": dry_run,
            "force": self.asked.force,
        }
        if whole:
            members |= {"prune": True, "complete": True}
        body = self.declared.body(trees, **members)
        try:
            answer = self._ask(body)
        except NotFound:
            if self.has_ledger:
                # A proxy, say, has no way to the service for a moment.
                raise
            self._become_ordinary()
            return self._post_ordinary(trees, dry_run=dry_run)
        self.has_ledger = True
        self.names |= {each["path"]: each for each in answer.get("names", ())}
        done: list[Json] = answer["trees"]
        return done

    def _ask(self, body: Json) -> Json:
        """Return the answer; a busy service is asked again: twice does no harm."""
        answer = self.placement.retry_while_busy(
            lambda: self.placement.post("/ledger/v1/apply", body, version=VERSION)
        )
        return PARSE_DONE(answer.document)

    def _become_ordinary(self) -> None:
        """Go on without ``/ledger/v1``, and say so.

        :raises Unusable: that is impossible
        """
        if self.asked.prune or self.asked.force or self.asked.owner:
            raise Unusable(
                "this Placement has no /ledger/v1, so there are no owners: --owner, "
                "--force and --prune are not possible"
            )
        complain(
            PROGRAM,
            [
                "this Placement has no /ledger/v1: ordinary calls are used, one "
                "provider after the other, without owners;",
                "what is no longer in a file stays as it is, and names are not kept",
            ],
        )
        self.has_ledger = False

    def _post_ordinary(self, trees: Sequence[Json], *, dry_run: bool) -> Iterable[Json]:
        if not dry_run:
            ordinary.ensure_names(
                self.placement, self.declared.traits, self.declared.resource_classes
            )
        return ordinary.apply(self.placement, trees, dry_run=dry_run)


def _progress() -> Progress:
    """Return a bar on a terminal; nothing is shown in a pipe."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


def _console(stream: object) -> Console:
    on_terminal = stream.isatty()  # type: ignore[attr-defined]
    return Console(
        file=stream,  # type: ignore[arg-type]
        highlight=False,
        width=None if on_terminal else PIPE_WIDTH,
    )


def _join(first: Json, second: Json) -> Json:
    """Return what two requests, one after the other, have made of a tree."""
    if _have_failed([first]):
        # It was left as it was, so the second one says everything.
        return second
    counts = first
    if first["result"] == "unchanged" or _have_failed([second]):
        counts = second
    mended = {change["path"] for change in second["changes"]}
    drift = [each for each in first["drift"] if each["path"] not in mended]
    return {
        **second,
        "result": counts["result"],
        "changes": [*first["changes"], *second["changes"]],
        # The first one has forgotten what it left.
        "drift": drift + [each for each in second["drift"] if each not in drift],
    }


def _have_failed(trees: Sequence[Json]) -> bool:
    return any(tree["result"] in ("conflict", "refused") for tree in trees)


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(PROGRAM, DESCRIPTION, EPILOG, USAGE)
    parser.add_argument(
        "what", nargs="+", metavar="FILE", help="a file, or a command and its files"
    )
    parser.add_argument(
        "--owner", metavar="NAME", help=f"who declares this ({OWNER}); drift: of whom"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="take over what other owners declare otherwise",
    )
    parser.add_argument(
        "--prune",
        action="store_true",
        help="the files are complete: remove what this owner no longer declares",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="export this host, by name or UUID; may be repeated",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="export standard classes and traits, too, which agents report",
    )
    parser.add_argument("--json", action="store_true", help="print the document")
    return parser
