#ifndef BOWLINE_PASSES_HOISTING_PASSES_TD
#define BOWLINE_PASSES_HOISTING_PASSES_TD

include "passes/Analysis/PhasePass.td"

// Least fractions of the products' time that packing must save. Panels that each step makes anew share memory with
// other temporaries and die after the loop of microbatches, so a small saving pays. Panels that are equal in all calls
// stay in memory as long as the program is loaded, as a second copy of the weight, so packing must save more.
defvar kMinSavingInStep = "0.03";
defvar kMinSavingForGood = "0.1";

def DonateBuffers : PhasePass<"donate-buffers", "Hoist"> {
  let summary = "Write results directly to their destinations instead of copying them there";
  let description = [{
    Removes a copy from a temporary buffer to a variable or an output, and lets the launch or collective that computes
    the temporary write the destination directly. Requires that no command in between uses the destination; the
    computing launch itself may read it if its kernel permits the in-place update.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def AllocateMemory : PhasePass<"allocate-memory", "Hoist"> {
  let summary = "Choose the uses of memory within a limit that save most time";
  let description = [{
    Three kinds of changes make a step shorter by the cost model, and take memory: the commands that hoist-into-prepare
    and hoist-invariants move, the weights that pack-weights packs, and the overlap of overlap-commands. Each offers the
    seconds that it saves and the bytes that it takes. Without a limit, all are made, and this pass does nothing.

    With a limit, this pass orders commands and weights by the seconds that they save per byte, a value that another one
    is computed from before that one. For each choice of overlap it takes as many of them, in this order, as the packed
    arena has room for; one that has no room is left out, and the search goes on behind it. The choice of overlap with
    the largest sum of seconds decides. Launches that are left out get the marks `plan.stays` and `plan.unpacked`, which
    the passes obey. overlap-commands comes last, and takes the room that is left.

    Remark: how many changes are made, the seconds that they save, and how many have no room.
  }];
  let options = [
    Option<"memoryLimit", "memory-limit", "int64_t", "0", "Most bytes of the arena; 0: no limit">,
    Option<"minSaving", "min-saving", "double", kMinSavingInStep, "The same as for pack-weights">,
    Option<"minPersistentSaving", "min-persistent-saving", "double", kMinSavingForGood, "The same as for pack-weights">,
    Option<"links", "links", "std::string", "\"\"", "The same as for overlap-commands">];
  let dependentDialects = ["::bowline::dist::DistDialect", "::bowline::plan::PlanDialect"];
}

def HoistInvariants : PhasePass<"hoist-invariants", "Hoist"> {
  let summary = "Run launches once whose results are equal in all runs of a segment";
  let description = [{
    Moves a launch in a segment that runs several times, once per microbatch, in front of the segment if it reads no
    buffer that the segment changes. Examples are weights rounded to bf16 and tables of angles. Its results then occupy
    memory during all runs, so a launch with small operands and large results stays in the segment.

    Launches that allocate-memory marked stay where they are. Runs after generate-kernels, because it needs the in-place
    pairs of kernels. Remark: how many commands moved.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def MapWeights : PhasePass<"map-weights", "Hoist"> {
  let summary = "Read weights in place from memory of the caller, such as a mapped file";
  let description = [{
    Moves weights that this rank's launches and copies only read, and no collective uses, to memory space `external`,
    with the alignment of their elements. Other weights stay in the arena.

    A launch that reads an external weight does not move into `prepare`, and no external weight is packed: either would
    keep a second copy of the weight in memory. So this pass runs before hoist-into-prepare and pack-weights.

    Remarks: how many weights of how many bytes are mapped, and how many are not.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def HoistIntoPrepare : PhasePass<"hoist-into-prepare", "Hoist"> {
  let summary = "Run launches that depend only on parameters once, after the parameters are set";
  let description = [{
    If no entry but `init` writes parameters, as in programs that only generate, moves launches that read only
    parameters and constants, such as those that compute tables of angles or round weights, into the entry `prepare`.
    A session runs `prepare` after a caller sets parameters and before it runs any other entry. Results that other
    programs use become buffers of kind state that no `plan.state` names: they persist, and no checkpoint contains them.
    A launch whose results are much larger than its operands stays.

    Launches that allocate-memory marked stay where they are. Runs after generate-kernels, because it needs the in-place
    pairs of kernels. Remark: how many commands moved.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def PackWeights : PhasePass<"pack-weights", "Hoist"> {
  let summary = "Pack weights once for many matrix products";
  let description = [{
    In every call, the kernel `matmul` copies its second operand into panels before it multiplies. If several calls,
    such as one per microbatch, have the same weight as second operand and no command between them writes it, a command
    `pack_matrix` makes the panels once: right before the segment, or after the command that computes the weight. The
    calls then take its buffer. Calls that read a weight in the same layout share one buffer; the forward and backward
    pass read a weight in different layouts. Results are bitwise equal; variables and checkpoints do not change.

    If no entry but `init` writes parameters, the entry `prepare` makes the panels of parameters, and of values that
    `prepare` computes from them (hoist-into-prepare). These panels persist.

    Does not pack weights that products read in place anyway, such as products of few rows; bf16 weights, for a target
    without AVX512-BF16; weights for which packing saves, by the model in WeightPacking.h, less than the fraction
    `min-saving` of their products' time, or `min-persistent-saving` for panels that persist. Packs nothing if the
    strategy recomputes `full`: a user who recomputes all activations to save memory wants no copies of weights. Does not
    pack weights of products that allocate-memory marked.

    Leaves a remark for each packed weight (bytes, calls, and the fraction of time saved), and one remark for each
    reason why other weights are not packed, with their number.
  }];
  let options = [
    Option<"minSaving", "min-saving", "double", kMinSavingInStep,
           "Least share of the products' time that packing must save where it is done in each step">,
    Option<"minPersistentSaving", "min-persistent-saving", "double", kMinSavingForGood,
           "Least share of the products' time that packing must save where its result persists">];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

#endif // BOWLINE_PASSES_HOISTING_PASSES_TD
