"""Names as a terminal can show them, and questions to the person at it."""

import sys

# On a terminal, these are commands. 0x7f is DEL.
CONTROLS = {code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0))}


def visible(text: str) -> str:
    """Return a string for a terminal: control characters become visible escapes."""
    return text.translate(CONTROLS)


def agrees(question: str) -> bool:
    """Ask a person; output to a pipe is not mixed with the question."""
    # Show the output that the question is about first.
    sys.stdout.flush()
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
