"""The page that run-card writes: passed and failed checks, and the fastest settings beside expected times."""

import bundle


def number(value, form):
    return "" if value is None else format(value, form)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    return lines + [""]


def expected_of(model):
    """Step times that were measured before and that the compiler's cost model predicts."""
    measured = bundle.read_json("models.json")[model].get("measured")
    predicted = bundle.read_json("plans.json").get(model, {}).get("predicted_ms")
    parts = []
    if measured:
        parts.append(f"{measured['step_ms']} ms (PyTorch {measured['torch_ms']}) on {measured['date']}, {measured['card']}")
    if predicted:
        parts.append(f"{predicted:.1f} ms by the cost model")
    return ", ".join(parts) or "nothing"


def losses(result):
    rows = [(row["plan"], row["driver"] or "default", number(row["difference"], ".1e"), row["bits"],
             "; ".join(row["notes"])) for row in result["losses"]]
    return table(["plan", "driver", "largest difference of a loss", "bits", "notes"], rows)


def suites(result):
    rows = [(row["suite"], row["passed"], row["failed"], row["skipped"], row["seconds"], row["verdict"],
             " ".join(row.get("failures", []))) for row in result["suites"]]
    return table(["suite", "passed", "failed", "skipped", "seconds", "verdict", "failed tests"], rows)


def step_row(row):
    return (number(row.get("step_ms"), ".2f"), number(row.get("tokens_per_s"), ".0f"), number(row.get("mfu"), ".1%"),
            number(row.get("mfu_attention"), ".1%"), number(row.get("host_ms"), ".3f"),
            number(row.get("memory_mib"), "d"), number(row.get("loss"), ".4f"),
            row.get("error", "") or "; ".join(row.get("notes", [])))


STEP_HEAD = ["ms a step", "tokens/s", "MFU, 6 N", "MFU with attention", "host ms", "card's memory, MiB", "last loss",
             "notes"]


def training(result):
    lines = [f"Expected: {expected_of(result['model'])}.", ""]
    lines += table(["choice", *STEP_HEAD], [(row["choice"], *step_row(row)) for row in result["training"]])
    if "fastest" in result:
        lines += [f"Fastest: {result['fastest']['choice']} (`{result['fastest']['settings']}`).", ""]
    return lines


def torch(result):
    rows = [(row["model"], "PyTorch" if row["who"] == "torch" else f"Bowline, {row['settings']}", *step_row(row))
            for row in result["torch"]]
    lines = table(["model", "who", *STEP_HEAD], rows)
    for model in dict.fromkeys(row["model"] for row in result["torch"]):
        steps = {who: [row["step_ms"] for row in result["torch"]
                       if row["model"] == model and row["who"] == who and row.get("step_ms")] for who in ("ours", "torch")}
        if all(steps.values()):
            ratio = min(steps["torch"]) / min(steps["ours"])
            lines += [f"{model}: {ratio:.3f} times PyTorch's speed, by the better turn of each.", ""]
    return lines


def kernels(result):
    found = result["kernels"]
    of_step = sorted((row for row in found["kernels"] if row["step_launches"]),
                     key=lambda row: -row["step_launches"] * row["us"])
    rows = [(row["kernel"][:48], row["step_launches"], f"{row['step_launches'] * row['us'] / 1e3:.2f}", f"{row['us']:.1f}",
             f"{row['gb_per_s']:.0f}", f"{row['share_of_copy']:.0%}", f"{row['tflop_per_s']:.1f}",
             f"{row['share_of_product']:.0%}", number(row.get("share_of_beside"), ".0%"))
            for row in of_step[:25]]
    total = sum(row["step_launches"] * row["us"] for row in of_step) / 1e3
    return [f"Copy {found['copy']['gb_per_s']:.0f} GB/s, product {found['product']['tflop_per_s']:.0f} TFLOP/s. Kernels of a "
            f"step, one by one: {total:.1f} ms.", "",
            *table(["kernel", "launches", "ms a step", "us", "GB/s", "of copy", "TFLOP/s", "of product", "tuned"], rows)]


def sanitizer(result):
    return table(["tool", "result", "the test passed", "seconds"],
                 [(row["tool"], row["summary"], row["ran"], f"{row['seconds']:.0f}") for row in result["sanitizer"]])


def traces(result):
    rows = [(row["kernel"], f"{row['measured_us']:.0f}", number(row["predicted_us"], ".0f"),
             number(row["predicted_us"] and row["measured_us"] / row["predicted_us"], ".2f"))
            for row in result["traces"][:15]]
    return table(["kernel", "measured, us a step", "predicted", "ratio"], rows)


def write(path, phases, results, minutes):
    """`results` has those of the phases that ended, by name."""
    about = results.get("card", {}).get("card") or {}
    lines = ["# On this card", ""]
    if about:
        lines += [f"{about.get('name')}, driver {about.get('driver_version')}, {about.get('memory.total')} MiB; "
                  + ", ".join(f"{name} {version}" for name, version in
                              sorted(results["card"].get("libraries", {}).items())) + ".", ""]
    lines += [f"`run-card`, {minutes:g} minutes. Times of steps are medians; a last loss is of random tokens.", ""]
    rows = [(phase.name, phase.about, results[phase.name]["verdict"] if phase.name in results else "not yet",
             number(results.get(phase.name, {}).get("seconds"), ".0f"), results.get(phase.name, {}).get("why", ""))
            for phase in phases]
    lines += table(["phase", "what", "verdict", "seconds", "why"], rows)
    # A result says by its keys which tables it has.
    writers = {"losses": losses, "suites": suites, "training": training, "torch": torch, "kernels": kernels,
               "sanitizer": sanitizer, "traces": traces}
    for phase in phases:
        result = results.get(phase.name, {})
        for key, writer in writers.items():
            if result.get(key):
                lines += [f"## {phase.name}", "", *writer(result)]
    temporary = path.with_suffix(".new")
    temporary.write_text("\n".join(lines), encoding="utf-8")
    temporary.replace(path)
