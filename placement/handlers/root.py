"""The root document: which versions of the API there are."""

import datetime

from placement.operation import Call
from placement_foundation.operation import Reply


def show_versions(call: Call[None]) -> Reply:
    """Answer with the versions of the API, to every caller."""
    return Reply(modified=datetime.datetime.now(datetime.UTC).replace(tzinfo=None))
