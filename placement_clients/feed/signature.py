"""Signatures of webhooks, by the scheme of Standard Webhooks.

See https://www.standardwebhooks.com: the id, the time and the body are signed by
HMAC-SHA256 with a shared secret.
"""

import base64
import hashlib
import hmac

from placement_clients.output import Unusable

PREFIX = "whsec_"


def parse_secret(text: str) -> bytes:
    """Return the key that a secret such as ``whsec_MfKQ9r8G...`` stands for.

    :raises Unusable: it is not base64
    """
    try:
        key = base64.b64decode(text.strip().removeprefix(PREFIX), validate=True)
    except ValueError as exc:
        raise Unusable("the secret is not base64, with or without whsec_") from exc
    if not key:
        raise Unusable("the secret is empty")
    return key


def sign(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of the header ``webhook-signature``."""
    signed = b".".join([message_id.encode(), str(timestamp).encode(), body])
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
