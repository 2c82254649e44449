"""Text can be read on every surface, in both themes: the contrast that WCAG asks for at level AA."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SHEET = Path(__file__).resolve().parents[2] / "static" / "ondatra.css"
#: Of text that is not large.
LEAST = 4.5
SURFACES = ("paper", "surface", "sunken")
TEXTS = ("ink", "ink-2", "ink-3", "accent", "ok", "warn", "bad", "idle", "live")


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_every_text_has_enough_contrast_on_every_surface(theme: int) -> None:
    named = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", SHEET.read_text(encoding="utf-8"))
    colours = {name: values[theme] for name, *values in named}
    pairs = [(text, place) for text in TEXTS for place in SURFACES]
    pairs += [(state, f"{state}-soft") for state in ("accent", "ok", "warn", "bad", "idle", "live")]

    weak = {pair: round(c, 2) for pair in pairs if (c := _contrast(*(colours[name] for name in pair))) < LEAST}

    assert weak == {}
