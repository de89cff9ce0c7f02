#ifndef BOWLINE_DIALECTS_PROGRAM_PROGRAMENUMS_TD
#define BOWLINE_DIALECTS_PROGRAM_PROGRAMENUMS_TD

// What a program says about itself to those who run it, whichever dialect it is in. Names and values are those of
// runtime/plan/plan.fbs, as compiler/Emit asserts and test/Unit/Emit compares.

include "mlir/IR/EnumAttr.td"

// What a persistent tensor is for. A kind of tensor is a set of flags; whoever handles tensors asks for the flag that
// matters to it.
def Program_StateFlags : I32BitEnumAttr<"StateFlags", "what a persistent tensor is for", [
    I32BitEnumAttrCaseNone<"None", "none">,
    // A training step computes its gradient and updates it.
    I32BitEnumAttrCaseBit<"Trained", 0, "trained">,
    // A checkpoint has it, and is refused without it.
    I32BitEnumAttrCaseBit<"Saved", 1, "saved">,
    // A model's weights have it under its key.
    I32BitEnumAttrCaseBit<"Weight", 2, "weight">,
    // It always equals the saved tensor of its key, rounded where it is narrower: loaded from that, never saved.
    I32BitEnumAttrCaseBit<"Mirror", 3, "mirror">,
    // The number of finished steps, as one i32.
    I32BitEnumAttrCaseBit<"Step", 4, "step">,
    // It belongs to the request that is served, as a cache does: each begins with the initial value, no checkpoint has it.
    I32BitEnumAttrCaseBit<"PerRequest", 5, "per_request">]> {
  let cppNamespace = "::bowline";
  let separator = "|";
}

// What an entry does for those who run a plan; they find it by this. Its name is for people.
def Program_EntryKind : I32EnumAttr<"EntryKind", "what an entry does", [
    // Whatever its name says: who runs it asks for it by name.
    I32EnumAttrCase<"Custom", 0, "custom">,
    // Gives every persistent tensor its initial value.
    I32EnumAttrCase<"Init", 1, "init">,
    // One update of what is trained.
    I32EnumAttrCase<"TrainStep", 2, "train_step">,
    // The loss of a batch, without an update.
    I32EnumAttrCase<"EvalStep", 3, "eval_step">,
    // The next token's logits, of one sequence that is computed whole.
    I32EnumAttrCase<"Generate", 4, "generate">,
    // What depends on weights and constants alone: run by the session itself, when weights were set.
    I32EnumAttrCase<"Prepare", 5, "prepare">,
    // A step of serving, of as many tokens as its bucket has.
    I32EnumAttrCase<"Step", 6, "step">,
    // Embeddings of sequences, of as many tokens as its bucket has.
    I32EnumAttrCase<"Embed", 7, "embed">]> {
  let cppNamespace = "::bowline";
}

#endif // BOWLINE_DIALECTS_PROGRAM_PROGRAMENUMS_TD
