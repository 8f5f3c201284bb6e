"""A stand-in for Nova's compute API: what it refuses, Nova refuses.

The bodies of requests are openstacksdk's, and not checked here.

``tests/clients/test_real_nova.py`` asks the same of a real Nova.
"""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import webob

OLDEST, NEWEST = (2, 1), (2, 90)
# The parameters of lists.
PARAMETERS = {
    "servers": {"host", "flavor", "all_tenants", "all_projects", "limit", "marker"},
    "os-hypervisors": {"hypervisor_hostname_pattern", "with_servers", "limit"}
    | {"marker"},
    "flavors": {"is_public", "limit", "marker", "sort_key", "sort_dir", "minRam"},
    "os-aggregates": set(),
}


# What Nova refuses: method, path, microversion and body of a request, and the status.
REFUSED: list[tuple[str, str, str, Any, int]] = [
    ("GET", "os-aggregates", "2.999", None, 406),
    ("GET", "os-aggregates", "two", None, 400),
    ("GET", "servers?what=1", "2.90", None, 400),
    ("GET", "os-aggregates/freepool", "2.1", None, 400),
    ("GET", "flavors/nosuch", "2.1", None, 404),
    ("DELETE", "flavors/nosuch", "2.1", None, 404),
    ("DELETE", "servers/nosuch", "2.1", None, 404),
    (
        *("POST", "flavors/nosuch/action", "2.1"),
        {"addTenantAccess": {"tenant": "blue"}},
        404,
    ),
    ("GET", "nosuch", "2.1", None, 404),
]


