"""What a training plan takes of a rank's memory, in bytes: the formulas of docs/memory.md.

The terms are those of the page, and of its sources: ZeRO is Rajbhandari et al. 2020, activations are Korthikanti et al.
2022, microbatches in flight are Narayanan et al. 2021 and Qi et al. 2023.
"""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Shape:
    """A model of the Llama family."""

    hidden: int
    inner: int
    layers: int
    heads: int
    key_heads: int
    vocabulary: int

    @property
    def keys(self):
        return self.hidden // self.heads * self.key_heads

    @property
    def table(self):
        """Parameters of the embedding, and as many of the head."""
        return self.vocabulary * self.hidden

    @property
    def layer(self):
        """Parameters of the matrices of one layer."""
        return 2 * self.hidden * (self.hidden + self.keys) + 3 * self.hidden * self.inner

    @property
    def parameters(self):
        return 2 * self.table + self.layers * self.layer + (2 * self.layers + 1) * self.hidden


@dataclasses.dataclass(frozen=True)
class Strategy:
    data: int = 1  # ranks that share the batch
    zero: int = 0
    zero_ranks: int = 1
    tensor: int = 1
    sequence: bool = False
    stages: int = 1
    chunks: int = 1  # stages of one rank
    schedule: str = "1f1b"
    microbatches: int = 1
    recompute: str = "none"
    dtype: str = "f32"
    prefetch: int = 1
    tokens: int = 2048  # of one microbatch on the ranks of one part of the batch

    @property
    def width(self):
        """Bytes of an element that products compute with."""
        return 4 if self.dtype == "f32" else 2

    def split(self, layers):
        """The layers of each stage, one of `--stages` after the other."""
        count = self.stages * self.chunks
        ends = [layers * stage // count for stage in range(count + 1)]
        return list(zip(ends, ends[1:]))


def in_flight(strategy, rank):
    """Pairs of chunk and microbatch whose activations the rank holds at most (docs/schedules.md)."""
    stages, chunks, batches = strategy.stages, strategy.chunks, strategy.microbatches
    if stages == 1:
        return 1
    if strategy.schedule == "interleaved":  # Korthikanti et al. 2022, 4.2.3
        return min(batches * chunks, stages * chunks + stages - 1 - 2 * rank)
    if strategy.schedule in ("gpipe", "breadth_first"):
        return batches * chunks
    if strategy.schedule == "zb_h1":  # Qi et al. 2023: as the first rank of 1F1B
        return min(batches, stages)
    return min(batches, stages - rank)


class Rank:
    """The terms of one rank along the axis of the pipeline."""

    def __init__(self, shape, strategy, rank):
        self.shape, self.strategy = shape, strategy
        parts = [part for index, part in enumerate(strategy.split(shape.layers)) if self.owner(index) == rank]
        self.layers = sum(end - begin for begin, end in parts)
        self.has_embedding = any(begin == 0 for begin, _ in parts)
        self.has_head = any(end == shape.layers for _, end in parts)
        self.in_flight = in_flight(strategy, rank)
        self.stream = strategy.tokens * shape.hidden // (strategy.tensor if strategy.sequence else 1)

    def owner(self, stage):
        return stage % self.strategy.stages

    # Parameters of the rank before ZeRO: of matrices that products read rounded, and of what stays f32.

    @property
    def table(self):
        return self.shape.table // self.strategy.tensor

    @property
    def matrices(self):
        return self.layers * self.shape.layer // self.strategy.tensor + self.has_head * self.table

    @property
    def others(self):
        return self.has_embedding * self.table + 2 * self.layers * self.shape.hidden

    @property
    def parameters(self):
        return self.matrices + self.others

    @property
    def largest(self):
        """The largest parameter."""
        matrix = self.shape.hidden * self.shape.inner // self.strategy.tensor
        return max(matrix, self.table) if self.has_embedding or self.has_head else matrix

    def held(self):
        """Weights and the two moments of AdamW (Rajbhandari et al. 2020, section 3.1)."""
        zero, ranks = self.strategy.zero, self.strategy.zero_ranks
        if zero == 0:
            return 12 * self.parameters
        if zero == 3:
            return 12 * self.parameters // ranks
        if self.strategy.dtype == "f32":
            return (4 + 8 / ranks) * self.parameters
        return 2 * self.matrices + 4 * self.others + 12 * self.parameters / ranks

    def rounded(self):
        """Copies of weights in bf16 that stay between forward and backward; ZeRO holds or gathers these itself."""
        return 0 if self.strategy.dtype == "f32" or self.strategy.zero > 0 else 2 * self.matrices

    def gradients(self):
        """Whole, or the shards of ZeRO: (at the begin of the backward pass, at its end)."""
        zero, several = self.strategy.zero, self.strategy.microbatches > 1
        divided = zero >= 2 or (zero == 1 and not several)
        size = 4 * self.parameters / (self.strategy.zero_ranks if divided else 1)
        return (size if several else 0, size)

    # Activations of one layer (Korthikanti et al. 2022, section 4, with SwiGLU, RMSNorm and grouped keys).

    def layer_activations(self, recompute):
        shape, strategy = self.shape, self.strategy
        tokens, tensor, size = strategy.tokens, strategy.tensor, strategy.width
        streams = 2 * 4 * self.stream
        norms = 2 * size * self.stream
        projections = size * tokens * (2 * shape.hidden + 2 * shape.keys) // tensor
        inner = size * tokens * shape.inner // tensor
        if recompute == "none":
            return streams + norms + projections + 3 * inner
        # Selective; in bf16 only one norm is less.
        return streams + (0 if size == 4 else norms // 2 + inner) + projections + 2 * inner

    def backward_of_layer(self):
        """Gradients of a layer's values."""
        return 8 * self.stream + 3 * self.strategy.width * self.strategy.tokens * self.shape.inner // self.strategy.tensor

    def activations(self):
        """(what is kept for the backward pass, what is computed again at one time)."""
        chunk = self.layers / self.strategy.chunks
        if self.strategy.recompute != "full":
            return self.in_flight * chunk * self.layer_activations(self.strategy.recompute), 0
        layer = self.layer_activations("none")
        choices = []
        for distance in range(1, math.ceil(chunk) + 1):
            kept = self.in_flight * math.ceil(chunk / distance) * 4 * self.stream
            choices.append((kept + distance * layer, kept, distance * layer))
        return min(choices)[1:]

    def loss(self):
        """What is alive at the loss beside activations: gradients of the head, and logits."""
        if not self.has_head:
            return 0
        shape, strategy = self.shape, self.strategy
        wide = strategy.dtype == "f32"
        gathered = strategy.width * self.table if strategy.zero == 3 else 0
        logits = 0 if wide else 6 * strategy.tokens * shape.vocabulary // strategy.tensor
        return (3 if wide else 1) * 4 * self.table + logits + gathered

    def gathered(self):
        """ZeRO 3: the matrices of a layer and those ahead of their use."""
        if self.strategy.zero < 3:
            return 0
        shape, tensor = self.shape, self.strategy.tensor
        return self.strategy.width * (shape.layer + self.strategy.prefetch * shape.hidden * shape.inner) // tensor

    def waiting(self):
        """Gradients that wait to be scattered, and the one that is computed."""
        one = 4 * self.shape.hidden * self.shape.inner // self.strategy.tensor
        if self.strategy.zero == 0 or (self.strategy.zero == 1 and self.strategy.microbatches > 1):
            return one
        return (1 if self.strategy.zero == 3 else 2) * 4 * self.largest + one

    def terms(self):
        begin, end = self.gradients()
        kept, again = self.activations()
        backward = self.backward_of_layer()
        full = self.strategy.recompute == "full"
        at_begin = kept + begin + self.rounded() + max(
            self.loss(), again + backward + self.gathered() + (self.waiting() if full or self.strategy.zero == 0 else 0))
        several = self.strategy.microbatches > 1
        at_end = end + (self.rounded() + kept if several else 0)
        return {"held": self.held(), "kept": kept, "again": again, "begin": at_begin, "end": at_end,
                "gradients": begin, "loss": self.loss(), "backward": backward, "gathered": self.gathered(), "waiting": self.waiting()}

    def peak(self):
        terms = self.terms()
        return terms["held"] + max(terms["begin"], terms["end"])


def predicted(shape, strategy):
    """Bytes of the arena: those of the rank that needs the most."""
    return max(Rank(shape, strategy, rank).peak() for rank in range(strategy.stages))
