#ifndef BOWLINE_PASSES_MEMORY_PASSES_TD
#define BOWLINE_PASSES_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

def DonateBuffers : Pass<"donate-buffers", "::mlir::ModuleOp"> {
  let summary = "Compute results where they are wanted, instead of copying them there";
  let description = [{
    A copy from a temporary buffer into a variable or an output disappears where the command that computes the temporary
    may write the destination instead: nothing in between uses the destination, except that very command in place.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def EarlyWrites : Pass<"early-writes", "::mlir::ModuleOp"> {
  let summary = "Add to accumulators as soon as there is something to add";
  let description = [{
    What only a write to an accumulator uses, and the write, move up to where their operands are complete. So a gradient
    that is added to the sum over microbatches needs its memory until then, and not until the end of the backward pass.
    Other accesses of the variable keep their order.
  }];
  let dependentDialects = ["::bowline::graph::GraphDialect"];
}

def Recompute : Pass<"recompute", "::mlir::ModuleOp"> {
  let summary = "Compute forward values again in the backward pass, instead of keeping them";
  let description = [{
    As `recompute` of the strategy says. Works on the `microbatch` of a training step, or on the `forward` and
    `backward` passes of each stage. The forward part is what the value written to `@loss_sum` needs, accumulators
    aside; all else is the backward part. A forward value that the backward part uses is kept, or computed again from
    what is kept by a clone of its operation right before its first backward use. Clones are exact and run the same
    kernels, so that gradients are those of `none`, bit for bit; no later pass may merge them with the originals.

    - `none` keeps everything.
    - `selective` computes again what is cheap and large: generated kernels, and what epilogues compute from stored
      values, from values that are kept anyway.
    - `full` keeps what is alive at points of the forward pass where little is, as between layers, and computes again
      everything between them; after the last point it does what `selective` does.
    - `auto` takes the least additional arithmetic whose memory is at most `memory-target` bytes: greedily, by bytes
      freed at the peak for each operation of arithmetic, or one of the modes above where that is less. Without a
      target it is `none`.

    Remark: how many operations are computed again, how many bytes that frees, and how much arithmetic it adds.
    Diagnosed: stages of a pipeline whose backward passes are divided, and `auto` for those.
  }];
  let options = [Option<"memoryTarget", "memory-target", "int64_t", "0",
                        "auto: bytes of everything in the arena, estimated; 0: no target">];
  let dependentDialects = ["::bowline::graph::GraphDialect"];
}

def HoistInvariants : Pass<"hoist-invariants", "::mlir::ModuleOp"> {
  let summary = "Run once what gives the same for every microbatch";
  let description = [{
    A launch in a segment that runs several times moves in front of it, if it reads nothing that the segment changes:
    weights that are rounded to bf16, tables of angles. Its results then keep their memory through all runs, so what
    makes much out of little stays where it is.

    Expects in-place pairs to be known: runs after generate-kernels. Remark: how many commands moved.
  }];
  let options = [Option<"memoryLimit", "memory-limit", "int64_t", "0",
                        "Leave commands where they are rather than let the arena exceed so many bytes; 0: no limit">];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def MapWeights : Pass<"map-weights", "::mlir::ModuleOp"> {
  let summary = "Read weights in place from memory of the caller, such as a mapped file";
  let description = [{
    Weights that commands only read, and no rank exchanges, move to memory space `external`, aligned as their elements
    are. Others stay in the arena.

    What is computed from an external weight alone does not move into `prepare`, and an external weight is not packed:
    both would keep a second copy of it in memory. Runs before hoist-into-prepare and pack-weights.

    Remarks: how many weights of how many bytes are mapped, and how many are not.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def HoistIntoPrepare : Pass<"hoist-into-prepare", "::mlir::ModuleOp"> {
  let summary = "Run once when parameters are set what depends on them alone";
  let description = [{
    Where no entry but `init` writes a parameter, as in programs that only generate, launches that read parameters and
    constants alone move into an entry of their own, `prepare`, with their results: tables of angles, weights in another
    precision. Whoever runs the plan runs it after parameters were set, before any other entry. Results that other
    programs use become buffers of kind state that no `plan.state` names: they persist, and no checkpoint has them.
    What makes much out of little stays where it is.

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

def PackWeights : Pass<"pack-weights", "::mlir::ModuleOp"> {
  let summary = "Pack weights once for many matrix products";
  let description = [{
    The kernel `matmul` multiplies panels of its second operand, which it copies anew in every call. Where one weight
    is the second operand of several calls that nothing in between writes it, as over microbatches, a command `pack_matrix` makes the
    panels once, right before the segment or where the weight is computed, and the calls take its buffer. Calls with the same weight in the same layout
    share one buffer; the forward and the backward pass read a weight in different layouts. Results are the same bit for
    bit, and the variables of the plan, so checkpoints too, stay as they are.

    Where no entry but `init` writes a parameter, the panels of parameters, and of what `prepare` computes from them, are
    made in entry `prepare` (hoist-into-prepare), and persist.

    Not packed: external weights (map-weights), for panels are a copy; what a product reads in place anyway, which is true of few rows; bf16, for a target without AVX512-BF16;
    weights for which packing saves less than `min-saving` of the time of their products, by the model in
    WeightPacking.h, or less than `min-persistent-saving` where the panels persist, which are a second copy of the weight;
    anything where the strategy recomputes `full`, for who computes all again to save memory wants no second copies.

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

def StateAlignments : Pass<"state-alignments", "::mlir::ModuleOp"> {
  let summary = "Say which addresses kernels take, and give buffers such addresses";
  let description = [{
    Each argument of a kernel says what its address must be a multiple of, as TargetKernels.h knows it of the device.
    The alignment of each buffer becomes the largest that the device or a launch on the buffer asks for.

    Runs before pack-arena, which obeys the buffers, and behind everything that makes kernels.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

def PackArena : Pass<"pack-arena", "::mlir::ModuleOp"> {
  let summary = "Give every buffer its place in the arena";
  let description = [{
    Persistent buffers (parameters, states, constants, inputs, outputs) come first and overlap nothing. Above them, each
    program's temporary buffers share memory where they are not alive at the same time, as ArenaPacker.h says; programs
    share with each other. An output of a command takes over the memory of an input that dies
    there where the kernel allows it. Each memory space is packed by itself. `plan.arena_bytes` is the end of the highest
    buffer of the device, exactly, and `plan.other_arenas` says the same of other spaces.

    `plan.live_bytes` is the lower bound that the peak of live bytes gives. Remark: the arena beside that bound.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

#endif // BOWLINE_PASSES_MEMORY_PASSES_TD
