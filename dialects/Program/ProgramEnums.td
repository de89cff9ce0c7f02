#ifndef BOWLINE_DIALECTS_PROGRAM_PROGRAMENUMS_TD
#define BOWLINE_DIALECTS_PROGRAM_PROGRAMENUMS_TD

// Properties of a program that the runtime needs, shared by all dialects. Names and values equal those in
// runtime/plan/plan.fbs: compiler/Emit asserts the values, and test/Unit/Emit compares the names.

include "mlir/IR/EnumAttr.td"

// The purposes of a persistent tensor. A tensor has a set of flags; code that handles tensors tests the flag that
// matters to it.
def Program_StateFlags : I32BitEnumAttr<"StateFlags", "purposes of a persistent tensor", [
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
    // The tensor belongs to one served request, such as a cache of keys and values. Each request starts with the
    // tensor's initial value, and no checkpoint contains it.
    I32BitEnumAttrCaseBit<"PerRequest", 5, "per_request">,
    // Blocks that served requests share, such as a paged cache. A step reads rows that earlier steps wrote, and no
    // checkpoint contains the tensor.
    I32BitEnumAttrCaseBit<"Cache", 6, "cache">]> {
  let cppNamespace = "::bowline";
  let separator = "|";
}

// The purpose of an entry, by which the runtime finds it. The name of an entry is for people.
def Program_EntryKind : I32EnumAttr<"EntryKind", "purpose of an entry", [
    // None of the kinds below: callers look the entry up by its name.
    I32EnumAttrCase<"Custom", 0, "custom">,
    // Gives every persistent tensor its initial value.
    I32EnumAttrCase<"Init", 1, "init">,
    // One training step: updates every Trained tensor once.
    I32EnumAttrCase<"TrainStep", 2, "train_step">,
    // The loss of a batch, without an update.
    I32EnumAttrCase<"EvalStep", 3, "eval_step">,
    // Computes the logits of the next token of one sequence, from all of its tokens.
    I32EnumAttrCase<"Generate", 4, "generate">,
    // Computes values that depend only on weights and constants, such as packed weights. After a caller set weights,
    // the session runs this entry itself before the next entry.
    I32EnumAttrCase<"Prepare", 5, "prepare">,
    // One serving step over as many tokens as the entry's bucket says.
    I32EnumAttrCase<"Step", 6, "step">,
    // Computes embeddings of sequences with as many tokens as the entry's bucket says.
    I32EnumAttrCase<"Embed", 7, "embed">]> {
  let cppNamespace = "::bowline";
}

#endif // BOWLINE_DIALECTS_PROGRAM_PROGRAMENUMS_TD
