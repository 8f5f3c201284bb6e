"""A client of the reservation API, for tests that call the application directly."""

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import webob

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the service; the document is None if there is none."""

    status: int
    document: Any
    headers: Any

    @property
    def message(self) -> str:
        return str(self.document["error_message"])


class Visitor:
    """A client of the service."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        request = webob.Request.blank(path, method=method)
        for name, value in headers.items():
            request.headers[name.replace("_", "-")] = value
        if body is not None:
            request.content_type = "application/json"
            request.body = (
                body if isinstance(body, bytes) else json.dumps(body).encode()
            )
        response = request.get_response(self._application)
        document: Any = json.loads(response.body) if response.body else None
        if response.status_int >= 400:
            code = response.status_int
            assert set(document) == {"error_code", "error_message", "error_name"}
            assert document["error_code"] == document["error_name"] == code
            assert document["error_message"]
        return Answer(response.status_int, document, response.headers)

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status == 200, answer
        return answer.document
