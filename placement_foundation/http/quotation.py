"""Quotations of what the caller sent, never at length."""

import re

# Removed in one pass: what is left must not form a mark with what follows.
COMMENT_MARKS = re.compile("<!--|-->")
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


def strip_tags(text: str) -> str:
    """Return a string as one line without what looks like a tag or a comment of HTML.

    A line break in HTML becomes one in the text. The time is linear in the length of
    the text, whatever it contains.
    """
    text = text.replace("\n", " ").replace("\r", "")
    text = _replace_tags(text, "<br", "\n")
    text = COMMENT_MARKS.sub("", text)
    return _replace_tags(text, "<", "")


def _replace_tags(text: str, beginning: str, replacement: str) -> str:
    lowered = text.lower() if len(text.lower()) == len(text) else text
    kept = []
    position = 0
    while True:
        start = lowered.find(beginning, position)
        end = lowered.find(">", start) if start >= 0 else -1
        if end < 0:
            kept.append(text[position:])
            return "".join(kept)
        kept += [text[position:start], replacement]
        position = end + 1
