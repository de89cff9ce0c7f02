#ifndef BOWLINE_PASSES_FUSION_PASSES_TD
#define BOWLINE_PASSES_FUSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def GroupFusions : Pass<"group-fusions", "::mlir::ModuleOp"> {
  let summary = "Put operations that are computed together into graph.fusion";
  let description = [{
    Afterwards every operation that becomes generated code is in a `graph.fusion`. Operations join the group of a
    producer when both work on the same rows: elementwise operations of one shape, reductions over the last dimension
    and arithmetic on their results, normalisations and losses. Contractions, attention and indexing never join: they
    are library or hand-written kernels. Broadcasts, and constants with one value for all elements, are repeated in each group that reads them, so that
    no repeated value is stored unless something else reads it.

    Each group that merges several operations leaves a remark. With `merge=false` every operation is a group of its own.
  }];
  let options = [Option<"merge", "merge", "bool", "true", "Merge operations into groups of several">];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::mlir::arith::ArithDialect"];
}

def SelectKernels : Pass<"select-kernels", "::mlir::ModuleOp"> {
  let summary = "Decide for every operation which kernel runs it";
  let description = [{
    Contractions, attention, indexing, fills and random numbers become calls of registered kernels; a `graph.fusion`
    becomes a call of a generated kernel whose body is kept for code generation. Equal kernels are declared once, however
    many layers call them. What remains of graph are reads, writes and reshapes.

    A contraction whose dimensions cannot be expressed by strides is preceded by a transpose.

    Diagnosed: an operation for which there is no kernel.
  }];
  let options = [
    Option<"threads", "threads", "int64_t", "1", "Threads per rank, for which library scratch is sized">,
    Option<"gemmLibrary", "gemm-library", "std::string", "\"bowline\"",
           "Who multiplies matrices: bowline, which allocates nothing, or onednn">];
  let dependentDialects = ["::bowline::graph::GraphDialect", "::bowline::plan::PlanDialect",
                           "::mlir::func::FuncDialect"];
}

#endif // BOWLINE_PASSES_FUSION_PASSES_TD
