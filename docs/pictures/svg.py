# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG, for the pictures of the documents: readable on white and on black, text as text."""

from xml.sax.saxutils import escape

FONT = "system-ui, 'DejaVu Sans', Arial, sans-serif"
GREY, INK, PAPER, LINE = "#6b7280", "#1f2937", "#ffffff", "#d1d5db"
COLOURS = ("#3b6fb6", "#c2571a", "#3d8b40", "#8a5fb0", "#b08a00", "#b03060", "#2a8c8c", "#7a5230")


def number(value, unit=""):
    """A value for people: 1234567 is 1.23M, as bytes 1.18Mi; seconds as s, min or h."""
    if unit == "s":
        return f"{value:.3g} s" if value < 100 else f"{value / 60:.3g} min" if value < 6000 else f"{value / 3600:.3g} h"
    step, prefixes = (1024, ("", "Ki", "Mi", "Gi", "Ti")) if unit == "bytes" else (1000, ("", "k", "M", "G", "T"))
    size = 0
    while abs(value) >= step and size + 1 < len(prefixes):
        value, size = value / step, size + 1
    text = f"{value:.0f}" if size == 0 and value == int(value) else f"{value:.3g}"
    return text + prefixes[size] + ("B" if unit == "bytes" else "/s" if unit == "ops" else "")


class Picture:
    def __init__(self, width, height, title, description):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'aria-labelledby="title text" font-family="{FONT}" font-size="12">',
            "<!-- SPDX-License-Identifier: Apache-2.0 -->",
            f'<title id="title">{escape(title)}</title>', f'<desc id="text">{escape(description)}</desc>',
        ]

    def rect(self, x, y, width, height, fill=PAPER, stroke=LINE, radius=4):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}" '
                          f'fill="{fill}" stroke="{stroke}"/>')

    def text(self, x, y, text, size=12, fill=INK, anchor="start", weight="normal", family=None):
        more = f' font-family="{family}" xml:space="preserve"' if family else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" '
                          f'font-weight="{weight}"{more}>{escape(text)}</text>')

    def line(self, points, stroke, width=1.5, dash=""):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="{width}"'
                          + (f' stroke-dasharray="{dash}"' if dash else "") + "/>")

    def save(self, path):
        path.write_text("\n".join([*self.parts, "</svg>"]) + "\n")


def top_of(value, unit=""):
    """The end of an axis: the next of 1, 2, 5, 10, ... from VALUE on; of bytes the next power of 2."""
    power = 1.0
    while unit == "bytes":
        power *= 2
        if power >= value:
            return power
    while power < value:
        power *= 10
    while power / 10 >= value > 0:
        power /= 10
    return next(power * step for step in (0.1, 0.2, 0.5, 1) if power * step >= value)


def axes(picture, box, highest, unit, begin, end):
    """Draws axes into BOX (x, y, width, height); returns a function (time, value) -> point."""
    x, y, width, height = box

    def place(time, value):
        return x + width * (time - begin) / (end - begin), y + height * (1 - value / highest)

    for share in (0, 0.5, 1):
        picture.line([place(begin, share * highest), place(end, share * highest)], LINE, 1)
        picture.text(x - 5, place(0, share * highest)[1] + 4, number(share * highest, unit), 10, GREY, "end")
    for share in (0, 0.5, 1):
        picture.text(x + width * share, y + height + 14, f"{(end - begin) * share:.0f} s", 10, GREY,
                     ("start", "middle", "end")[int(share * 2)])
    return place


def legend(picture, x, y, width, names):
    """Names with their colours in one line, as many as there is room for."""
    at = x
    for i, name in enumerate(names):
        size = 18 + 6.2 * len(name)
        if at + size > x + width:
            picture.text(at, y, f"and {len(names) - i} more", 10, GREY)
            return
        picture.line([(at, y - 4), (at + 10, y - 4)], COLOURS[i % len(COLOURS)], 3)
        picture.text(at + 14, y, name, 10, GREY)
        at += size + 8
