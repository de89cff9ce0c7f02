#ifndef BOWLINE_DIALECTS_DIST_DISTSTRATEGY_TD
#define BOWLINE_DIALECTS_DIST_DISTSTRATEGY_TD

include "dialects/Dist/DistAttrs.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

// For operations that people write by hand. The verifier rejects attributes that the operation does not define, since
// they would silently have no effect. The parser rejects an attribute dictionary: it could override the line's value.
def Dist_NoFurtherAttributes : NativeOpTrait<"NoFurtherAttributes"> { let cppNamespace = "::bowline::dist"; }

def Dist_StrategyOp : Dist_Op<"strategy", [
    Symbol, SymbolTable, SingleBlock, NoTerminator, NoRegionArguments, Dist_NoFurtherAttributes,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getDefaultDialect"]>]> {
  let summary = "The user's choice of how to compute a program: on which ranks, in which order, keeping which values";
  let description = [{
    A strategy changes how a model is computed, never its results. It stands beside the model, in the same file or in
    its own, so that one model compiles under many strategies. Each line makes one choice; lines may have any order, and
    a missing line means the default. Flags of `bowline-compile` such as `--mesh` write this operation; passes read it.

    ```mlir
    dist.strategy @three_dimensions {
      mesh @mesh ["pp", "dp", "tp"] [2, 2, 2]
      batch "dp"
      tensor_parallel "tp"
      shard "model.layers.*.self_attn.{q,k,v}_proj.weight" as <[{"tp"}, {} ]>
      stages "pp" split "[0..5],[6..11]"
      schedule "1f1b"
      microbatches 8
      zero level 1 axis "dp"
      sequence_parallel "tp"
      recompute "selective"
      bucket_bytes 4194304
      overlap_chunks auto
    }
    ```

    Without a mesh there is one rank. No line is silently ignored: if a line does not fit the model or another line, the
    pass that reads it emits an error. The verifier rejects attributes that no line defines.

    **Constraints:** at most one line of each kind, but any number of `shard`; all axes are in the strategy's mesh;
    `batch`, `tensor_parallel` and `stages` share no axis; `sequence_parallel` uses no axis of `batch` or `stages`;
    neither `shard` nor `zero` uses the axis of `stages`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `` custom<NoAttributesKeyword>(attr-dict) $body";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The strategy of the outermost module around `op`, or `op` itself, that has one; else null.
    static StrategyOp of(::mlir::Operation *op);
    /// The mesh of the strategy; null if it has none and the program runs on one rank.
    MeshOp getMesh();
    /// The only operation of a kind; null where there is none.
    template <typename OpTy> OpTy getOnly() {
      auto ops = getBody().front().getOps<OpTy>();
      return ops.empty() ? OpTy() : *ops.begin();
    }
  }];
}

class Dist_StrategyLine<string name> : Dist_Op<name, [HasParent<"StrategyOp">, Dist_NoFurtherAttributes]>;

//===----------------------------------------------------------------------===//
// The division of the computation
//===----------------------------------------------------------------------===//

