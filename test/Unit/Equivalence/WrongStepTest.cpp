//===- WrongStepTest.cpp - Steps that change what is computed are found, those that only reorder are not
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Each test puts a step with a pass's mistake into a pipeline, and expects the step's name, the first tensor
// that differs, and the arithmetic in which it does.
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Plan/PlanOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Training/Passes.h"
#include "test/Unit/Equivalence/SmallPipelines.h"

#include <fstream>
#include <regex>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

using Mutation = std::function<void(ModuleOp)>;

class MutationPass : public PassWrapper<MutationPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MutationPass)
  explicit MutationPass(Mutation mutate) : mutate(std::move(mutate)) {}
  void runOnOperation() override { mutate(getOperation()); }

private:
  Mutation mutate;
};

const SmallCase kOneRank{.name = "", .model = "llama-tiny"};
const SmallCase kTwoByTwo{.name = "", .model = "llama-tiny", .mesh = "dp=2,tp=2"};
const SmallCase kPipeline{.name = "", .model = "llama-tied", .mesh = "pp=2,dp=2", .microbatches = 2, .layers = 2};

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

class WrongStep : public SmallPipelines {
protected:
  /// Puts a step "wrong" behind the step `after`, runs until it, and returns the message; "" where nothing is wrong.
  std::string verify(const SmallCase &c, StringRef after, Mutation mutate) {
    OwningOpRef<ModuleOp> module = build(c);
    if (!module)
      return "no module";
    std::vector<Step> steps;
    for (Step &step : stepsToRun(options(c), Phase::Input, Phase::Plan)) {
      steps.push_back(std::move(step));
      if (steps.back().name == after)
        break;
    }
    EXPECT_EQ(steps.back().name, after);
    bool isChanged = false;
    Mutation watched = [&](ModuleOp mutated) {
      std::string before = textOf(mutated);
      mutate(mutated);
      isChanged = before != textOf(mutated);
    };
    steps.push_back({"wrong", steps.back().phase, "", false, [&] { return std::make_unique<MutationPass>(watched); }});
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        message += diagnostic.str() + "\n";
      return success();
    });
    EquivalenceChecker checker;
    bool fails = failed(verifySteps(*module, steps, checker));
    EXPECT_EQ(fails, !message.empty()) << message;
    // The checker's summary names the step exactly if the step changed the program.
    if (!fails)
      EXPECT_EQ(llvm::is_contained(checker.summary().steps, "wrong"), isChanged);
    EXPECT_EQ(checker.isRefuted(), StringRef(message).contains("step 'wrong'")) << message;
    return message;
  }
};

/// The page shows the messages that tests print, up to the numbers.
void expectOnPage(const std::string &message) {
  auto withoutNumbers = [](const std::string &text) {
    return std::regex_replace(text, std::regex("-?[0-9]+(\\.[0-9]+)?(e[-+]?[0-9]+)?"), "#");
  };
  std::ifstream file(BOWLINE_CHECKER_PAGE);
  std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(withoutNumbers(page), HasSubstr(withoutNumbers(message)))
      << "docs/checker.md does not show this any more";
}

/// The operations of a kind in a function, or in all of them.
template <typename Op> SmallVector<Op> all(ModuleOp module, StringRef function = {}) {
  SmallVector<Op> found;
  module.walk([&](graph::FuncOp func) {
    if (function.empty() || func.getName() == function)
      func.walk([&](Op op) { found.push_back(op); });
  });
  EXPECT_FALSE(found.empty());
  return found;
}

Value constant(ImplicitLocOpBuilder &builder, Value like, double value) {
  auto type = cast<RankedTensorType>(like.getType());
  return arith::ConstantOp::create(builder,
                                   DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), value)));
}

/// Replaces a value by the one that `make` computes from it.
void change(Value value, function_ref<Value(ImplicitLocOpBuilder &, Value)> make) {
  ImplicitLocOpBuilder builder(value.getLoc(), value.getContext());
  builder.setInsertionPointAfterValue(value);
  Operation *last = value.getDefiningOp();
  Value changed = make(builder, value);
  SmallPtrSet<Operation *, 4> own;
  for (Operation *op = last->getNextNode(); op != changed.getDefiningOp()->getNextNode(); op = op->getNextNode())
    own.insert(op);
  value.replaceUsesWithIf(changed, [&](OpOperand &use) { return !own.contains(use.getOwner()); });
}

