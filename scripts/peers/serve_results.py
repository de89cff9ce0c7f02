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
    "pause": Measure("pauses of 4 streams while a prompt of 2,000 tokens comes, 99th percentile over median", False, 2),
    "first": Measure("first token of a running server, ms", False, 1),
    "start": Measure("start to first token, s", False, 2),
    "memory": Measure("peak memory, MiB", False),
}
# Bowline's best row is to be so many times as good as the best peer of the same weights.
PREFILL_GOAL, OTHER_GOAL = 1.3, 1.0
# Decoding is to be as much better, or to reach so much of the rate that memory bandwidth allows.
DECODE_GOAL, BOUND_GOAL = 1.3, 0.85
# 8 streams are to be so many times as fast as one; 32, as vLLM's.
STREAMS_GOAL, VLLM_GOAL = 5.0, 2.0
PAUSE_GOAL, START_GOAL_S = 2.0, 0.3


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


def verdict(met):
    return "met" if met else "missed"


def peer_goal(rows, key, goal):
    """(line, whether Bowline's best of these rows is so many times as good as the best peer, None where it is unknown)"""
    title, ours, theirs = MEASURES[key].title, best(rows, key, True), best(rows, key, False)
    if not ours or not theirs:
        return f"{title}: not measured for {'Bowline' if not ours else 'any peer'}", None
    value = ratio(key, ours[1], theirs[1])
    return (f"{title}: {ours[0]} is {value:.2f} times as good as {theirs[0]}, the best peer; goal {goal:.1f}: "
            f"{verdict(value >= goal)}"), value >= goal


def decode_goal(rows, threads, rate):
    line, met = peer_goal(rows, f"decode/{threads}", DECODE_GOAL)
    shares = [(statistics.median(values) / bound(rate, row["weight_bytes"]), row["title"]) for row in rows
              if row["ours"] and (values := row["values"].get(f"decode/{threads}"))]
    if not shares:
        return line, None
    share, title = max(shares)
    return (f"{line}; or {BOUND_GOAL:.2f} of the bound by reading, of which {title} has {share:.2f}: "
            f"{verdict(share >= BOUND_GOAL)}"), bool(met) or share >= BOUND_GOAL


def streams_goal(rows):
    rates = [(statistics.median(eight) / statistics.median(one), row["title"]) for row in rows
             if row["ours"] and (eight := row["values"].get("streams/8")) and (one := row["values"].get("decode/2"))]
    if not rates:
        return "8 streams beside one: not measured", None
    value, title = max(rates)
    return (f"8 streams: {title} is {value:.2f} times as fast as with one; goal {STREAMS_GOAL:.1f}: "
            f"{verdict(value >= STREAMS_GOAL)}"), value >= STREAMS_GOAL


def limit_goal(rows, key, limit):
    title, ours = MEASURES[key].title, best(rows, key, True)
    if not ours:
        return f"{title}: not measured for Bowline", None
    return f"{title}: {ours[0]} has {ours[1]:.2f}; goal {limit:.1f} at most: {verdict(ours[1] <= limit)}", ours[1] <= limit


def goals(rows, rates):
    """[(line, True, False or None where it cannot be said)]"""
    lines = []
    for weights in sorted({row["weights"] for row in rows}):
        same = [row for row in rows if row["weights"] == weights]
        found = [*(peer_goal(same, f"prefill/{threads}", PREFILL_GOAL) for threads in rates),
                 *(decode_goal(same, threads, rate) for threads, rate in rates.items()), streams_goal(same)]
        lines += [(f"{weights}: {line}", met) for line, met in found]
    lines.append(peer_goal([row for row in rows if row["ours"] or row["name"] == "vllm"], "streams/32", VLLM_GOAL))
    lines += [limit_goal(rows, "pause", PAUSE_GOAL), limit_goal(rows, "start", START_GOAL_S)]
    return lines + [peer_goal(rows, key, OTHER_GOAL) for key in ("first", "memory")]


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
    """The table of measured rates, and the table of rates that memory bandwidth allows."""
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
