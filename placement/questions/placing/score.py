"""How much a host is preferred."""

from collections.abc import Callable, Mapping, Sequence

from placement.model.tree import Tree
from placement.questions.placing.overlay import Amounts
from placement.questions.placing.query import Preference, Quality


def _has_trait(tree: Tree, name: str, taken: Amounts) -> float:
    return float(any(name in member.traits for member in tree.members))


def _is_member(tree: Tree, name: str, taken: Amounts) -> float:
    return float(name in tree.root.aggregates)


def _is_host(tree: Tree, name: str, taken: Amounts) -> float:
    return float(tree.root.uuid == name)


def _free(tree: Tree, name: str, taken: Amounts) -> float:
    """Return the free part of the capacity of a class; 0 if there is none."""
    capacity = free = 0
    for member in tree.members:
        inventory = member.inventories.get(name)
        if inventory:
            capacity += inventory.capacity
            free += inventory.free - taken.get(member.uuid, {}).get(name, 0)
    return min(max(free / capacity, 0.0), 1.0) if capacity > 0 else 0.0


VALUES: Mapping[Quality, Callable[[Tree, str, Amounts], float]] = {
    Quality.TRAIT: _has_trait,
    Quality.AGGREGATE: _is_member,
    Quality.HOST: _is_host,
    Quality.FREE: _free,
}


class Score:
    """Adds up the values that a list of preferences gives to a tree."""

    def __init__(self, prefer: Sequence[Preference]) -> None:
        # Looked up once, and not for each of the trees.
        self._parts = [
            (each.weight, VALUES[each.quality], each.name) for each in prefer
        ]

    def of(self, tree: Tree, taken: Amounts) -> float:
        """Return the sum of the weighted values of a tree.

        :param taken: the amounts of a placement; they count for the free parts
        """
        return sum(
            [weight * value(tree, name, taken) for weight, value, name in self._parts]
        )

    def of_each(self, tree: Tree, taken: Amounts, times: int) -> list[float]:
        """Return the scores of placements that follow each other on a tree.

        :param taken: the amounts of each of them
        """
        return [self.of(tree, _times(taken, number)) for number in range(1, times + 1)]


def _times(amounts: Amounts, number: int) -> Amounts:
    return {
        uuid: {name: number * amount for name, amount in each.items()}
        for uuid, each in amounts.items()
    }
