"""The rows of a rank's memory at its peak, as docs/memory.md has them and `bowline compile --report` prints them."""

import json

from memory_formula import Rank, Shape
from memory_test import SHAPES, STRATEGIES

# A large model, and a small one of odd sizes.
RECORDED = [SHAPES["70B"], Shape(hidden=1016, inner=2776, layers=37, heads=8, key_heads=2, vocabulary=50264)]


def layer_rows(rank, largest):
    return {"recomputed": rank.activations()[1], "gradients_of_activations": rank.gradients_of_activations(),
            "gathered": rank.gathered(), "passing_gradients": rank.passing_gradients(largest)}


def loss_rows(rank):
    """Of the head: its gradients, its gathered matrix, and logits, which in f32 are those of tiles."""
    if not rank.has_head:
        return {}
    gathered = rank.strategy.width * rank.table if rank.strategy.zero == 3 and not rank.strategy.once else 0
    gradients = 4 * rank.table * (3 if rank.strategy.dtype == "f32" else 1)
    return {"gathered": gathered, "passing_gradients": gradients, "logits": rank.loss() - gathered - gradients}


def total(rows):
    return sum(rows.values())


def moments(rank):
    """Rows where the last backward pass begins, and where it ends. Their sums are those of `Rank.peaks`."""
    always = {"weights_and_moments": rank.weights_and_moments()}
    in_flight = {"activations": rank.activations()[0], "copies": rank.copies()}
    gradients = {"gradients": rank.gradients()}
    once = rank.gathered_once()
    several = rank.strategy.microbatches > 1
    table = rank.table if rank.has_embedding or rank.has_head else 0
    begin = max(layer_rows(rank, max(table, rank.largest_of_layer)), loss_rows(rank), key=total)
    begin = always | in_flight | begin | (gradients if several else {})
    end = layer_rows(rank, rank.largest_of_layer)
    if several:
        embedding = {"passing_gradients": 4 * rank.table if rank.has_embedding else 0}
        end = in_flight | max(end, embedding, key=total)
    end = always | gradients | end
    for rows, peak in zip((begin, end), rank.peaks(), strict=True):
        assert abs(total(rows) - rank.weights_and_moments() - peak) < 1, (rows, peak)
        rows["gathered"] = rows.get("gathered", 0) + once
    return begin, end


def at_peak(rank):
    return max(moments(rank), key=total)


def largest(shape, strategy):
    """The rank that needs the most."""
    return max((Rank(shape, strategy, rank) for rank in range(strategy.stages)), key=Rank.peak)


def records():
    """Lines of JSON, one for the first, the last and the largest rank of each shape and strategy."""
    for shape in RECORDED:
        for name, strategy in STRATEGIES.items():
            for number in sorted({0, largest(shape, strategy).rank, strategy.stages - 1}):
                rank = Rank(shape, strategy, number)
                begin, end = ({key: round(value) for key, value in rows.items()} for rows in moments(rank))
                yield json.dumps({
                    "name": name, "hidden": shape.hidden, "inner": shape.inner, "keys": shape.keys,
                    "vocabulary": shape.vocabulary, "layers": shape.layers, "tensor": strategy.tensor,
                    "stages": strategy.stages, "zero": strategy.zero, "zero_ranks": strategy.zero_ranks,
                    "schedule": strategy.schedule, "chunks": strategy.chunks, "microbatches": strategy.microbatches,
                    "sequence": strategy.sequence, "prefetch": strategy.prefetch, "once": strategy.once,
                    "recompute": strategy.recompute,
                    "dtype": strategy.dtype, "tokens": strategy.tokens, "rank": number,
                    "in_flight": rank.in_flight(), "parameters": rank.parameters, "begin": begin, "end": end})


def recorded_text():
    return "[\n" + ",\n".join(records()) + "\n]\n"


if __name__ == "__main__":
    print(recorded_text(), end="")
