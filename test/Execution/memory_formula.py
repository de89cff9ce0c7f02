"""How many bytes a rank needs for a training step: the formulas of docs/memory.md, which names their sources.

Nothing here asks the compiler. A rank's peak is a sum of terms, each of them a method of `Rank`.
"""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Shape:
    """A model of the family of Llama: SwiGLU, norms without means, keys that several heads may share, untied head."""

    hidden: int
    inner: int
    layers: int
    heads: int
    key_heads: int
    vocabulary: int

    @property
    def keys(self):
        """Elements of a token's keys, and of its values."""
        return self.hidden // self.heads * self.key_heads

    @property
    def table(self):
        """Parameters of the embedding; the head has as many."""
        return self.vocabulary * self.hidden

    @property
    def matrices(self):
        """Parameters of one layer's matrices."""
        return 2 * self.hidden * (self.hidden + self.keys) + 3 * self.hidden * self.inner


@dataclasses.dataclass(frozen=True)
class Strategy:
    """A strategy, as the flags of `bowline compile` describe it."""

    data: int = 1  # ranks along dp
    sharded: int = 1  # ranks along fsdp
    tensor: int = 1  # ranks along tp
    stages: int = 1  # ranks along pp
    chunks: int = 1  # stages that one of these has
    schedule: str = "1f1b"
    microbatches: int = 1
    sequence: bool = False  # --sequence-parallel
    zero: int = 0
    prefetch: int = 1
    once: bool = False  # --zero 3 gathers once for all microbatches of a pass
    recompute: str = "none"
    dtype: str = "f32"
    tokens: int = 2048  # of a sequence; each part of a microbatch is one sequence

    @property
    def width(self):
        """Bytes of an element that products compute with."""
        return 4 if self.dtype == "f32" else 2

    @property
    def zero_ranks(self):
        return self.sharded if self.sharded > 1 else self.data

    def split(self, layers):
        """(begin, end) of the layers of each stage: as many in each, but for one."""
        count = self.stages * self.chunks
        ends = [layers * stage // count for stage in range(count + 1)]
        return list(zip(ends, ends[1:]))

    def flags(self, shape):
        """Arguments of bowline-compile behind the model."""
        axes = {"pp": self.stages, "dp": self.data, "fsdp": self.sharded, "tp": self.tensor}
        flags = ["--mode", "train", "--batch", self.data * self.sharded * self.microbatches, "--seq", self.tokens,
                 "--mesh", ",".join(f"{axis}={ranks}" for axis, ranks in axes.items() if ranks > 1),
                 "--microbatches", self.microbatches, "--recompute", self.recompute, "--dtype", self.dtype]
        if self.sequence:
            flags.append("--sequence-parallel")
        if self.zero > 0:
            flags += ["--zero", self.zero, "--zero-axis", "fsdp" if self.sharded > 1 else "dp"]
        if self.zero == 3:
            flags += ["--prefetch", self.prefetch, "--zero-once" if self.once else "--zero-each"]
        if self.stages > 1:
            stages = ",".join(f"[{begin}..{end - 1}]" if end - begin > 1 else f"[{begin}]"
                              for begin, end in self.split(shape.layers))
            chunks = f":{self.chunks}" if self.schedule in ("interleaved", "breadth_first") else ""
            flags += ["--schedule", self.schedule + chunks, "--stages", stages]
        return flags


class Rank:
    """The memory that one rank along the axis of the pipeline needs."""

    def __init__(self, shape, strategy, rank):
        self.shape, self.strategy, self.rank = shape, strategy, rank
        own = strategy.split(shape.layers)[rank::strategy.stages]
        self.layers = sum(end - begin for begin, end in own)
        self.has_embedding = own[0][0] == 0
        self.has_head = own[-1][1] == shape.layers
        # Elements of the residual stream, and of a matrix of the vocabulary and of the MLP.
        self.stream = strategy.tokens * shape.hidden // (strategy.tensor if strategy.sequence else 1)
        self.table = shape.table // strategy.tensor
        self.largest_of_layer = shape.hidden * shape.inner // strategy.tensor

    @property
    def rounded(self):
        """Parameters of which products read copies in bf16."""
        return self.layers * self.shape.matrices // self.strategy.tensor + self.has_head * self.table

    @property
    def parameters(self):
        return self.rounded + self.has_embedding * self.table + 2 * self.layers * self.shape.hidden

    def weights_and_moments(self):
        """Rajbhandari et al. 2020 (ZeRO), section 3.1; passes/Local/README.md for bf16."""
        zero, ranks, parameters = self.strategy.zero, self.strategy.zero_ranks, self.parameters
        if zero == 0:
            return 12 * parameters
        if zero == 3:
            return 12 * parameters // ranks
        if self.strategy.dtype == "f32":
            return 4 * parameters + 8 * parameters // ranks
        return 2 * self.rounded + 4 * (parameters - self.rounded) + 12 * parameters // ranks

    def copies(self):
        """Copies in bf16 that stay from the forward to the backward pass. With ZeRO these are the held or gathered parts;
        stages of a pipeline round a matrix when they use it."""
        strategy = self.strategy
        return 2 * self.rounded if strategy.dtype == "bf16" and strategy.zero == 0 and strategy.stages == 1 else 0

    def gradients(self):
        """All of the rank's, as they are kept until the update: Rajbhandari et al. 2020, section 5."""
        zero, several = self.strategy.zero, self.strategy.microbatches > 1
        divided = zero >= 2 or (zero == 1 and not several)
        whole = 4 * self.parameters if self.strategy.once else 0  # as microbatches add them up
        return 4 * self.parameters // (self.strategy.zero_ranks if divided else 1) + whole

    def in_flight(self):
        """Pairs of a chunk and a microbatch whose activations are kept at one time, at most: Huang et al. 2019 (GPipe),
        Lamy-Poirier 2023 (breadth-first), Narayanan et al. 2021 (1F1B), Qi et al. 2023 (ZB-H1), Korthikanti et al.
        2022, section 4.2.3 (interleaved)."""
        stages, chunks, batches = self.strategy.stages, self.strategy.chunks, self.strategy.microbatches
        if stages == 1:
            return 1
        return {"gpipe": batches, "breadth_first": batches * chunks,
                "1f1b": min(batches, stages - self.rank), "zb_h1": min(batches, stages),
                "interleaved": min(batches * chunks, stages * chunks + stages - 1 - 2 * self.rank),
                }[self.strategy.schedule]

    def layer_activations(self, recompute):
        """Korthikanti et al. 2022, section 4, for SwiGLU and attention that stores no probabilities."""
        shape, size = self.shape, self.strategy.width
        tokens = self.strategy.tokens / self.strategy.tensor
        always = 8 * self.stream + size * tokens * (2 * shape.hidden + 2 * shape.keys + 2 * shape.inner)
        return always + (size * (2 * self.stream + tokens * shape.inner) if recompute == "none" else 0)

    def activations(self):
        """(kept for the backward pass, of layers that are computed again at one time): Chen et al. 2016 for `full`."""
        chunk = self.layers / self.strategy.chunks
        if self.strategy.recompute != "full":
            return self.in_flight() * chunk * self.layer_activations(self.strategy.recompute), 0
        choices = []
        for distance in range(1, math.ceil(chunk / 2) + 1):
            kept, again = math.ceil(chunk / distance) * 4 * self.stream, distance * self.layer_activations("none")
            choices.append((self.in_flight() * kept, again))
        return min(choices, key=sum)

    def loss(self):
        """Beside activations, on the rank that has the head; see passes/Fusion/README.md for the tiles."""
        if not self.has_head:
            return 0
        strategy = self.strategy
        gathered = strategy.width * self.table if strategy.zero == 3 and not strategy.once else 0
        if strategy.dtype == "f32":  # the gradient of the head, and those of two tiles
            return 3 * 4 * self.table + gathered
        return 4 * self.table + 6 * strategy.tokens * self.shape.vocabulary // strategy.tensor + gathered

    def gradients_of_activations(self):
        """Of one layer."""
        inner = self.strategy.tokens * self.shape.inner // self.strategy.tensor
        return 8 * self.stream + 3 * self.strategy.width * inner

    def gathered(self):
        """Matrices of a layer, and those ahead of their use: Rajbhandari et al. 2020, section 7."""
        if self.strategy.zero < 3 or self.strategy.once:
            return 0
        layer = self.shape.matrices // self.strategy.tensor
        return self.strategy.width * (layer + self.strategy.prefetch * self.largest_of_layer)

    def gathered_once(self):
        """Whole parameters for all microbatches of a pass; stages have a copy for forward and one for backward passes."""
        if not self.strategy.once:
            return 0
        return (2 if self.strategy.stages > 1 else 1) * self.strategy.width * self.parameters

    def passing_gradients(self, largest):
        """The one that is computed, and those that wait to be scattered, of which `largest` is the largest: the bound
        of SegmentSchedule.h."""
        zero = self.strategy.zero
        if zero == 0 or (zero == 1 and self.strategy.microbatches > 1) or self.strategy.once:
            return 4 * self.largest_of_layer
        return (1 if zero == 3 else 2) * 4 * largest + 4 * self.largest_of_layer

    def peaks(self):
        """(at the begin of the last backward pass, at its end)."""
        several = self.strategy.microbatches > 1
        kept, again = self.activations()
        layer = again + self.gradients_of_activations() + self.gathered()
        table = self.table if self.has_embedding or self.has_head else 0
        begin = layer + self.passing_gradients(max(table, self.largest_of_layer))
        begin = kept + self.copies() + max(self.loss(), begin)
        if several:
            begin += self.gradients()
        end = layer + self.passing_gradients(self.largest_of_layer)
        if several:  # others are in flight
            end = kept + self.copies() + max(end, 4 * self.table if self.has_embedding else 0)
        return begin, end + self.gradients()

    def peak(self):
        return self.weights_and_moments() + self.gathered_once() + max(self.peaks())


def predicted(shape, strategy):
    """Bytes of the rank that needs the most."""
    return max(Rank(shape, strategy, rank).peak() for rank in range(strategy.stages))
