"""Settings for Sphinx: ``tox -e docs``."""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import reference

project = "Placement"
project_copyright = "the authors of Placement"
release = metadata.version("placement-server")

extensions = [
    "oslo_config.sphinxext",
    "oslo_policy.sphinxext",
    # Manual pages, and the descriptions of the API: reference.py, next to this file.
    "reference",
]
man_pages = reference.MAN_PAGES
exclude_patterns = ["_build"]
# Commands, their output, files: what is code says so.
highlight_language = "none"
html_theme = "alabaster"
html_theme_options = {
    "page_width": "1260px",
    "body_max_width": "1000px",
    "sidebar_width": "260px",
}
