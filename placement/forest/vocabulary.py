"""The names of all resource classes and traits."""

import dataclasses
from collections.abc import Iterable, Mapping

from placement.model.trait import CUSTOM_PREFIX


@dataclasses.dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Vocabulary:
    """All names, by id.

    Traits are in the order of their creation, standard ones first; ``ranks`` are their
    places in this order, by id.
    """

    classes: Mapping[int, str]
    traits: Mapping[int, str]
    class_ids: Mapping[str, int]
    trait_ids: Mapping[str, int]
    ranks: Mapping[int, int]

    def in_order(self, trait_ids: Iterable[int]) -> tuple[str, ...]:
        """Return the names of traits, in the order of their creation."""
        ordered = sorted(
            filter(self.ranks.__contains__, trait_ids), key=self.ranks.__getitem__
        )
        return tuple(map(self.traits.__getitem__, ordered))


def of_names(classes: Mapping[int, str], traits: Mapping[int, str]) -> Vocabulary:
    """Return the vocabulary of some names, given by id."""
    by_age = {
        key: traits[key]
        for key in sorted(
            traits, key=lambda key: (traits[key].startswith(CUSTOM_PREFIX), key)
        )
    }
    return Vocabulary(
        classes={key: classes[key] for key in sorted(classes)},
        traits=by_age,
        class_ids={name: key for key, name in classes.items()},
        trait_ids={name: key for key, name in by_age.items()},
        ranks={key: rank for rank, key in enumerate(by_age)},
    )