void scale(Value value, double factor) {
  change(value, [&](ImplicitLocOpBuilder &builder, Value old) -> Value {
    return arith::MulFOp::create(builder, old, constant(builder, old, factor));
  });
}

/// The write to a variable.
graph::WriteOp writeTo(ModuleOp module, StringRef variable, StringRef function) {
  for (graph::WriteOp write : all<graph::WriteOp>(module, function))
    if (write.getVariable() == variable)
      return write;
  return nullptr;
}

} // namespace

TEST_F(WrongStep, NothingChanged) {
  EXPECT_EQ(verify(kOneRank, "cse-train", [](ModuleOp) {}), "");
}

TEST_F(WrongStep, OtherOrderOfSums) {
  // (a + b) + c becomes a + (b + c), and products change sides.
  int changed = 0;
  EXPECT_EQ(verify(kTwoByTwo, "cse-local",
                   [&](ModuleOp module) {
                     for (auto add : all<arith::AddFOp>(module)) {
                       auto inner = add.getLhs().getDefiningOp<arith::AddFOp>();
                       if (!inner || !inner->hasOneUse())
                         continue;
                       ImplicitLocOpBuilder builder(add.getLoc(), add);
                       Value right = arith::AddFOp::create(builder, inner.getRhs(), add.getRhs());
                       add.replaceAllUsesWith(arith::AddFOp::create(builder, inner.getLhs(), right).getResult());
                       ++changed;
                     }
                     for (auto mul : all<arith::MulFOp>(module)) {
                       Value lhs = mul.getLhs();
                       mul.getLhsMutable().assign(mul.getRhs());
                       mul.getRhsMutable().assign(lhs);
                     }
                   }),
            "");
  EXPECT_GT(changed, 3);
}

TEST_F(WrongStep, DistributedProduct) {
  // x / 3 becomes (x - y) / 3 + y / 3: true for rational numbers, and rounded otherwise.
  EXPECT_EQ(verify(kOneRank, "cse-train",
                   [](ModuleOp module) {
                     auto mul = all<arith::MulFOp>(module, "train_microbatch").back();
                     ImplicitLocOpBuilder builder(mul.getLoc(), mul);
                     Value third = constant(builder, mul.getLhs(), 3), part = mul.getRhs();
                     Value rest = arith::SubFOp::create(builder, mul.getLhs(), part);
                     Value sum = arith::AddFOp::create(builder, arith::DivFOp::create(builder, rest, third),
                                                       arith::DivFOp::create(builder, part, third));
                     mul.getLhsMutable().assign(arith::MulFOp::create(builder, sum, third));
                   }),
            "");
}

TEST_F(WrongStep, LessThanRounding) {
  // f64 cannot tell it from rounding.
  std::string message = verify(kOneRank, "cse-train", [](ModuleOp module) {
    change(all<graph::DotGeneralOp>(module, "loss").front(), [](ImplicitLocOpBuilder &builder, Value old) -> Value {
      return arith::AddFOp::create(builder, old, constant(builder, old, 1e-14));
    });
  });
  EXPECT_THAT(message,
              AllOf(HasSubstr("step 'wrong' changes what is computed: after @eval_step result 'loss_sum'[] is"),
                    HasSubstr("modulo 2147483647; f64 shows no difference beyond rounding")));
  expectOnPage(message);
}

TEST_F(WrongStep, SwappedOperands) {
  std::string message = verify(kOneRank, "cse-train", [](ModuleOp module) {
    auto sub = all<arith::SubFOp>(module, "train_microbatch").front();
    Value lhs = sub.getLhs();
    sub.getLhsMutable().assign(sub.getRhs());
    sub.getRhsMutable().assign(lhs);
  });
  EXPECT_THAT(message,
              AllOf(HasSubstr("step 'wrong' changes what is computed: after @train_step "), HasSubstr(", in f64")));
}

