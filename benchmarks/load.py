"""How long a process takes to load a cloud, and how much memory that needs."""

import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from placement.forest import cache
from placement_foundation import option
from placement_foundation.database import storage

PAGE = 4096


def measure(url: str) -> dict[str, float]:
    """Return milliseconds of processor time and megabytes, from a separate process."""
    command = [sys.executable, "-m", "benchmarks.load", url]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures: dict[str, Any] = json.loads(output)
    return figures


def main() -> None:
    """Load a cloud, and print the time and the memory as JSON."""
    database = storage.connect(option.DatabaseSettings(sys.argv[1]))
    database.read(lambda connection: None)
    before, begun = _resident(), time.process_time()
    kept = cache.CachedForest()
    cache.warm_up(database, kept)
    took = time.process_time() - begun
    gc.collect()
    figures = {"milliseconds": took * 1000, "megabytes": (_resident() - before) / 1e6}
    print(json.dumps(figures))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


if __name__ == "__main__":
    main()
