"""From runs to numbers and tables. Needs nothing but the standard library."""

import math
import statistics

from peers import cases

MIB = 2**20


def step_seconds(lines, warmup):
    """Seconds of each timed step: from the line before to its own. The first `warmup` lines are not timed."""
    times = [line["at"] for line in lines]
    return [b - a for a, b in zip(times[warmup - 1:], times[warmup:])]


def difference(lines, reference, key, steps=cases.COMPARED_STEPS["flat"]):
    """Largest relative difference of the first steps; infinite where a number is missing or is none."""
    count = min(steps, len(lines), len(reference))
    if count == 0:
        return math.inf
    pairs = [(a.get(key), b.get(key)) for a, b in zip(lines[:count], reference[:count])]
    if any(x is None or not math.isfinite(x) for pair in pairs for x in pair):
        return math.inf
    return max(abs(a - b) / max(abs(b), 1e-30) for a, b in pairs)


def summarize(runs, tokens, warmup):
    """Numbers of a candidate over its runs, dicts of start_s, lines, peak_bytes, tree_bytes, others_cpus and load."""
    steps = [s for run in runs for s in step_seconds(run["lines"], warmup)]
    return {"runs": runs, "steps_s": steps, "step_s": statistics.median(steps),
            "tokens_per_s": tokens / statistics.median(steps), "fastest_step_s": min(steps),
            "first_step_s": statistics.median(run["start_s"] + run["lines"][0]["at"] for run in runs),
            "peak_bytes": statistics.median(run["peak_bytes"] for run in runs),
            "tree_bytes": statistics.median(run["tree_bytes"] for run in runs),
            "children": any(run["children"] for run in runs),
            "others_cpus": statistics.median(run["others_cpus"] for run in runs),
            "load": statistics.median(run["load"] for run in runs)}


def compare(row):
    """Adds to each candidate of a row how far its first losses and gradient norms are from the first peer's."""
    measured = row["measured"]
    reference = next((name for name in ("eager", "compile", "jax", "bowline") if name in measured), None)
    for name, numbers in measured.items():
        lines, other = numbers["runs"][0]["lines"], measured[reference]["runs"][0]["lines"]
        steps = cases.COMPARED_STEPS[row["weights"]]
        numbers["reference"] = reference
        numbers["loss_difference"] = difference(lines, other, "loss", steps)
        numbers["norm_difference"] = difference(lines, other, "grad_norm", steps)
        numbers["agrees"] = numbers["loss_difference"] <= cases.LOSS_TOLERANCE[row["dtype"]]


def best_peers(measured):
    """(most tokens per second, least peak memory) of the peers; None without any."""
    peers = [numbers for name, numbers in measured.items() if name != "bowline"]
    if not peers:
        return None
    return max(p["tokens_per_s"] for p in peers), min(p["tree_bytes"] for p in peers)


def ratios(row):
    """Bowline's speed over the fastest peer's and its memory over that of the thriftiest; None where one is missing."""
    best, ours = best_peers(row["measured"]), row["measured"].get("bowline")
    if best is None or ours is None:
        return None
    return ours["tokens_per_s"] / best[0], ours["tree_bytes"] / best[1]


def share_of_bound(row):
    """Bowline's part of the speed at which the processors would do nothing but the step's arithmetic."""
    ours, peak = row["measured"].get("bowline"), row["peak_gflop_per_s"]
    if ours is None or peak is None:
        return None
    return ours["gflop"] / peak / ours["step_s"]


def memory_text(numbers):
    own = f"{numbers['peak_bytes'] / MIB:.0f}"
    return f"{own} ({numbers['tree_bytes'] / MIB:.0f} with its compiler's processes)" if numbers["children"] else own


def agreement_text(numbers, name):
    if numbers["reference"] == name:
        return "compared with"
    verdict = "agree" if numbers["agrees"] else "**differ**"
    return f"{verdict} ({numbers['loss_difference']:.0e}; norms {numbers['norm_difference']:.0e})"


def candidate_rows(row):
    for name, title in cases.CANDIDATES.items():
        begin = f"| {row['title']} | {row['weights']} | {row['dtype']} | {title} |"
        if name in row["failed"]:
            yield f"{begin} {row['failed'][name]} | | | | |"
        elif name in row["measured"]:
            n = row["measured"][name]
            yield (f"{begin} {n['tokens_per_s']:.0f} | {n['step_s'] * 1e3:.0f} ({n['fastest_step_s'] * 1e3:.0f}) | "
                   f"{memory_text(n)} | {n['first_step_s']:.1f} | {agreement_text(n, name)} |")


def summary_row(row):
    ratio, share, measured = ratios(row), share_of_bound(row), row["measured"]
    cells = [row["title"], row["weights"], row["dtype"]]
    cells += [f"{ratio[0]:.2f}", f"{ratio[1]:.2f}"] if ratio else ["-", "-"]
    if share is None:
        cells += ["-", "-"]
    else:
        gflop, peak = measured["bowline"]["gflop"], row["peak_gflop_per_s"]
        cells += [f"{gflop:.0f} GFLOP / {peak:.0f} GFLOP/s = {gflop / peak * 1e3:.0f} ms", f"{share * 100:.0f}%"]
    others = [n["others_cpus"] for n in measured.values()]
    loads = [run["load"] for n in measured.values() for run in n["runs"]]
    cells += [f"{max(others):.2f}", f"{min(loads):.1f} to {max(loads):.1f}"] if others else ["-", "-"]
    return f"| {' | '.join(cells)} |"


def markdown(result):
    """Two tables: Bowline beside the best peer, then every candidate."""
    text = ["| model | weights | dtype | Bowline's tokens/s over the fastest peer's | its peak memory over the thriftiest's | "
            "bound by arithmetic | Bowline's share of it | processors that others used | load before |",
            "|---|---|---|---|---|---|---|---|---|"]
    text += [summary_row(row) for row in result["rows"]]
    text += ["", "| model | weights | dtype | with | tokens/s | step, ms (fastest) | peak memory, MiB | first step after, s | "
                 "first losses |", "|---|---|---|---|---|---|---|---|---|"]
    text += [line for row in result["rows"] for line in candidate_rows(row)]
    settings, versions = result["settings"], ", ".join(f"{k} {v}" for k, v in result["versions"].items())
    text += ["", f"Rounds: {settings['rounds']}, of {settings['steps']} timed steps after {settings['warmup']}; "
                 f"threads: {settings['threads']}; {versions}."]
    if settings.get("compile_flags"):
        text[-1] += f" Compiled with `{' '.join(settings['compile_flags'])}`."
    return "\n".join(text) + "\n"


def all_well(result):
    """Nothing failed and all losses agree. An element type that Bowline does not have is said in the table instead."""
    return all(not row["broken"] and all(n["agrees"] for n in row["measured"].values()) for row in result["rows"])