TEST_F(WrongStep, OtherGelu) {
  SmallCase gpt2 = kOneRank;
  gpt2.model = "gpt2-tiny";
  std::string message = verify(gpt2, "cse-graph", [](ModuleOp module) {
    for (auto gelu : all<graph::GeluOp>(module))
      gelu.setKind(gelu.getKind() == graph::GeluKind::Erf ? graph::GeluKind::Tanh : graph::GeluKind::Erf);
  });
  EXPECT_THAT(message, HasSubstr("step 'wrong' changes what is computed: after @eval_step result 'loss_sum'[] is"));
}

TEST_F(WrongStep, AbsentAllReduce) {
  std::string message = verify(kTwoByTwo, "canonicalize-local", [](ModuleOp module) {
    for (auto reduce : all<dist::AllReduceOp>(module, "train_update"))
      if (cast<RankedTensorType>(reduce.getType()).getRank() == 2) {
        reduce.replaceAllUsesWith(reduce.getOperand());
        return reduce.erase();
      }
  });
  // Ranks go different ways.
  EXPECT_THAT(message, AllOf(HasSubstr("step 'wrong' breaks the program"), HasSubstr("returns as result 1"),
                             HasSubstr("on rank 2")));
  expectOnPage(message);
}

TEST_F(WrongStep, ScaledByDpTwice) {
  // All ranks agree, on gradients that are half as large as they should be.
  std::string message = verify(kTwoByTwo, "canonicalize-local", [](ModuleOp module) {
    for (auto reduce : all<dist::AllReduceOp>(module, "train_update"))
      if (cast<RankedTensorType>(reduce.getType()).getRank() == 2)
        return scale(reduce, 0.5);
  });
  EXPECT_THAT(message, AllOf(HasSubstr("step 'wrong' changes what is computed: after @train_step result 'grad_norm'"),
                             HasSubstr(", in f64")));
  expectOnPage(message);
}

TEST_F(WrongStep, OtherPieceOfASharding) {
  // Columns instead of rows: a square weight has room for either.
  std::string message = verify(kTwoByTwo, "global-to-local", [](ModuleOp module) {
    for (auto gather : all<graph::DotGeneralOp>(module, "loss")) {
      auto lhs = cast<RankedTensorType>(gather.getLhs().getType()),
           rhs = cast<RankedTensorType>(gather.getRhs().getType());
      if (rhs.getRank() != 2 || rhs.getDimSize(0) != rhs.getDimSize(1) || lhs.getRank() != 3)
        continue;
      gather.setRhsContract({1 - gather.getRhsContract()[0]});
      return;
    }
    ADD_FAILURE() << "no square weight";
  });
  EXPECT_THAT(message, HasSubstr("step 'wrong' changes what is computed: after @eval_step result 'loss_sum'"));
}

TEST_F(WrongStep, MixedUpBucket) {
  SmallCase sharded = kTwoByTwo;
  sharded.zero = 3;
  std::string message = verify(sharded, "coalesce-collectives", [](ModuleOp module) {
    // Two parameters of one shape that are gathered together change places.
    for (auto bucket : all<dist::BucketOp>(module, "loss"))
      for (Value a : bucket.getOutputs())
        for (Value b : bucket.getOutputs())
          if (a != b && a.getType() == b.getType()) {
            Value first = bucket.getInputs()[cast<OpResult>(a).getResultNumber()];
            bucket->setOperand(cast<OpResult>(a).getResultNumber(),
                               bucket.getInputs()[cast<OpResult>(b).getResultNumber()]);
            return bucket->setOperand(cast<OpResult>(b).getResultNumber(), first);
          }
    ADD_FAILURE() << "no bucket with two tensors of one shape";
  });
  EXPECT_THAT(message, HasSubstr("step 'wrong' changes what is computed: after @eval_step result 'loss_sum'"));
}

