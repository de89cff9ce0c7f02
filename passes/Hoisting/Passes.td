#ifndef BOWLINE_PASSES_HOISTING_PASSES_TD
#define BOWLINE_PASSES_HOISTING_PASSES_TD

include "passes/Analysis/PhasePass.td"

def DonateBuffers : PhasePass<"donate-buffers", "Hoist"> {
  let summary = "Compute results where they are wanted, instead of copying them there";
  let description = [{
    A copy from a temporary buffer into a variable or an output disappears where the command that computes the temporary,
    or the collective that receives it, may write the destination instead: nothing in between uses the destination,
    except a kernel in place.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def HoistInvariants : PhasePass<"hoist-invariants", "Hoist"> {
  let summary = "Run launches once that give the same for every microbatch";
  let description = [{
    A launch in a segment that runs several times moves in front of it, if it reads nothing that the segment changes:
    weights that are rounded to bf16, tables of angles. Its results then keep their memory through all runs, so a
    launch with small operands and large results stays where it is.

    Expects in-place pairs to be known: runs after generate-kernels. Remark: how many commands moved.
  }];
  let options = [Option<"memoryLimit", "memory-limit", "int64_t", "0",
                        "Leave commands where they are rather than let the arena exceed so many bytes; 0: no limit">];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def MapWeights : PhasePass<"map-weights", "Hoist"> {
  let summary = "Read weights in place from memory of the caller, such as a mapped file";
  let description = [{
    Weights that commands only read, and no rank exchanges, move to memory space `external`, aligned as their elements
    are. Others stay in the arena.

    Commands that use an external weight alone do not move into `prepare`, and no external weight is packed: either
    would keep a second copy of the weight in memory. Runs before hoist-into-prepare and pack-weights.

    Remarks: how many weights of how many bytes are mapped, and how many are not.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def HoistIntoPrepare : PhasePass<"hoist-into-prepare", "Hoist"> {
  let summary = "Run launches that depend on parameters alone once, when these are set";
  let description = [{
    Where no entry but `init` writes a parameter, as in programs that only generate, launches that read parameters and
    constants alone move into an entry of their own, `prepare`, with their results: tables of angles, weights in another
    precision. The session runs it after parameters were set, before any other entry. Results that other
    programs use become buffers of kind state that no `plan.state` names: they persist, and no checkpoint has them.
    A command whose results are much larger than its operands stays where it is.

    Expects in-place pairs to be known: runs after generate-kernels. Remark: how many commands moved.
  }];
  let options = [Option<"memoryLimit", "memory-limit", "int64_t", "0",
                        "Leave commands where they are rather than let the arena exceed so many bytes; 0: no limit">];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

// Least shares of the products' time that packing must save. A copy that is made in each step shares its memory with
// others and is gone behind the loop of microbatches, so that little pays. A copy of a parameter that is the same in all
// calls is one more for as long as the program is loaded, as large as the parameter: worth it where products gain much.
defvar kMinSavingInStep = "0.03";
defvar kMinSavingForGood = "0.1";

def PackWeights : PhasePass<"pack-weights", "Hoist"> {
  let summary = "Pack weights once for many matrix products";
  let description = [{
    The kernel `matmul` multiplies panels of its second operand, which it copies anew in every call. Where one weight
    is the second operand of several calls that nothing in between writes it, as over microbatches, a command `pack_matrix` makes the
    panels once, right before the segment or where the weight is computed, and the calls take its buffer. Calls with the same weight in the same layout
    share one buffer; the forward and the backward pass read a weight in different layouts. Results are the same bit for
    bit, and the variables of the plan, so checkpoints too, stay as they are.

    Where no entry but `init` writes a parameter, the panels of parameters, and of values that `prepare` computes from
    them, are made in entry `prepare` (hoist-into-prepare), and persist.

    Not packed: weights that products read in place anyway, as those of few rows do; bf16, for a target without
    AVX512-BF16; weights for which packing saves less than `min-saving` of the time of their products, by the model in
    WeightPacking.h, or less than `min-persistent-saving` where the panels persist, which are a second copy of the
    weight; anything where the strategy recomputes `full`: a user who computes all again to save memory wants no copies.

    Leaves a remark for each packed weight: bytes, calls and the share of time that is saved; and one for each reason why
    others stay plain, with the bytes that this leaves free.
  }];
  let options = [
    Option<"memoryLimit", "memory-limit", "int64_t", "0",
           "Pack fewer weights rather than let the arena exceed so many bytes; 0: no limit">,
    Option<"minSaving", "min-saving", "double", kMinSavingInStep,
           "Least share of the products' time that packing must save where it is done in each step">,
    Option<"minPersistentSaving", "min-persistent-saving", "double", kMinSavingForGood,
           "Least share of the products' time that packing must save where its result persists">];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

#endif // BOWLINE_PASSES_HOISTING_PASSES_TD
