"""What a process knows of the cloud."""

from sqlalchemy.orm import Session

from placement.objects.candidates import name, prefilter, snapshot, vocabulary
from placement.objects.candidates.forest import Forest
from placement.search.model import Request


def load(session: Session, request: Request | None = None) -> Forest:
    """Return the forest as the transaction sees it.

    What is done with it needs no database, and should wait until the transaction has
    ended.

    :param request: what it is to be searched for; trees that cannot matter to that may
        be missing
    """
    words = vocabulary.load(session)
    roots = None
    if request and name.are_known(request, words):
        roots = prefilter.list_relevant(session, request, words).roots
    return Forest(words, snapshot.load(session, words, roots))
