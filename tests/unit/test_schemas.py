"""Every schema of every service is itself right."""

import jsonschema

from tests import schemas


def test_every_schema_is_right() -> None:
    # Programs need not check that whenever they start.
    names = schemas.modules()
    assert len(names) > 20
    found = schemas.every()
    assert len(found) >= len(names)
    for schema in found:
        jsonschema.Draft202012Validator.check_schema(schema.document)
