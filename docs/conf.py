"""Settings of Sphinx: ``tox -e docs``."""

from importlib import metadata

project = "Placement"
project_copyright = "the authors of Placement"
release = metadata.version("placement-server")

extensions = [
    "oslo_config.sphinxext",
    "oslo_policy.sphinxext",
]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"page_width": "1100px", "sidebar_width": "260px"}
