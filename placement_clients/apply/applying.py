"""Plans the declarations of files, and applies exactly these plans."""

import argparse
import dataclasses
import itertools
import sys
from collections.abc import Mapping, Sequence

from placement_clients import record
from placement_clients.apply import drawing
from placement_clients.apply.declaration import Declaration
from placement_clients.client import Client
from placement_clients.output import Unusable, console_of, show_json
from placement_clients.record import Json
from placement_foundation.observing import progress

OWNER = "fleet"
PARSE_DONE = record.parser_with(trees=list, names=list)
# The number of trees in a request, for trees that need no others.
PORTION = 500
# The most trees that --prune removes, or half of those of the owner.
MOST_PRUNED = 10
FAILURES = ("conflict", "refused")
CHANGES = ("created", "changed", "removed")


@dataclasses.dataclass(slots=True)
class Applier:
    """Sends a declaration: to be planned, and to be applied as it was planned."""

    placement: Client
    declared: Declaration
    asked: argparse.Namespace
    # The result of each tree, as far as it is known.
    done: list[Json] = dataclasses.field(default_factory=list)
    # The results of the names of aggregates and projects, by path.
    names: dict[str, Json] = dataclasses.field(default_factory=dict)

    @property
    def has_failed(self) -> bool:
        """Whether a tree cannot match its declaration."""
        return any(tree["result"] in FAILURES for tree in self.done)

    @property
    def is_stale(self) -> bool:
        """Whether a tree differs from its plan, and was left unchanged."""
        return any(tree["result"] == "stale" for tree in self.done)

    @property
    def differs(self) -> bool:
        """Whether a tree or a name differs from its declaration."""
        return bool(self.names) or any(tree["result"] in CHANGES for tree in self.done)

    def show(self, words: Mapping[str, str], *, as_json: bool = True) -> None:
        """Show the results of trees and names."""
        names = list(self.names.values())
        if self.asked.json and as_json:
            show_json({"trees": self.done, "names": names})
            return
        # Standard output is for the document alone.
        console = console_of(sys.stderr if self.asked.json else sys.stdout)
        drawing.draw_trees(console, self.done)
        drawing.draw_names(console, names)
        drawing.draw_summary(console, self.done, words)

    def plan(self) -> None:
        """Request the plan of each tree."""
        self.done = self._post(self.declared.trees, dry_run=True)

    def check_prune(self) -> None:
        """Check that --prune would not remove most hosts of this owner.

        :raises Unusable: it would, and --prune-all is not given
        """
        pruned = self.done[len(self.declared.trees) :]
        count = sum(tree["result"] in CHANGES for tree in pruned)
        if self.asked.prune_all or count <= MOST_PRUNED:
            return
        owner = self.asked.owner or OWNER
        query = {"owner": owner}
        document = self.placement.get_ledger("declared", query, declared=list)
        roots = {each["root"] for each in document["declared"]}
        number = len(roots - {None})
        if 2 * count > number:
            raise Unusable(
                f"--prune would remove {count} of the {number} hosts that {owner} "
                "declared: --prune-all does it"
            )

    def apply(self) -> None:
        """Apply the plan, and keep the result of each tree."""
        planned, names = [tree["plan"] for tree in self.done], self.names
        self.done, self.names = [], {}
        trees = self.declared.trees
        with progress.shown() as shown:
            shown.begin("applying", len(trees))
            # Trees that need others are left to the end.
            if len(trees) > PORTION:
                for start in range(0, len(trees), PORTION):
                    portion = trees[start : start + PORTION]
                    self.done += self._post(portion, planned=planned, whole=False)
                    shown.advance(len(portion))
            is_done = self.done and not (self.is_stale or self.has_failed)
            if not is_done or self.asked.prune:
                # With --yes, changes since the plan do not matter.
                terms: dict[str, Json] = {} if self.asked.yes else {"planned": planned}
                self.done = _join(self.done, self._post(trees, **terms))
                shown.advance(len(trees))
        self.names = {**names, **self.names}

    def _post(
        self, trees: Sequence[Json], *, whole: bool = True, **members: Json
    ) -> list[Json]:
        """Send trees; return the result of each, and of each tree that is pruned.

        They are sent again to a busy service: to apply them twice does no harm.
        """
        members |= {"owner": self.asked.owner or OWNER, "force": self.asked.force}
        if self.asked.prune:
            members |= {"prune": True, "complete": whole}
        body = self.declared.body(trees, **members)
        answer = self.placement.retry_while_busy(
            lambda: self.placement.post("/ledger/v1/apply", body, version="latest")
        )
        document = PARSE_DONE(answer)
        self.names |= {each["path"]: each for each in document["names"]}
        return list(document["trees"])


def _join(first: Sequence[Json], last: Sequence[Json]) -> list[Json]:
    """Return the results of trees that were sent in portions, and then together."""
    return [
        before
        if before
        and before["result"] in (*CHANGES, "unchanged")
        and tree["result"] == "unchanged"
        else tree
        for before, tree in itertools.zip_longest(first, last)
    ]
