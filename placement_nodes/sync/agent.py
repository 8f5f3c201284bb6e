"""A pass: every node is compared with its provider, and copied to Placement."""

import dataclasses
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from functools import partial
from typing import Any

from oslo_log import log

from placement_clients import errors
from placement_clients.client import Client, path_of
from placement_clients.record import INVENTORIES
from placement_nodes.sync import plan
from placement_nodes.sync.bare_metal import BareMetal, Unreadable
from placement_nodes.sync.memory import Memory, Unusable
from placement_nodes.sync.plan import Wanted

LOG = log.getLogger(__name__)

# If Placement does not answer for this many nodes in a row, the rest are not tried.
PATIENCE = 3
# These errors are about no node: for each further one, Keystone would be called again.
SILENCE = (errors.Unavailable, errors.Unauthorized)
UNANSWERED = "Placement cannot be reached, or does not know the agent"


@dataclasses.dataclass(slots=True)
class Tally:
    """The outcome for the nodes of a pass, by UUID.

    Some of the failed ones are ``unanswered``: Placement could not be reached, or
    refused the credentials. Others are ``held``: their nodes are missing, but so many
    at once that their providers are not removed yet.
    """

    synchronised: set[str] = dataclasses.field(default_factory=set)
    changed: set[str] = dataclasses.field(default_factory=set)
    removed: set[str] = dataclasses.field(default_factory=set)
    left_out: set[str] = dataclasses.field(default_factory=set)
    failed: set[str] = dataclasses.field(default_factory=set)
    unanswered: set[str] = dataclasses.field(default_factory=set)
    held: set[str] = dataclasses.field(default_factory=set)

    def __str__(self) -> str:
        return ", ".join(
            f"{len(getattr(self, field.name))} {field.name.replace('_', ' ')}"
            for field in dataclasses.fields(self)
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Caution:
    """When providers are removed although many nodes, or all, are missing at once.

    A list of nodes may be wrong: a role may have been lost. So two lists must lack the
    nodes, and an operator sets ``expected``, or they are missing for ``quiet`` seconds.
    """

    few: int = 3
    quiet: float = 3600
    expected: bool = False


# Works on a node; False means that it has not called Placement.
Task = Callable[[Tally], bool | None]


class Agent:
    """Copies nodes to Placement.

    :param say: is called with a line for each change that is made, or would be
    :param parallel: how many nodes to work on at a time
    :param dry: write nothing, neither to Placement nor to the memory
    :param stopped: returns whether to stop after the current node
    :param heard: is called with the name of a service that has answered
    :param caution: when many providers are removed at once
    """

    def __init__(
        self,
        nodes: BareMetal,
        placement: Client,
        memory: Memory,
        *,
        say: Callable[[str], object] = LOG.info,
        parallel: int = 1,
        dry: bool = False,
        stopped: Callable[[], bool] = lambda: False,
        heard: Callable[[str], object] = lambda service: None,
        caution: Caution = Caution(),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._nodes = nodes
        self._placement = placement
        self._memory = memory
        self._say = say
        self._parallel = parallel
        self._dry = dry
        self._stopped = stopped
        self._heard = heard
        self._caution = caution
        self._clock = clock
        # The nodes for which Placement did not answer: they come last in the next pass,
        # so that they do not hold up the others.
        self._unanswered: set[str] = set()

    def synchronise_all(self) -> Tally:
        """Copy all nodes to Placement, and remove providers whose nodes are gone.

        :raises Unreadable: the nodes cannot be read; nothing was done
        """
        nodes = self._nodes.list_nodes()
        self._heard("nodes")
        own = self._memory.providers
        gone = own.difference(map(_uuid, nodes))
        held = self._hold(gone, own)
        tally = self._pass(nodes, gone - held)
        if held:
            LOG.error(
                "%s of %s nodes are missing at once: their providers are not removed "
                "(--remove-many)",
                len(held),
                len(own),
            )
            tally.held |= held
            tally.failed |= held
        return tally

    def _hold(self, gone: frozenset[str], own: frozenset[str]) -> frozenset[str]:
        """Return the providers not to be removed yet, although their nodes are missing.

        If the memory cannot be written, the next pass notes them.
        """
        now, caution, before = self._clock(), self._caution, self._memory.missing
        many = gone if len(gone) > caution.few or gone == own else frozenset()
        if not self._dry:
            try:
                self._memory.miss(many, now)
            except Unusable as exc:
                LOG.error("%s", exc)
        wait = 0 if caution.expected else caution.quiet
        return frozenset(
            uuid for uuid in many if uuid not in before or now - before[uuid] < wait
        )

    def synchronise_one(self, ident: str) -> Tally:
        """Copy one node to Placement, or remove its provider if the node is gone.

        :raises Unreadable: it cannot be read; nothing was done
        """
        node = self._nodes.find_node(ident)
        self._heard("nodes")
        uuid = plan.spelled(ident)
        if node is None and uuid in self._memory.providers:
            # Ironic finds a node only in the spelling that it keeps.
            nodes = self._nodes.list_nodes()
            node = next((each for each in nodes if _uuid(each) == uuid), None)
        if node is not None:
            return self._pass([node], [])
        if uuid in self._memory.providers:
            return self._pass([], [uuid])
        LOG.error("there is no node %s", ident)
        return Tally(failed={ident})

    def _pass(self, nodes: Iterable[Mapping[str, Any]], gone: Collection[str]) -> Tally:
        tally = Tally()
        wanted = list(_wanted(nodes, self._memory.providers, tally))
        if not self._dry:
            wanted = self._remembered(wanted, tally)
        tasks: list[tuple[str, Task]] = [
            *((each.uuid, partial(self._synchronise, each)) for each in wanted),
            *((uuid, partial(self._remove, uuid)) for uuid in sorted(gone)),
        ]
        if tasks:
            self._work(tasks, tally)
            self._forget(tally)
        else:
            self._ask_for_nothing()
        return tally

    def _remembered(self, wanted: list[Wanted], tally: Tally) -> list[Wanted]:
        """Record the providers of nodes, and return the recorded nodes.

        Creation comes afterwards: a provider without a record would never be removed.
        """
        try:
            self._memory.add(each.uuid for each in wanted)
        except Unusable as exc:
            own = self._memory.providers
            new = {each.uuid for each in wanted} - own
            LOG.error("%s new nodes wait for the next pass: %s", len(new), exc)
            tally.failed |= new
            return [each for each in wanted if each.uuid in own]
        return wanted

    def _ask_for_nothing(self) -> None:
        """Check whether Placement answers, in a pass without work."""
        try:
            self._placement.get("/", version="1.0")
        except errors.PlacementError as exc:
            LOG.error("%s: %s", UNANSWERED, exc)
        else:
            self._heard("placement")

    def _work(self, tasks: Sequence[tuple[str, Task]], tally: Tally) -> None:
        """Do tasks, some at a time; a failure of one does not stop the others.

        The work stops only if Placement does not answer at all.
        """
        # How many nodes in a row have got no answer. Threads may miss one of them.
        silent = 0
        tasks = sorted(tasks, key=lambda named: named[0] in self._unanswered)
        self._unanswered &= {uuid for uuid, _ in tasks}
        untried: set[str] = set()

        def work(named: tuple[str, Task]) -> None:
            nonlocal silent
            uuid, task = named
            if self._stopped():
                untried.add(uuid)
                tally.failed.add(uuid)
            elif silent >= PATIENCE:
                tally.unanswered.add(uuid)
                tally.failed.add(uuid)
            else:
                answered = self._attempt(uuid, task, tally)
                if answered is not None and silent < PATIENCE:
                    silent = 0 if answered else silent + 1

        with futures.ThreadPoolExecutor(self._parallel) as threads:
            # Each result is read, so that no error is lost.
            for _ in threads.map(work, tasks):
                pass
        if untried:
            LOG.warning("stopped: %s nodes wait for the next pass", len(untried))
        if silent >= PATIENCE:
            LOG.error(
                "Placement does not answer: %s nodes wait for the next pass",
                len(tally.unanswered),
            )

    def _attempt(self, uuid: str, task: Task, tally: Tally) -> bool | None:
        """Do a task, and return whether Placement answered; None if it is not known."""
        try:
            if task(tally) is False:
                return None
        except SILENCE as exc:
            self._unanswered.add(uuid)
            tally.unanswered.add(uuid)
            _blame(uuid, f"{UNANSWERED}: {exc}", tally)
            return False
        except errors.PlacementError as exc:
            _blame(uuid, str(exc), tally)
        except Unreadable as exc:
            _blame(uuid, str(exc), tally)
            return None
        except Exception:
            # A fault of one node must not affect the others.
            LOG.exception("%s: the agent failed", uuid)
            tally.failed.add(uuid)
            return None
        self._heard("placement")
        self._unanswered.discard(uuid)
        return True

    def _synchronise(self, wanted: Wanted, tally: Tally) -> None:
        faults = self._placement.retry_lost_races(partial(self._once, wanted, tally))
        for fault in faults:
            _blame(wanted.uuid, fault, tally)
        if not faults and wanted.uuid not in tally.left_out:
            tally.synchronised.add(wanted.uuid)

    def _once(self, wanted: Wanted, tally: Tally) -> list[str]:
        """Compare a node with its provider, make the changes, and report faults.

        :raises errors.Conflict: another client has changed the provider meanwhile
        """
        found = plan.find(self._placement, wanted)
        faults = [
            f"Placement does not know the standard trait {name}, because its os-traits "
            "is older: it is left out"
            for name in plan.unknown_traits(wanted, found)
        ]
        generation = found.generation
        for step in plan.steps(wanted, found):
            self._say(f"{wanted.uuid}: {step.text}")
            if self._dry:
                continue
            try:
                generation = step.perform(self._placement, generation)
            except errors.Conflict as exc:
                if not (step.optional and exc.in_use):
                    raise
                if wanted.resource_class is not None:
                    faults.append(f"the old inventory is kept: {exc}")
            else:
                tally.changed.add(wanted.uuid)
        return faults

    def _remove(self, uuid: str, tally: Tally) -> bool:
        if self._nodes.find_node(uuid) is not None:
            # The node has been enrolled since the list was read.
            return False
        self._say(f"{uuid}: the node is gone, delete the provider")
        if self._dry:
            return False
        try:
            self._placement.delete(path_of("resource_providers", uuid), version="1.23")
        except errors.Conflict as exc:
            if exc.in_use:
                # Until its instance has gone; no other instance must get the node.
                self._placement.change(uuid, INVENTORIES, plan.reserve)
            raise
        except errors.NotFound:
            # A 404 may come from a proxy, or from Keystone.
            if plan.is_there(self._placement, uuid):
                raise
            LOG.debug("the provider %s is gone already", uuid)
        tally.removed.add(uuid)
        return True

    def _forget(self, tally: Tally) -> None:
        """Forget the providers that were removed, in one write for all of them.

        After a crash, the next pass finds that they are gone already.
        """
        try:
            self._memory.forget(tally.removed)
        except Unusable as exc:
            LOG.error("%s", exc)
            tally.failed |= tally.removed


def _wanted(
    nodes: Iterable[Mapping[str, Any]], own: Collection[str], tally: Tally
) -> Iterator[Wanted]:
    """Yield the target of each provider, and report nodes that cannot be allocated.

    :param own: the providers of the agent: without a resource class, they stay, but
        nothing of them can be allocated
    """
    for node in nodes:
        uuid = _uuid(node)
        try:
            wanted = plan.wanted_of(node)
        except (KeyError, TypeError, ValueError) as exc:
            _blame(uuid, f"the node cannot be parsed: {exc!r}", tally)
            continue
        if wanted.resource_class is None:
            LOG.warning("%s: the node has no resource class, and is left out", uuid)
            tally.left_out.add(uuid)
        if wanted.resource_class is not None or uuid in own:
            yield wanted


def _uuid(node: Mapping[str, Any]) -> str:
    """Return the UUID of a node, or what is in its place."""
    return plan.spelled(str(node.get("uuid")))


def _blame(uuid: str, what: str, tally: Tally) -> None:
    LOG.error("%s: %s", uuid, what)
    tally.failed.add(uuid)
