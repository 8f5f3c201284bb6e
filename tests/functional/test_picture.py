"""The pictures of the documentation show what commands print now."""

from docs import picture
from placement_foundation.database.storage import Database


def test_the_picture_is_what_the_command_draws(database: Database) -> None:
    assert picture.PICTURE.read_text() == picture.draw(database)


def test_the_picture_loads_nothing() -> None:
    text = picture.PICTURE.read_text().replace("http://www.w3.org/2000/svg", "")
    assert "url(http" not in text
    assert "@import" not in text
