"""What operators read of the errors of libraries."""

import re


def without_location(text: str) -> str:
    """Return the message of an error about an option, naming its file or variable.

    oslo.config names the kind of place as well, which is for programmers.
    """
    return re.sub(r"LocationInfo\(location=.*?, detail='(.*?)'\)", r"\1", text)
