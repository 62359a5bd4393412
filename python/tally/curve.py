"""A curve of losses as an SVG: `svg` returns it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 220, 56, 16, 24, 36


def svg(losses: Sequence[float], steps: Sequence[float] | None = None, title: str = "loss") -> str:
    """Draws losses over steps. What is no number leaves a gap."""
    at = list(steps) if steps is not None else list(range(len(losses)))
    points = [(x, y) for x, y in zip(at, losses, strict=True) if math.isfinite(y)]
    low, high = (min(y for _, y in points), max(y for _, y in points)) if points else (0.0, 1.0)
    if high - low < 1e-12:
        low, high = low - 0.5, high + 0.5
    first, last = (at[0], at[-1]) if at else (0, 1)
    span = (last - first) or 1

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (x - first) / span * (WIDTH - LEFT - RIGHT)
        return round(across, 1), round(TOP + (high - y) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<g font-family="sans-serif" font-size="11" fill="#555"><text x="{LEFT}" y="14">{escape(title)}</text>',
    ]
    for part in range(5):
        y = low + (high - low) * part / 4
        _, v = place(first, y)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{v}" y2="{v}" stroke="#ddd"/><text x="{LEFT - 6}" y="{v + 4}" text-anchor="end">{y:.4g}</text>')
    for x in dict.fromkeys((first, first + span / 2, last)):
        h, _ = place(x, low)
        out.append(f'<text x="{h}" y="{HEIGHT - 18}" text-anchor="middle">{x:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 4}" text-anchor="middle">step</text></g>')
    run: list[tuple[float, float]] = []
    for x, y in [*zip(at, losses, strict=True), (math.nan, math.nan)]:
        if math.isfinite(y):
            run.append(place(x, y))
        elif run:
            out.append(f'<polyline points="{" ".join(f"{h},{v}" for h, v in run)}" fill="none" stroke="#2563eb" stroke-width="2"/>')
            run = []
    out += [f'<circle cx="{h}" cy="{v}" r="2.5" fill="#2563eb"/>' for h, v in (place(x, y) for x, y in points)]
    return "".join(out) + "</svg>"
