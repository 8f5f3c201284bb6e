"""Readings of ``/metrics``."""

import re

LINE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')

# A metric: its name, and its labels in order.
Key = tuple[str, tuple[tuple[str, str], ...]]


class Reading:
    """The metrics as Prometheus parses them."""

    def __init__(self, text: str) -> None:
        self.values: dict[Key, float] = {
            (name, tuple(sorted(LABEL.findall(labels)))): float(value)
            for name, labels, value in LINE.findall(text)
        }

    def get(self, name: str, **labels: str) -> float:
        """Return the sum over all metrics with a name and some labels."""
        wanted = set(labels.items())
        return sum(
            value
            for (each, having), value in self.values.items()
            if each == name and wanted <= set(having)
        )

    def names(self) -> set[str]:
        return {name for name, _ in self.values}

    def labelled(self, label: str) -> set[str]:
        """Return all values of a label."""
        return {
            dict(having)[label] for _, having in self.values if label in dict(having)
        }