class Refused(Exception):
    """A request that Nova would refuse."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclasses.dataclass
class Nova:
    """The part of the compute API that the service uses.

    Hypervisors are keyed by the host of their service, and have another name.
    """

    hypervisors: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    servers: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    flavors: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    access: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    aggregates: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    # These see every call, and may raise what Nova answers instead.
    before: Callable[[str], None] = lambda call: None
    after: Callable[[str], None] = lambda call: None
    versions: set[str] = dataclasses.field(default_factory=set)

    def __call__(self, environ: Any, start_response: Any) -> Any:
        request = webob.Request(environ)
        try:
            self.before(f"{request.method} {request.path_info}")
            status, document = self._route(request)
            self.after(f"{request.method} {request.path_info}")
        except Refused as refused:
            status = refused.status
            document = {"refused": {"code": status, "message": str(refused)}}
        response = webob.Response(status=status, json_body=document)
        if document is None:
            response = webob.Response(status=status)
        return response(environ, start_response)

    def _route(self, request: Any) -> tuple[int, Any]:
        root, *parts = request.path_info.strip("/").split("/")
        if root != "v2.1":
            raise Refused(404, f"there is no {root}")
        if not parts:
            return 200, {
                "version": {
                    "id": "v2.1",
                    "status": "CURRENT",
                    "version": f"{NEWEST[0]}.{NEWEST[1]}",
                    "min_version": f"{OLDEST[0]}.{OLDEST[1]}",
                    "links": [{"rel": "self", "href": f"{request.host_url}/v2.1/"}],
                }
            }
        version = self._negotiate(request)
        self._check(request, parts)
        body = request.json_body if request.content_length else None
        return self._answer(request, parts, body, version)

    def _negotiate(self, request: Any) -> tuple[int, int]:
        """Return the microversion of a request, as Nova does: 2.1 if none is named."""
        sent = request.headers.get("OpenStack-API-Version", "compute 2.1")
        found = re.fullmatch(r"compute ([1-9]\d*)\.(0|[1-9]\d*)", sent)
        if not found:
            raise Refused(400, f"API Version String {sent} is of invalid format")
        self.versions.add(sent.removeprefix("compute "))
        version = int(found[1]), int(found[2])
        if not OLDEST <= version <= NEWEST:
            raise Refused(406, f"Version {sent} is not supported by the API")
        return version

    def _check(self, request: Any, parts: list[str]) -> None:
        """Check the parameters of a list."""
        if (request.method == "GET" and len(parts) == 1) or parts[1:] == ["detail"]:
            for name in request.params:
                if name not in PARAMETERS[parts[0]]:
                    raise Refused(400, f"Additional properties are not allowed: {name}")

    def _answer(
        self, request: Any, parts: list[str], body: Any, version: tuple[int, int]
    ) -> tuple[int, Any]:
        match request.method, parts:
            case "GET", ["os-hypervisors", "detail"]:
                return 200, {"hypervisors": self._hypervisors(request, version)}
            case "GET", ["servers"]:
                return 200, {"servers": self._servers(request)}
            case "DELETE", ["servers", server]:
                self._pop(self.servers, server, "Instance")
                return 204, None
            case "POST", ["flavors"]:
                return 200, {"flavor": self._create_flavor(body["flavor"])}
            case "GET", ["flavors"]:
                return 200, {"flavors": list(self.flavors.values())}
            case "GET", ["flavors", "detail"]:
                return 200, {"flavors": list(self.flavors.values())}
            case "GET", ["flavors", flavor]:
                return 200, {"flavor": self._get(self.flavors, flavor, "Flavor")}
            case "DELETE", ["flavors", flavor]:
                self._pop(self.flavors, flavor, "Flavor")
                self.access = {pair for pair in self.access if pair[0] != flavor}
                return 202, None
            case "GET", ["flavors", flavor, "os-extra_specs"]:
                known = self._get(self.flavors, flavor, "Flavor")
                return 200, {"extra_specs": known["extra_specs"]}
            case "POST", ["flavors", flavor, "os-extra_specs"]:
                known = self._get(self.flavors, flavor, "Flavor")
                known["extra_specs"].update(body["extra_specs"])
                return 200, body
            case "POST", ["flavors", flavor, "action"]:
                return 200, {"flavor_access": self._grant(flavor, body)}
            case "GET", ["os-aggregates"]:
                return 200, {"aggregates": list(self.aggregates.values())}
            case "POST", ["os-aggregates"]:
                return 200, {"aggregate": self._create_aggregate(body["aggregate"])}
            case "GET", ["os-aggregates", found]:
                return 200, {"aggregate": self._get_aggregate(found)}
            case "POST", ["os-aggregates", found, "action"]:
                return 200, {"aggregate": self._act(self._get_aggregate(found), body)}
        raise Refused(404, f"there is no {request.method} {request.path_info}")

    def _hypervisors(
        self, request: Any, version: tuple[int, int]
    ) -> list[dict[str, Any]]:
        pattern = request.params.get("hypervisor_hostname_pattern", "")
        if version < (2, 53):
            raise Refused(400, "Additional properties are not allowed")
        if version >= (2, 88):
            # The real one asks the hosts for their uptime.
            raise Refused(500, "MessagingTimeout")
        found = [
            each
            for each in self.hypervisors.values()
            if pattern in each["hypervisor_hostname"]
        ]
        if pattern and not found:
            raise Refused(404, f"No hypervisor matching '{pattern}' could be found.")
        return found

    def _servers(self, request: Any) -> list[dict[str, str]]:
        # Without it, only the servers of the caller's project are listed.
        if not {*request.params} & {"all_tenants", "all_projects"}:
            return []
        host, flavor = request.params.get("host"), request.params.get("flavor")
        if flavor is not None and flavor not in self.flavors:
            # The real one does not look for the servers of a flavor that is gone.
            return []
        return [
            {"id": server, "name": server}
            for server, known in self.servers.items()
            if host in (None, known["host"]) and flavor in (None, known["flavor"])
        ]

    def _create_flavor(self, asked: dict[str, Any]) -> dict[str, Any]:
        if any(
            each["id"] == asked["id"] or each["name"] == asked["name"]
            for each in self.flavors.values()
        ):
            raise Refused(409, f"Flavor with ID {asked['id']} already exists.")
        self.flavors[asked["id"]] = {**asked, "extra_specs": {}}
        return self.flavors[asked["id"]]

    def _grant(self, flavor: str, body: dict[str, Any]) -> list[dict[str, str]]:
        ((action, asked),) = body.items()
        key = (flavor, asked["tenant"])
        known = self._get(self.flavors, flavor, "Flavor")
        if known["os-flavor-access:is_public"]:
            raise Refused(409, "Can not add access to a public flavor.")
        if action == "addTenantAccess":
            if key in self.access:
                raise Refused(409, f"Flavor access already exists: {key}")
            self.access.add(key)
        elif key in self.access:
            self.access.remove(key)
        else:
            raise Refused(404, f"Flavor access not found for {key}")
        return [
            {"flavor_id": each, "tenant_id": project}
            for each, project in sorted(self.access)
            if each == flavor
        ]

    def _create_aggregate(self, asked: dict[str, Any]) -> dict[str, Any]:
        if any(each["name"] == asked["name"] for each in self.aggregates.values()):
            raise Refused(409, f"Aggregate {asked['name']} already exists.")
        number = str(len(self.aggregates) + 1)
        made = {"id": int(number), "hosts": [], "metadata": {}, **asked}
        self.aggregates[number] = made
        return made

    def _get_aggregate(self, number: str) -> dict[str, Any]:
        if not number.isdecimal():
            # The real one does not look for names.
            raise Refused(400, f"Invalid aggregate id {number}")
        found: dict[str, Any] = self._get(self.aggregates, number, "Aggregate")
        return found

    def _act(self, aggregate: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        ((action, asked),) = body.items()
        host, hosts = asked["host"], aggregate["hosts"]
        if host not in self.hypervisors:
            raise Refused(404, f"Compute host {host} could not be found.")
        if action == "add_host":
            if host in hosts:
                raise Refused(409, f"Aggregate already has host {host}.")
            hosts.append(host)
        elif host in hosts:
            hosts.remove(host)
        else:
            raise Refused(404, f"Aggregate has no host {host}.")
        return aggregate

    def _get(self, known: dict[str, Any], key: str, kind: str) -> Any:
        if key not in known:
            raise Refused(404, f"{kind} {key} could not be found.")
        return known[key]

    def _pop(self, known: dict[str, Any], key: str, kind: str) -> None:
        self._get(known, key, kind)
        del known[key]