TEST_F(WrongStep, ForgottenUpdate) {
  std::string message = verify(kTwoByTwo, "coalesce-collectives",
                               [](ModuleOp module) { writeTo(module, "layers.0.mlp.w_up", "train_update").erase(); });
  EXPECT_THAT(message, HasSubstr("after @train_step parameter @layers.0.mlp.w_up[0, 0] is"));
}

TEST_F(WrongStep, LostMicrobatch) {
  SmallCase two = kOneRank;
  two.microbatches = 2;
  std::string message = verify(two, "keep-accumulators", [](ModuleOp module) {
    // The second microbatch overwrites the sum of the first one.
    graph::WriteOp write = writeTo(module, "layers.0.attn.wk.grad", "train_microbatch");
    auto sum = write.getValue().getDefiningOp<arith::AddFOp>();
    Value addend = sum.getLhs().getDefiningOp<graph::ReadOp>() ? sum.getRhs() : sum.getLhs();
    write.getValueMutable().assign(addend);
  });
  EXPECT_THAT(message, HasSubstr("step 'wrong' changes what is computed: after @train_step result 'grad_norm'"));
}

TEST_F(WrongStep, WrongGradient) {
  // Nothing but the loss itself is there to compare with.
  OwningOpRef<ModuleOp> module = build(kOneRank);
  std::vector<Step> steps;
  for (Step &step : stepsToRun(options(kOneRank), Phase::Input, Phase::Train))
    if (step.name != "differentiate")
      steps.push_back(std::move(step));
    else
      break;
  steps.push_back({"wrong", Phase::Train, "", false, [] { return createDifferentiate(); }});
  // Two passes as one step: one differentiates, and the other one spoils the result.
  struct Both : PassWrapper<Both, OperationPass<ModuleOp>> {
    MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Both)
    void runOnOperation() override {
      OpPassManager passes(ModuleOp::getOperationName());
      passes.addPass(createDifferentiate());
      if (failed(runPipeline(passes, getOperation())))
        return signalPassFailure();
      scale(writeTo(getOperation(), "layers.0.attn.wv.grad", "train_microbatch").getValue(), 1.001);
    }
  };
  steps.back().create = [] { return std::make_unique<Both>(); };
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
    return success();
  });
  EquivalenceChecker checker;
  EXPECT_TRUE(failed(verifySteps(*module, steps, checker)));
  EXPECT_TRUE(checker.isRefuted());
  EXPECT_THAT(message, AllOf(HasSubstr("step 'wrong' gives parameter @layers.0.attn.wv a wrong gradient: it is "),
                             HasSubstr("where central differences of the loss are")));
  expectOnPage(message);
}

TEST_F(WrongStep, MirrorLeftBehind) {
  // The last stage keeps last step's embedding.
  std::string message = verify(kPipeline, "cse-local", [](ModuleOp module) {
    for (auto nested : module.getOps<ModuleOp>())
      for (auto param : nested.getOps<graph::ParamOp>())
        if (param.isMirror())
          for (auto write : all<graph::WriteOp>(nested))
            if (write.getVariable() == param.getName() &&
                write->getParentOfType<graph::FuncOp>().getName() != "initialize")
              write.erase();
  });
  EXPECT_THAT(message, HasSubstr("step 'wrong' changes what is computed: after @train_step parameter @embed"));
}

