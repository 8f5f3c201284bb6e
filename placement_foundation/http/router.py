"""The row of the table that a path belongs to, found by Routes."""

import functools
import re
from collections.abc import Iterable, Mapping

import routes

from placement_foundation import errors


class Router:
    """Maps a path to its row, and to the parameters in it.

    :param templates: the paths of the table, such as ``/traits/{name}``; where several
        match, the first one counts
    """

    def __init__(self, templates: Iterable[str]) -> None:
        self._mapper = routes.Mapper(register=False)
        for template in templates:
            parameters = re.findall(r"\{(\w+)\}", template)
            self._mapper.connect(
                template,
                template,
                requirements=dict.fromkeys(parameters, "[^/]+"),
                conditions={"function": functools.partial(_is_exactly, template)},
            )
        self._mapper.create_regs([])

    def find(self, path: str) -> tuple[str, dict[str, str]]:
        """Return the path of the table that a path matches, and the parameters in it.

        :raises NotFound: no row of the table matches the path
        """
        match = self._mapper.routematch(path, {"PATH_INFO": path})
        if match is None:
            raise errors.NotFound("")
        parameters, route = match
        return route.name, parameters


def _is_exactly(
    template: str, environment: Mapping[str, str], parameters: Mapping[str, str]
) -> bool:
    """Refuse a path with a line feed at its end, which Routes would accept."""
    return template.format_map(parameters) == environment["PATH_INFO"]
