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
    Works on `@train_microbatch`. The forward part is what the value written to `@loss_sum` needs, accumulators aside; all
    else is the backward part. A forward value that the backward part uses is kept, or computed again from what is kept by a clone of its
    operation right before its first backward use. Clones are exact and run the same kernels, so that gradients are
    those of `none`, bit for bit; no later pass may merge them with the originals.

    - `none` keeps everything.
    - `selective` computes again what is cheap and large: generated kernels, from values that are kept anyway.
    - `full` keeps what is alive at points of the forward pass where little is, as between layers, and computes again
      everything between them; what comes after the last point is kept.
    - `auto` takes the least additional arithmetic whose memory is at most `memory-target` bytes: greedily, by bytes
      freed at the peak for each operation of arithmetic, or one of the modes above where that is less. Without a
      target it is `none`.

    Remark: how many operations are computed again, how many bytes that frees, and how much arithmetic it adds.
  }];
  let options = [Option<"mode", "mode", "std::string", "\"none\"", "none, selective, full or auto">,
                 Option<"memoryTarget", "memory-target", "int64_t", "0",
                        "auto: bytes of everything in the arena, estimated; 0: no target">];
  let dependentDialects = ["::bowline::graph::GraphDialect"];
}

def PackArena : Pass<"pack-arena", "::mlir::ModuleOp"> {
  let summary = "Give every buffer its place in the arena";
  let description = [{
    Persistent buffers (parameters, states, constants, inputs, outputs) come first and overlap nothing. Above them, each
    program's temporary buffers share memory where they are not alive at the same time, as ArenaPacker.h says; programs
    share with each other. An output of a command takes over the memory of an input that dies
    there where the kernel allows it. `plan.arena_bytes` is the end of the highest buffer, exactly.

    `plan.live_bytes` is the lower bound that the peak of live bytes gives. Remark: the arena beside that bound.
  }];
  let dependentDialects = ["::bowline::plan::PlanDialect"];
}

#endif // BOWLINE_PASSES_MEMORY_PASSES_TD