def Dist_BatchOp : Dist_StrategyLine<"batch"> {
  let summary = "The mesh axes over which the sequences of a batch are divided, the outermost first";
  let description = [{
    Default: `"dp"` and `"fsdp"`, as far as the mesh has them. Two axes allow hybrid sharding: ZeRO shards along one of
    them, and ranks along the other hold copies.

    **Constraints:** at least one axis, none twice.
  }];
  let arguments = (ins StrArrayAttr:$axes);
  let assemblyFormat = "custom<AxisList>($axes) `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

def Dist_TensorParallelOp : Dist_StrategyLine<"tensor_parallel"> {
  let summary = "The mesh axis over which the projections of a layer are sharded";
  let description = [{
    Default: `"tp"`, if the mesh has it. A parameter's role (`#graph.role`) determines its sharding, unless a `shard`
    line matches it; see `passes/Sharding/Assignment/TensorParallel.h`.
  }];
  let arguments = (ins StrAttr:$axis);
  let assemblyFormat = "$axis `` custom<NoBraces>(attr-dict)";
}

def Dist_ShardOp : Dist_StrategyLine<"shard"> {
  let summary = "The sharding of all parameters whose symbols or keys match a pattern";
  let description = [{
    `*` matches any characters, `?` one character, `{q,k,v}` one of the words, `[0-3]` one of the characters. The key is
    the parameter's name in safetensors files: `layers.*.attn.wo` and `model.layers.*.self_attn.o_proj.weight` match the
    same parameters. If several lines match a parameter, the last one applies.

    **Constraints:** a well-formed pattern; no unreduced axes.
  }];
  let arguments = (ins StrAttr:$pattern, Dist_ShardingAttr:$sharding);
  let assemblyFormat = "$pattern `as` $sharding `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

def Dist_ZeroOp : Dist_StrategyLine<"zero"> {
  let summary = "ZeRO: ranks along an axis shard training state instead of each holding a copy";
  let description = [{
    Level 1: the optimizer's states; 2: gradients too; 3: parameters too (Rajbhandari et al., ZeRO, 2020). The axis is
    one over which gradients are summed; default: `"fsdp"`, if the batch is divided along it and it has several ranks,
    else the first such axis of the batch. With level 3 up to `prefetch` gathers of parameters may be under way ahead of
    use, by default one. With `once` a pass gathers parameters once for all microbatches that it takes in a row, adds up
    their whole gradients, and reduces these once; both are in memory meanwhile. With `each` it gathers and reduces for
    each microbatch. Default: `once` for stages with the schedules `gpipe` and `breadth_first`, which exist for that
    (Lamy-Poirier, 2023), else `each`.

    **Constraints:** a level from 0 to 3, an axis for 1 to 3 alone; `prefetch` is not negative; `prefetch`, `once` and
    `each` are for level 3 alone, and at most one of `once` and `each` is there.
  }];
  let arguments = (ins I64Attr:$level, OptionalAttr<StrAttr>:$axis, OptionalAttr<I64Attr>:$prefetch, UnitAttr:$once,
      UnitAttr:$each);
  let assemblyFormat = "`level` $level (`axis` $axis^)? (`prefetch` $prefetch^)? (`once` $once^)? (`each` $each^)? `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

def Dist_SequenceParallelOp : Dist_StrategyLine<"sequence_parallel"> {
  let summary = "The mesh axis over which the residual stream is sharded along the sequence";
  let description = [{
    Each rank then computes the norms and additions between projections for its share of the positions only
    (Korthikanti et al., 2022).
  }];
  let arguments = (ins StrAttr:$axis);
  let assemblyFormat = "$axis `` custom<NoBraces>(attr-dict)";
}

//===----------------------------------------------------------------------===//
// Order of computation, and kept values
//===----------------------------------------------------------------------===//

def Dist_MicrobatchesOp : Dist_StrategyLine<"microbatches"> {
  let summary = "The number of microbatches: slices of the batch that a step computes one after another";
  let description = [{
    A step sums the gradients of its microbatches, then updates once. Default: 1. **Constraints:** at least one.
  }];
  let arguments = (ins I64Attr:$count);
  let assemblyFormat = "$count `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

def Dist_StagesOp : Dist_StrategyLine<"stages"> {
  let summary = "The axis along which layers are divided into pipeline stages";
  let description = [{
    `split` is `balanced`, or lists the first and last layer of each stage, or its only layer: `[0..5],[6..10],[11]`.
    Default: axis `"pp"`, if the mesh has it, and `balanced`.
  }];
  let arguments = (ins StrAttr:$axis, OptionalAttr<StrAttr>:$split);
  let assemblyFormat = "$axis (`split` $split^)? `` custom<NoBraces>(attr-dict)";
}

def Dist_ScheduleOp : Dist_StrategyLine<"schedule"> {
  let summary = "The order in which a pipeline's ranks run the passes of microbatches";
  let description = [{
    `docs/schedules.md` lists the schedules; default: `"1f1b"`. A name that ends with ".csv" names a file with a table.
    `bowline-compile` reads that file, relative to the folder of the file with this line, and stores its text as
    `table`, so that the module no longer depends on the file.

    ```mlir
    schedule "two.csv" table "0F0,0B0\0A1F0,1B0\0A"
    ```

    **Constraints:** a `table` needs a name that ends with ".csv".
  }];
  let arguments = (ins StrAttr:$schedule, OptionalAttr<StrAttr>:$table);
  let assemblyFormat = "$schedule (`table` $table^)? `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether the schedule is a table: its name ends with ".csv".
    bool isTable();
  }];
}

def Dist_RecomputeOp : Dist_StrategyLine<"recompute"> {
  let summary = "Which activations the backward pass recomputes";
  let description = [{
    `none`, the default, keeps all activations; of tensors that `sequence_parallel` gathers it keeps only the shards.
    `selective` recomputes cheap activations, `full` all except those between layers, `auto` as few as a memory limit
    allows. **Constraints:** one of these words.
  }];
  let arguments = (ins StrAttr:$activations);
  let assemblyFormat = "$activations `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// How ranks exchange
//===----------------------------------------------------------------------===//

def Dist_BucketBytesOp : Dist_StrategyLine<"bucket_bytes"> {
  let summary = "Upper limit on the bytes of one bucket of gradients or parameters";
  let description = [{
    A larger tensor is exchanged alone; 0: every tensor is. Default: 25 MiB. **Constraints:** not negative.
  }];
  let arguments = (ins I64Attr:$bytes);
  let assemblyFormat = "$bytes `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

def Dist_OverlapChunksOp : Dist_StrategyLine<"overlap_chunks"> {
  let summary = "The number of chunks into which a matrix product and its collective are divided to overlap";
  let description = [{
    One chunk is exchanged while the next one is computed. With `auto` the cost model picks the number. Default: 1.

    **Constraints:** at least one.
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$count);
  let assemblyFormat = "($count^) : (`auto`)? `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

#endif // BOWLINE_DIALECTS_DIST_DISTSTRATEGY_TD
