"""Tables of pages that scripts take as rules: a line `<!-- NAME -->`, and the table on the lines behind it."""

import pathlib
from typing import NamedTuple


class Row(NamedTuple):
    line: int  # in the page, from 1
    cells: tuple[str, ...]  # without the marks of code


class TableError(Exception):
    """A page without the table, or a table that is none; the message begins with FILE:LINE."""


def cells_of(line: str) -> tuple[str, ...]:
    return tuple(cell.strip().replace("`", "") for cell in line.strip().strip("|").split("|"))


def read_table(page: pathlib.Path, name: str, columns: int) -> list[Row]:
    """The rows below the heading."""
    lines = page.read_text(encoding="utf-8").splitlines()
    marker = f"<!-- {name} -->"
    if lines.count(marker) != 1:
        raise TableError(f"{page}:1: has {lines.count(marker)} lines '{marker}' where one marks the table; write one")
    begin = lines.index(marker) + 1
    end = begin
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    rows = [Row(begin + index + 1, cells_of(line)) for index, line in enumerate(lines[begin:end])]
    for row in rows:
        if len(row.cells) != columns:
            raise TableError(f"{page}:{row.line}: has {len(row.cells)} cells; the table '{name}' has {columns} columns")
    if len(rows) < 3:
        raise TableError(f"{page}:{begin}: '{marker}' marks no table with rows; put it on the line above one")
    return rows[2:]


def names_in(cell: str) -> tuple[str, ...]:
    """The names of a list with commas; none for "none"."""
    return () if cell == "none" else tuple(name.strip() for name in cell.split(","))
