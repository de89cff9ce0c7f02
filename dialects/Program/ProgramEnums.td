#ifndef BOWLINE_DIALECTS_PROGRAM_PROGRAMENUMS_TD
#define BOWLINE_DIALECTS_PROGRAM_PROGRAMENUMS_TD

// Properties of a program in any dialect that the runtime needs to run it. Names and values are those of
// runtime/plan/plan.fbs, as compiler/Emit asserts and test/Unit/Emit compares.

include "mlir/IR/EnumAttr.td"

// The purposes of a persistent tensor. A kind of tensor is a set of flags; code that handles tensors asks for the flag
// that matters to it.
def Program_StateFlags : I32BitEnumAttr<"StateFlags", "what a persistent tensor is for", [
    I32BitEnumAttrCaseNone<"None", "none">,
    // A training step computes the tensor's gradient and updates the tensor.
    I32BitEnumAttrCaseBit<"Trained", 0, "trained">,
    // Checkpoints contain the tensor; one that does not is refused.
    I32BitEnumAttrCaseBit<"Saved", 1, "saved">,
    // The files of a model's weights contain the tensor, under its key.
    I32BitEnumAttrCaseBit<"Weight", 2, "weight">,
    // A copy of the Saved tensor with the same key, rounded where the copy's type is narrower. Loading a checkpoint
    // sets it from that tensor; it is never saved itself.
    I32BitEnumAttrCaseBit<"Mirror", 3, "mirror">,
    // The number of finished steps, as one i32.
    I32BitEnumAttrCaseBit<"Step", 4, "step">,
    // It belongs to one request that is served, as a cache of keys and values does: every request begins with the
    // initial value, and no checkpoint contains it.
    I32BitEnumAttrCaseBit<"PerRequest", 5, "per_request">,
    // Blocks that requests which are served share, as a paged cache has them: a step reads rows that steps wrote, and
    // no checkpoint contains it.
    I32BitEnumAttrCaseBit<"Cache", 6, "cache">]> {
  let cppNamespace = "::bowline";
  let separator = "|";
}

// The purpose of an entry, by which the runtime finds it. The name of an entry is for people.
def Program_EntryKind : I32EnumAttr<"EntryKind", "what an entry does", [
    // None of the kinds below: callers look it up by its name.
    I32EnumAttrCase<"Custom", 0, "custom">,
    // Gives every persistent tensor its initial value.
    I32EnumAttrCase<"Init", 1, "init">,
    // One training step: updates every Trained tensor once.
    I32EnumAttrCase<"TrainStep", 2, "train_step">,
    // The loss of a batch, without an update.
    I32EnumAttrCase<"EvalStep", 3, "eval_step">,
    // The next token's logits, of one sequence that is computed whole.
    I32EnumAttrCase<"Generate", 4, "generate">,
    // Computes values that depend on weights and constants alone, as packed weights. After weights were set, the
    // session runs it by itself before the next entry.
    I32EnumAttrCase<"Prepare", 5, "prepare">,
    // A step of serving, of as many tokens as its bucket has.
    I32EnumAttrCase<"Step", 6, "step">,
    // Embeddings of sequences, of as many tokens as its bucket has.
    I32EnumAttrCase<"Embed", 7, "embed">]> {
  let cppNamespace = "::bowline";
}

#endif // BOWLINE_DIALECTS_PROGRAM_PROGRAMENUMS_TD
