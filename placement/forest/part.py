"""The part of the cloud that a question is about, if it names providers."""

import dataclasses

from placement.forest.vocabulary import Vocabulary

NONE: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """The trees of the providers that a question names by ``uuids`` and ``names``.

    If one of ``classes`` or ``traits`` does not exist, the question is about the whole
    cloud all the same: whether it is refused depends on what other providers have. A
    question that can be ``helped`` is also about the trees of providers that share. If
    it is ``rooted`` in a named tree, it is about no others; otherwise it is about the
    whole cloud if a named tree has a provider that shares.
    """

    uuids: frozenset[str] = NONE
    names: frozenset[str] = NONE
    classes: frozenset[str] = NONE
    traits: frozenset[str] = NONE
    helped: bool = False
    rooted: bool = True

    def has_known_words(self, vocabulary: Vocabulary) -> bool:
        """Return whether all resource classes and traits that it mentions exist."""
        return (
            self.classes <= vocabulary.class_ids.keys()
            and self.traits <= vocabulary.trait_ids.keys()
        )
