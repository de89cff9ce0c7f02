#!/usr/bin/env python3
"""Draws the loss of a training run in the terminal, from the metrics file that bowline-run wrote.

Each line of the file is a JSON object; those with "step" and the chosen key are points. Braille dots where the terminal
can show them, else asterisks. Points that fall into the same column are averaged, so that the noise of single steps does
not hide the course.
"""

import argparse
import json
import math
import shutil
import sys

# Bits of a braille character (U+2800) by row and column of its 4 x 2 dots.
BRAILLE_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


class MetricsError(Exception):
    """The file has nothing to draw."""


def read_points(lines, key):
    """[(step, value)] in order of steps, and how many values were not finite."""
    points, not_finite = {}, 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise MetricsError(f"line {number}: not a JSON object: {error}") from None
        if not isinstance(record, dict):
            raise MetricsError(f"line {number}: not a JSON object")
        if key not in record or "step" not in record:
            continue
        value = record[key]
        if isinstance(value, (int, float)) and math.isfinite(value):
            # A run that was resumed repeats steps; the last word counts.
            points[record["step"]] = float(value)
        else:
            not_finite += 1
    if not points:
        raise MetricsError(f"no line has 'step' and a finite '{key}'")
    return sorted(points.items()), not_finite


def column_means(points, columns):
    """[(column, mean)]: the points of each of `columns` equal ranges of steps, empty ranges left out."""
    first, last = points[0][0], points[-1][0]
    steps = last - first + 1
    sums = {}
    for step, value in points:
        # Fewer steps than columns are spread out so that the last one is at the right edge.
        column = (step - first) * columns // steps if steps >= columns else (step - first) * (columns - 1) // max(steps - 1, 1)
        total, count = sums.get(column, (0.0, 0))
        sums[column] = (total + value, count + 1)
    return [(column, total / count) for column, (total, count) in sorted(sums.items())]


def rasterise(means, columns, rows):
    """Set of (column, row) dots, row 0 on top, consecutive points joined; and the range (low, high) of values."""
    low, high = min(value for _, value in means), max(value for _, value in means)
    span = high - low or 1.0
    cells = [(column, round((high - value) / span * (rows - 1))) for column, value in means]
    dots = {cells[0]}
    for (x0, y0), (x1, y1) in zip(cells, cells[1:]):
        count = max(x1 - x0, abs(y1 - y0))
        dots |= {(x0 + round((x1 - x0) * i / count), y0 + round((y1 - y0) * i / count)) for i in range(count + 1)}
    return dots, (low, high)


def draw(points, key, width, height, braille):
    """The picture as lines of text, at most `width` characters wide, of `height` rows and two of axis."""
    label = 9
    columns_of, rows_of = (2, 4) if braille else (1, 1)
    columns = max(width - label - 1, 8)
    dots, (low, high) = rasterise(column_means(points, columns * columns_of), columns * columns_of, height * rows_of)
    lines = []
    for row in range(height):
        text = ""
        for column in range(columns):
            if braille:
                bits = sum(BRAILLE_BITS[y][x] for y in range(4) for x in range(2) if (2 * column + x, 4 * row + y) in dots)
                text += chr(0x2800 + bits) if bits else " "
            else:
                text += "*" if (column, row) in dots else " "
        value = high - (high - low) * row / max(height - 1, 1)
        mark = f"{value:{label - 1}.4g} " if row in (0, height // 2, height - 1) else " " * label
        lines.append(f"{mark}|{text}".rstrip())
    first, last = points[0], points[-1]
    lines.append(" " * label + "+" + "-" * columns)
    left, right = f"step {first[0]}", f"step {last[0]}"
    left = left if len(left) + len(right) < columns else ""
    lines.append(" " * (label + 1) + left + right.rjust(columns - len(left)))
    lines.append(f"{key}: {first[1]:.4g} at step {first[0]}, {last[1]:.4g} at step {last[0]}")
    return lines


def main(argv) -> int:
    terminal = shutil.get_terminal_size((100, 24))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("metrics", help="JSON lines, one object per step")
    parser.add_argument("--key", default="loss", help="what to draw (default: %(default)s)")
    parser.add_argument("--width", type=int, default=min(terminal.columns, 100), help="characters")
    parser.add_argument("--height", type=int, default=16, help="rows of the picture")
    parser.add_argument("--ascii", action="store_true", help="asterisks, whatever the terminal can show")
    arguments = parser.parse_args(argv)
    if arguments.width < 20 or arguments.height < 2:
        parser.error("--width must be at least 20 and --height at least 2")

    try:
        with open(arguments.metrics, encoding="utf-8", errors="replace") as file:
            points, not_finite = read_points(file, arguments.key)
    except (OSError, MetricsError) as error:
        print(f"plot-loss: error: {arguments.metrics}: {error}", file=sys.stderr)
        return 1
    braille = not arguments.ascii and (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    for line in draw(points, arguments.key, arguments.width, arguments.height, braille):
        print(line)
    if not_finite:
        print(f"{not_finite} steps have no finite {arguments.key} and are left out")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
