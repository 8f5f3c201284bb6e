"""Quotations of what the caller sent, never at length."""

# In characters. A quotation is cut in the middle, because an explanation follows it.
QUOTED = 300
# A whole message, including the part of a schema that it shows.
MESSAGE = 4000


def cut(text: str, length: int = QUOTED) -> str:
    """Return a string for quoting: only its beginning and its end if it is long."""
    if len(text) <= length:
        return text
    end = length // 4
    return f"{text[: length - end]} [...] {text[-end:]}"
