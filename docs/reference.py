"""The parts of the documentation that are generated from the programs.

These are a manual page for each command, made from its help, and the descriptions of
the API with a viewer that needs no network.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from placement import openapi
from placement.microversion import VERSIONS
from placement_foundation.http.version import Version

# The arguments whose help a page shows in addition to that of the command.
HELPS = {
    "placement-api": [],
    "placement-explain": [],
    "placement-manage": [
        "db",
        "db stamp",
        "db online_data_migrations",
        "os-traits",
        "demo",
        "openapi",
        "copy",
        "check",
    ],
    "placement-audit": [],
    "placement-feed": [],
    "placement-apply": ["plan", "export", "drift"],
    "placement-nodes": ["serve", "db sync"],
    "placement-nodes-sync": [],
    "placement-request": ["query", "candidates", "boot", "rebuild-check", "node-patch"],
    "placement-reservations": ["serve", "db sync", "free", "import"],
    "placement-status": ["upgrade check"],
}
PURPOSES = {
    "placement-api": "serve the placement API",
    "placement-apply": "apply hardware that is declared in files",
    "placement-audit": "find claims of consumers that no longer live",
    "placement-explain": "ask why hosts do not serve a request",
    "placement-feed": "forward what changes in the ledger",
    "placement-manage": "manage the database of the placement service",
    "placement-nodes": "serve bare metal nodes and their traits",
    "placement-nodes-sync": "bring bare metal nodes to Placement",
    "placement-request": "ask Placement for a host as a scheduler does",
    "placement-reservations": "serve reservations of hosts",
    "placement-status": "check whether a deployment is ready for this release",
}
MAN_PAGES = [
    (f"man/{name}", name, purpose, ["the authors of Placement"], 1)
    for name, purpose in PURPOSES.items()
]
VIEWER = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>The Placement API</title>
<link rel="stylesheet" href="swagger-ui.css">
<p style="font: 16px sans-serif; margin: 1em 2em">Microversion
<select id="version">OPTIONS</select></p>
<div id="api"></div>
<script src="swagger-ui-bundle.js"></script>
<script>
  const select = document.getElementById("version");
  const asked = location.search.slice(1);
  if ([...select.options].some((option) => option.value === asked)) {
    select.value = asked;
  }
  select.onchange = () => { location.search = select.value; };
  const script = document.createElement("script");
  script.src = `${select.value}.js`;
  script.onload = () => SwaggerUIBundle({
    dom_id: "#api", spec: described, supportedSubmitMethods: [], validatorUrl: null,
  });
  document.body.append(script);
</script>
</html>
"""


def setup(app: Any) -> dict[str, bool]:
    """Write what is generated from the programs, when Sphinx begins and ends."""
    app.connect("builder-inited", write_manual)
    app.connect("build-finished", write_viewer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_manual(app: Any) -> None:
    """Write a page for each command, with its help and that of its subcommands."""
    place = Path(app.srcdir) / "man"
    place.mkdir(exist_ok=True)
    for name, helps in HELPS.items():
        parts = [":orphan:\n", f"{name}\n{'=' * len(name)}\n"]
        for words in ["", *helps]:
            command = f"{name} {words}".strip()
            if words:
                parts.append(f"{command}\n{'-' * len(command)}\n")
            shown = "".join(f"    {line}\n" for line in help_of(command).splitlines())
            parts.append(f"::\n\n{shown}")
        text = "\n".join(parts)
        page = place / f"{name}.rst"
        # Sphinx does not read unchanged files again.
        if not page.exists() or page.read_text() != text:
            page.write_text(text)


def help_of(command: str) -> str:
    """Return the help of a command."""
    name, *words = command.split()
    done = subprocess.run(  # noqa: S603
        [Path(sys.executable).with_name(name), *words, "--help"],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    return done.stdout


def write_viewer(app: Any, failure: Exception | None) -> None:
    """Write the descriptions of the API, and a viewer for the browser."""
    if failure or app.builder.format != "html":
        return
    place = Path(app.outdir) / "openapi"
    place.mkdir(exist_ok=True)
    spec = importlib.util.find_spec("drf_spectacular_sidecar")
    if spec is None or spec.origin is None:
        raise RuntimeError("drf-spectacular-sidecar has the viewer; tox -e docs has it")
    bundle = Path(spec.origin).parent / "static/drf_spectacular_sidecar/swagger-ui-dist"
    for name in ("swagger-ui.css", "swagger-ui-bundle.js", "LICENSE"):
        shutil.copy(bundle / name, place)
    newest_first = [str(Version(*version)) for version in reversed(VERSIONS)]
    for name in newest_first:
        document = json.dumps(openapi.describe(openapi.BY_NAME[name]))
        # A browser loads a script even from a local file, but not a document.
        (place / f"{name}.js").write_text(f"const described = {document};\n")
        (place / f"{name}.json").write_text(document)
    options = "".join(f"<option>{name}</option>" for name in newest_first)
    (place / "index.html").write_text(VIEWER.replace("OPTIONS", options))


# A command without a page is an error that is found when this is imported.
COMMANDS = {
    entry.name
    for entry in metadata.distribution("placement-server").entry_points
    if entry.group == "console_scripts"
} | {"placement-api"}
if HELPS.keys() != COMMANDS or PURPOSES.keys() != COMMANDS:
    raise RuntimeError(f"the manual lacks {COMMANDS ^ HELPS.keys()}")