TEST_F(WrongStep, MessagesThatWaitForEachOther) {
  std::string message = verify(kPipeline, "split-stages", [](ModuleOp module) {
    SmallVector<ModuleOp> ranks = llvm::to_vector(module.getOps<ModuleOp>());
    auto receive = all<stage::ReceiveOp>(ranks.back(), "loss").front();
    receive.setChannel("another");
  });
  EXPECT_THAT(message,
              AllOf(HasSubstr("step 'wrong' breaks the program: all ranks wait"), HasSubstr("on channel 'another'")));
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

namespace {

/// The operations of a kind in a program.
template <typename Op> SmallVector<Op> commands(ModuleOp module, StringRef program) {
  SmallVector<Op> found;
  module.walk([&](plan::ProgramOp op) {
    if (op.getName() == program)
      op.walk([&](Op command) { found.push_back(command); });
  });
  EXPECT_FALSE(found.empty()) << program.str();
  return found;
}

/// Of a program without stages.
ModuleOp onlyRole(ModuleOp module) {
  EXPECT_TRUE(llvm::hasSingleElement(module.getOps<ModuleOp>()));
  return *module.getOps<ModuleOp>().begin();
}

plan::KernelOp kernelOf(plan::LaunchOp launch) {
  return SymbolTable(launch->getParentOfType<ModuleOp>()).lookup<plan::KernelOp>(launch.getKernel());
}

plan::BufferOp buffer(Value value) { return value.getDefiningOp<plan::BufferOp>(); }

} // namespace

TEST_F(WrongStep, CommandsInAnotherOrder) {
  // The first two commands that share no buffer change places.
  int changed = 0;
  EXPECT_EQ(verify(kOneRank, "pack-arena",
                   [&](ModuleOp module) {
                     for (auto launch : commands<plan::LaunchOp>(module, "init_program")) {
                       auto next = dyn_cast_or_null<plan::LaunchOp>(launch->getNextNode());
                       if (next && llvm::none_of(launch.getOperands(), [&](Value value) {
                             return llvm::is_contained(next.getOperands(), value);
                           })) {
                         launch->moveAfter(next);
                         ++changed;
                         return;
                       }
                     }
                   }),
            "");
  EXPECT_EQ(changed, 1);
}

TEST_F(WrongStep, TransposedWeight) {
  // The mistake: select-kernels takes the strides of a square weight for those of its transpose.
  std::string message = verify(kOneRank, "select-kernels", [](ModuleOp module) {
    for (auto kernel : onlyRole(module).getOps<plan::KernelOp>()) {
      DictionaryAttr config = kernel.getConfigAttr();
      auto strides = config ? config.getAs<DenseI64ArrayAttr>("b_strides") : DenseI64ArrayAttr();
      if (!strides || config.getAs<IntegerAttr>("k") != config.getAs<IntegerAttr>("n"))
        continue;
      NamedAttrList changed(config);
      changed.set("b_strides", DenseI64ArrayAttr::get(module.getContext(), {strides[0], strides[2], strides[1]}));
      return kernel.setConfigAttr(changed.getDictionary(module.getContext()));
    }
    ADD_FAILURE() << "no square weight";
  });
  EXPECT_THAT(message, HasSubstr("step 'wrong' changes what is computed: after @eval_step result 'loss_sum'"));
}

TEST_F(WrongStep, LostCommand) {
  std::string message = verify(kOneRank, "schedule-commands", [](ModuleOp module) {
    for (auto launch : commands<plan::LaunchOp>(module, "eval_step_program"))
      if (kernelOf(launch).getRegistered() == "gather_rows")
        return launch.erase();
  });
  EXPECT_THAT(message, AllOf(HasSubstr("step 'wrong' breaks the program: "),
                             HasSubstr("reads element 0 of buffer 'eval_step.gather_rows.0.0', slot 0, where nothing "
                                       "was written, or written over")));
}

TEST_F(WrongStep, UpdateBeforeItsGradient) {
  // The second microbatch's part of a gradient comes too late for the update.
  SmallCase two = kOneRank;
  two.microbatches = 2;
  std::string message = verify(two, "schedule-commands", [](ModuleOp module) {
    auto program = onlyRole(module).lookupSymbol<plan::ProgramOp>("train_step_program");
    SmallVector<int64_t> timeline(program.getTimeline());
    size_t last = timeline.size() - 2;
    std::swap(timeline[last], timeline[last - 2]);
    std::swap(timeline[last + 1], timeline[last - 1]);
    program.setTimeline(timeline);
  });
  EXPECT_THAT(message, HasSubstr("step 'wrong' changes what is computed: after @train_step result 'loss'"));
}

TEST_F(WrongStep, OneMicrobatchTwice) {
  SmallCase two = kOneRank;
  two.microbatches = 2;
  std::string message = verify(two, "pack-arena", [](ModuleOp module) {
    auto program = onlyRole(module).lookupSymbol<plan::ProgramOp>("train_step_program");
    SmallVector<int64_t> timeline(program.getTimeline());
    for (size_t call = 1; call < timeline.size(); call += 2)
      timeline[call] = 0;
    program.setTimeline(timeline);
  });
  EXPECT_THAT(message, HasSubstr("step 'wrong' changes what is computed: after @train_step result 'loss'"));
  expectOnPage(message);
}

TEST_F(WrongStep, BytesOfTwoBuffers) {
  // A buffer written while the residual stream waits for its sum gets the bytes of the residual stream.
  std::string message = verify(kOneRank, "pack-arena", [](ModuleOp module) {
    plan::BufferOp residual;
    for (auto launch : commands<plan::LaunchOp>(module, "eval_step_program")) {
      plan::KernelOp kernel = kernelOf(launch);
      plan::BufferOp first = buffer(launch.getOperands().front());
      if (kernel.getRegistered() == "gather_rows")
        residual = buffer(launch.getOperands().back());
      else if (residual && first == residual)
        for (Value value : launch.getOperands())
          if (buffer(value) != residual && buffer(value).getType() == residual.getType())
            return buffer(value).setOffset(*residual.getOffset());
    }
    ADD_FAILURE() << "no norm of the residual stream";
  });
  EXPECT_THAT(message, HasSubstr("step 'wrong' changes what is computed: after @eval_step result 'loss_sum'"));
}

TEST_F(WrongStep, MaximumInsteadOfSum) {
  std::string message = verify(kTwoByTwo, "insert-events", [](ModuleOp module) {
    for (auto collective : commands<plan::CollectiveOp>(module, "train_step_program"))
      if (collective.getDefinition().reduces() && collective.getParameter() == 0)
        return collective.setParameter(1);
  });
  EXPECT_THAT(message, HasSubstr("step 'wrong' "));
}

TEST_F(WrongStep, AnotherWeightPacked) {
  SmallCase two = kOneRank;
  two.microbatches = 2;
  std::string message = verify(two, "schedule-commands", [](ModuleOp module) {
    // Keys are computed with the weight of the values.
    for (auto launch : commands<plan::LaunchOp>(module, "train_step_program"))
      for (OpOperand &operand : launch->getOpOperands())
        if (buffer(operand.get()).getName() == "layers.0.attn.wk")
          for (auto state : onlyRole(module).getOps<plan::StateOp>())
            if (buffer(state.getBuffer()).getName() == "layers.0.attn.wv")
              return operand.set(state.getBuffer());
  });
  EXPECT_THAT(message, HasSubstr("step 'wrong' changes what is computed: after @train_step result 'loss'"));
}

TEST_F(WrongStep, TransfersThatWaitForEachOther) {
  std::string message = verify(kPipeline, "overlap-commands", [](ModuleOp module) {
    // The last stage wants to be rid of its first gradient before it takes its first activation.
    auto last = llvm::to_vector(module.getOps<ModuleOp>()).back();
    auto receive = commands<plan::ReceiveOp>(last, "train_step_program").front();
    receive.setCommunicator(commands<plan::SendOp>(last, "train_step_program").front().getCommunicator());
  });
  EXPECT_THAT(message, AllOf(HasSubstr("step 'wrong' breaks the program: all ranks wait for each other; rank 0 in "),
                             HasSubstr("plan.receive")));
}

TEST_F(WrongStep, EntryThatIsGone) {
  std::string message =
      verify(kOneRank, "cse-train", [](ModuleOp module) { module.lookupSymbol<graph::EntryOp>("eval_step").erase(); });
  EXPECT_THAT(message, HasSubstr("step 'wrong' removes entry @eval_step"));
}

TEST_F(WrongStep, TooLarge) {
  SmallCase large = kOneRank;
  large.vocabulary = 1000000, large.heads = 64, large.keyHeads = 64;
  EXPECT_THAT(verify(large, "cse-graph", [](ModuleOp) {}),
              AllOf(HasSubstr("is too large to be interpreted before and after every pass: one run takes "),
                    HasSubstr("million are the limit; take smaller sizes or fewer ranks")));
}
