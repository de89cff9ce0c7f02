"""From measurements of serving to numbers, tables and goals. Needs nothing but the standard library."""

import statistics
from typing import NamedTuple

MIB = 2**20


class Measure(NamedTuple):
    title: str
    more_is_better: bool
    digits: int = 0


MEASURES = {
    "prefill/1": Measure("prefill, 1 thread, tokens/s", True),
    "decode/1": Measure("decode, 1 thread, tokens/s", True, 1),
    "prefill/2": Measure("prefill, 2 threads, tokens/s", True),
    "decode/2": Measure("decode, 2 threads, tokens/s", True, 1),
    "streams/8": Measure("8 streams, tokens/s", True),
    "streams/32": Measure("32 streams, tokens/s", True),
    "first": Measure("first token of a running server, ms", False, 1),
    "start": Measure("start to first token, s", False, 2),
    "memory": Measure("peak memory, MiB", False),
}
# Bowline's best row is to be at least as good as the best peer, and decoding to use so much of what memory allows.
PEER_GOAL = 1.0
BOUND_GOAL = 0.7


def prefill_rate(answers):
    return answers.prompt_tokens[0] / answers.first_s[0]


def decode_rate(answers):
    """Tokens per second after the first one, of a request alone."""
    return (answers.tokens[0] - 1) / (answers.last_s[0] - answers.first_s[0])


def stream_rate(answers):
    """Tokens per second of requests side by side, from their sending to the last token of all."""
    return sum(answers.tokens) / max(answers.last_s)


def bound(read_gb_per_s, weight_bytes):
    """Tokens per second of one sequence if nothing but the weights is read, once for each token."""
    return read_gb_per_s * 1e9 / weight_bytes


def cell(values, digits):
    """The median, and the least and the most where there are several."""
    if not values:
        return "-"
    text = f"{statistics.median(values):.{digits}f}"
    return text if len(values) == 1 else f"{text} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def best(rows, key, ours):
    """(title, median) of the best row of Bowline, or of the peers; None without any."""
    found = [(statistics.median(row["values"][key]), row["title"]) for row in rows
             if row["ours"] == ours and row["values"].get(key)]
    if not found:
        return None
    value, title = (max if MEASURES[key].more_is_better else min)(found)
    return title, value


def ratio(key, ours, theirs):
    """Above 1 where ours is the better one."""
    return ours / theirs if MEASURES[key].more_is_better else theirs / ours


def goals(rows, rates):
    """[(line, True, False or None where it cannot be said)]"""
    lines = []
    for key, measure in MEASURES.items():
        ours, theirs = best(rows, key, True), best(rows, key, False)
        if not ours or not theirs:
            lines.append((f"{measure.title}: not measured for {'Bowline' if not ours else 'any peer'}", None))
            continue
        value = ratio(key, ours[1], theirs[1])
        met = value >= PEER_GOAL
        lines.append((f"{measure.title}: {ours[0]} is {value:.2f} times as good as {theirs[0]}, the best peer; goal "
                      f"{PEER_GOAL:.1f}: {'met' if met else 'missed'}", met))
    for row in rows:
        for threads, rate in rates.items():
            values = row["values"].get(f"decode/{threads}")
            if row["ours"] and values:
                share = statistics.median(values) / bound(rate, row["weight_bytes"])
                lines.append((f"decode, {threads} thread{'s' * (threads > 1)}, {row['title']}: {share:.2f} of the bound by "
                              f"reading; goal {BOUND_GOAL:.1f}: {'met' if share >= BOUND_GOAL else 'missed'}",
                              share >= BOUND_GOAL))
    return lines


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def agreement(row, reference):
    """How many characters of the first decoded text are those of the first Bowline row that ran."""
    text, other = row.get("text"), reference.get("text") if reference else None
    if not text or not other or row is reference:
        return "-" if not text else "compared with"
    same = next((i for i, (a, b) in enumerate(zip(text, other)) if a != b), min(len(text), len(other)))
    return f"{same} of {len(other)}"


def measured(ran, rates):
    """The table of what was measured, and the one of what memory allows."""
    keys = [key for key in MEASURES if any(row["values"].get(key) for row in ran)]
    reference = next((row for row in ran if row["ours"] and row.get("text")), None)
    threads = {n: f"{n} thread{'s' * (n > 1)}" for n in rates}
    text = table(["with", *(MEASURES[key].title for key in keys), "same text", "processors that others used"],
                 [[row["title"], *(cell(row["values"].get(key), MEASURES[key].digits) for key in keys),
                   agreement(row, reference), cell(row["others_cpus"], 1)] for row in ran])
    return text + "\n" + table(["with", "weights, MB", *(f"bound by reading, {n}, tokens/s" for n in threads.values()),
                                *(f"share of it, {n}" for n in threads.values())], [bound_row(row, rates) for row in ran])


def markdown(result):
    rows, rates = result["rows"], result["read_gb_per_s"]
    ran = [row for row in rows if any(row["values"].values())]
    text = measured(ran, rates) if ran else "Nothing was measured.\n"
    text += "\nRead: " + ", ".join(f"{rate:.1f} GB/s with {n} thread{'s' * (n > 1)}" for n, rate in rates.items()) + ".\n"
    notes = [f"- {row['title']}: {note}\n" for row in rows for note in row.get("notes", [])]
    text += "\nNotes:\n\n" + "".join(notes) if notes else ""
    skipped = [f"- {row['title']}: {reason}\n" for row in rows for reason in row["failed"]]
    if skipped:
        text += "\nSkipped:\n\n" + "".join(skipped)
    return text + "\nGoals:\n\n" + "".join(f"- {line}\n" for line, _ in goals(rows, rates)) + \
        f"\nLoad: {result['load_before']:.1f} before, {result['load_after']:.1f} after, on {result['processors']} processors.\n"


def bound_row(row, rates):
    bounds = {n: bound(rate, row["weight_bytes"]) for n, rate in rates.items()}
    shares = [cell([statistics.median(values) / bounds[n]], 2) if (values := row["values"].get(f"decode/{n}")) else "-"
              for n in rates]
    return [row["title"], f"{row['weight_bytes'] / 1e6:.0f}", *(f"{bounds[n]:.0f}" for n in rates), *shares]


def status(result):
    """0 when every goal is met, 2 otherwise."""
    return 0 if all(met for _, met in goals(result["rows"], result["read_gb_per_s"])) else 2
