#ifndef BOWLINE_DIALECTS_DIST_DISTSTRATEGY_TD
#define BOWLINE_DIALECTS_DIST_DISTSTRATEGY_TD

include "dialects/Dist/DistAttrs.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

// A person writes the operation. An attribute that it does not define would be a choice without an effect, so that it is
// refused, in the generic form too; and so are braces, in which an attribute would replace the line's value.
def Dist_NoFurtherAttributes : NativeOpTrait<"NoFurtherAttributes"> { let cppNamespace = "::bowline::dist"; }

def Dist_StrategyOp : Dist_Op<"strategy", [
    Symbol, SymbolTable, SingleBlock, NoTerminator, NoRegionArguments, Dist_NoFurtherAttributes,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getDefaultDialect"]>]> {
  let summary = "How to compute a program, as a person writes it: by which ranks, in which order, keeping which values";
  let description = [{
    A strategy changes how a model is computed, never its meaning. It stands beside the model, in the same file or in
    its own, so that one model compiles under many. One line per choice, in any order; a choice without a line has its
    default. All flags of `bowline-compile` that choose such things write this operation, and all passes read it.

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

    Without a mesh there is one rank. Each line takes effect or is refused, and so is an attribute that none
    of them defines; a line that does not suit the model, or further lines, is refused by the pass that needs it.

    **Constraints:** at most one line of each kind, but any number of `shard`; axes of the strategy's mesh; the batch,
    tensor parallelism and the stages have axes of their own, sequence parallelism none of the batch or the stages, and
    neither patterns nor ZeRO that of the stages.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `` custom<NoAttributesKeyword>(attr-dict) $body";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The strategy of the outermost module around `op`, or `op` itself, that has one; else null.
    static StrategyOp of(::mlir::Operation *op);
    /// Null for one rank.
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
  let summary = "The axes among whose ranks the sequences of a batch are divided, the first one outermost";
  let description = [{
    Default: `"dp", "fsdp"`, those of them that the mesh has. Two axes allow hybrid sharding: ZeRO along one of them,
    copies along the other.

    **Constraints:** at least one axis, none twice.
  }];
  let arguments = (ins StrArrayAttr:$axes);
  let assemblyFormat = "custom<AxisList>($axes) `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

def Dist_TensorParallelOp : Dist_StrategyLine<"tensor_parallel"> {
  let summary = "The axis among whose ranks the projections of a layer are divided";
  let description = [{
    Default: `"tp"`, where the mesh has it. Which parameter is sharded how, if no `shard` says otherwise, follows from
    its role: `passes/Sharding/Assignment/TensorParallel.h`.
  }];
  let arguments = (ins StrAttr:$axis);
  let assemblyFormat = "$axis `` custom<NoBraces>(attr-dict)";
}

def Dist_ShardOp : Dist_StrategyLine<"shard"> {
  let summary = "The sharding of all parameters whose symbols or keys match a pattern";
  let description = [{
    `*` stands for any characters, `?` for one, `{q,k,v}` for one of the words, `[0-3]` for one of the characters. The
    key is the parameter's name in safetensors files: `layers.*.attn.wo` and `model.layers.*.self_attn.o_proj.weight`
    match the same parameters. Of several matching lines the last one counts.

    **Constraints:** a well-formed pattern; no unreduced axes.
  }];
  let arguments = (ins StrAttr:$pattern, Dist_ShardingAttr:$sharding);
  let assemblyFormat = "$pattern `as` $sharding `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

def Dist_ZeroOp : Dist_StrategyLine<"zero"> {
  let summary = "States that the ranks of an axis divide among themselves instead of keeping copies";
  let description = [{
    Level 1: the optimizer's states; 2: gradients too; 3: parameters too (Rajbhandari et al., ZeRO, 2020). The axis is
    one over which gradients are summed; default: `"fsdp"`, if the batch is divided along it and it has several ranks,
    else the first such axis of the batch. With level 3 up to `prefetch` gathers of parameters may be under way ahead of
    use, by default one. `once`: where microbatches run one after the other, their parameters are gathered once for all
    of them, and their gradients are added up whole and reduced once; both are in memory meanwhile.

    **Constraints:** a level from 0 to 3, an axis for 1 to 3 alone; `prefetch` is not negative; `prefetch` and `once` are
    for level 3 alone.
  }];
  let arguments = (ins I64Attr:$level, OptionalAttr<StrAttr>:$axis, OptionalAttr<I64Attr>:$prefetch, UnitAttr:$once);
  let assemblyFormat = "`level` $level (`axis` $axis^)? (`prefetch` $prefetch^)? (`once` $once^)? `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

def Dist_SequenceParallelOp : Dist_StrategyLine<"sequence_parallel"> {
  let summary = "The axis along which the sequence of the residual stream is sharded";
  let description = [{
    Korthikanti et al., 2022. Norms and additions between projections are then computed for a part of the positions by
    each rank.
  }];
  let arguments = (ins StrAttr:$axis);
  let assemblyFormat = "$axis `` custom<NoBraces>(attr-dict)";
}

//===----------------------------------------------------------------------===//
// Order of computation, and kept values
//===----------------------------------------------------------------------===//

def Dist_MicrobatchesOp : Dist_StrategyLine<"microbatches"> {
  let summary = "How many slices of the batch a step computes one after another";
  let description = [{
    Gradients are summed over them before the one update. Default: 1. **Constraints:** at least one.
  }];
  let arguments = (ins I64Attr:$count);
  let assemblyFormat = "$count `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

def Dist_StagesOp : Dist_StrategyLine<"stages"> {
  let summary = "The axis along which layers are divided into pipeline stages";
  let description = [{
    `split` is `balanced`, or the layers of each stage, first and last, or the only one: `[0..5],[6..10],[11]`.
    Default: `"pp"`, where the mesh has it, balanced.
  }];
  let arguments = (ins StrAttr:$axis, OptionalAttr<StrAttr>:$split);
  let assemblyFormat = "$axis (`split` $split^)? `` custom<NoBraces>(attr-dict)";
}

def Dist_ScheduleOp : Dist_StrategyLine<"schedule"> {
  let summary = "In which order a pipeline's ranks compute";
  let description = [{
    The schedules are those of `docs/schedules.md`; default: `"1f1b"`. One whose name ends with ".csv" is a table: the
    text of the file of this name. `bowline-compile` reads the file, from the folder of the file that names it, and
    writes its text behind the name, so that the module does not depend on files any more.

    ```mlir
    schedule "two.csv" table "0F0,0B0\0A1F0,1B0\0A"
    ```

    **Constraints:** no table without such a name.
  }];
  let arguments = (ins StrAttr:$schedule, OptionalAttr<StrAttr>:$table);
  let assemblyFormat = "$schedule (`table` $table^)? `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether the schedule is the text of a file.
    bool isTable();
  }];
}

def Dist_RecomputeOp : Dist_StrategyLine<"recompute"> {
  let summary = "Which activations the backward pass computes again";
  let description = [{
    `none`, the default, keeps all of them, but of tensors that `sequence_parallel` gathers, the shards; `selective`
    computes cheap ones again, `full` all but those between layers, `auto` as few as a limit of memory allows.
    **Constraints:** one of these words.
  }];
  let arguments = (ins StrAttr:$activations);
  let assemblyFormat = "$activations `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// How ranks exchange
//===----------------------------------------------------------------------===//

def Dist_BucketBytesOp : Dist_StrategyLine<"bucket_bytes"> {
  let summary = "Most bytes of gradients or parameters that ranks exchange in one operation";
  let description = [{
    Where several could be joined; 0: each tensor alone. Default: 25 MiB. **Constraints:** not negative.
  }];
  let arguments = (ins I64Attr:$bytes);
  let assemblyFormat = "$bytes `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

def Dist_OverlapChunksOp : Dist_StrategyLine<"overlap_chunks"> {
  let summary = "Into how many chunks matrix products and the exchanges beside them are divided";
  let description = [{
    One chunk is exchanged while the next one is computed. `auto`: the cost model chooses the number. Default: 1.

    **Constraints:** at least one.
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$count);
  let assemblyFormat = "($count^) : (`auto`)? `` custom<NoBraces>(attr-dict)";
  let hasVerifier = 1;
}

#endif // BOWLINE_DIALECTS_DIST_DISTSTRATEGY_TD
