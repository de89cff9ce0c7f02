//===- PlacementEditsTest.cpp - Changes of a divided program are found
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Stage/StageOps.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "test/Unit/Placement/DividedProgram.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using testing::IsEmpty;

namespace {

/// Each change of one operation after which the program computes something else. Operations are named by their position
/// in the module, so that a change can be made in a copy.
class Edits {
 public:
  using Edit = std::function<void(Operation*)>;

  explicit Edits(ModuleOp module) {
    int64_t position = 0;
    module.walk<WalkOrder::PreOrder>([&](Operation* op) {
      collect(op, position);
      ++position;
    });
  }

  size_t count() const { return edits.size(); }

  /// Makes one change in a copy of the module, and says which.
  std::string make(size_t number, ModuleOp copy) const {
    auto& [at, name, edit] = edits[number];
    int64_t position = 0;
    Operation* found = nullptr;
    copy.walk<WalkOrder::PreOrder>([&](Operation* op) {
      if (position++ == at) found = op;
    });
    std::string text;
    llvm::raw_string_ostream(text) << name << ": " << *found;
    edit(found);
    return text;
  }

 private:
  void add(int64_t at, const char* name, Edit edit) { edits.push_back({at, name, std::move(edit)}); }

  /// Whether anything that can be seen depends on the operation.
  static bool isSeen(Operation* op) {
    SmallVector<Operation*> pending = {op};
    llvm::SmallPtrSet<Operation*, 16> known;
    while (!pending.empty()) {
      Operation* next = pending.pop_back_val();
      if (!known.insert(next).second) continue;
      if (next->getNumResults() == 0) return true;
      llvm::append_range(pending, next->getUsers());
    }
    return false;
  }

  void collect(Operation* op, int64_t at) {
    if (!isSeen(op) || !op->getParentOfType<graph::FuncOp>()) return;
    // A reduction over stages hands on the value of one stage, which has the value without the sum.
    auto isOverStages = [](dist::AllReduceOp reduce) { return cast<StringAttr>(reduce.getAxes()[0]) == "pp"; };
    if (auto reduce = dyn_cast<dist::AllReduceOp>(op); reduce && !isOverStages(reduce))
      add(at, "no reduction", [](Operation* op) { op->getResult(0).replaceAllUsesWith(op->getOperand(0)); });
    if (isa<dist::AllReduceOp>(op))
      add(at, "reduced twice", [](Operation* op) {
        OpBuilder builder(op->getContext());
        builder.setInsertionPointAfter(op);
        Operation* again = builder.clone(*op);
        again->setOperand(0, op->getResult(0));
        op->getResult(0).replaceAllUsesExcept(again->getResult(0), again);
      });
    // As a bias that each rank of a row-parallel product adds (pytorch/pytorch 144359).
    if (auto reduce = dyn_cast<dist::AllReduceOp>(op); reduce && !isOverStages(reduce) && bias(reduce))
      add(at, "added to each summand", [](Operation* op) {
        Operation* sum = bias(cast<dist::AllReduceOp>(op));
        unsigned other = sum->getOperand(0) == op->getResult(0) ? 1 : 0;
        OpBuilder builder(sum);
        Value summand = arith::AddFOp::create(builder, op->getLoc(), op->getOperand(0), sum->getOperand(other));
        op->moveBefore(sum);
        op->setOperand(0, summand);
        sum->getResult(0).replaceAllUsesWith(op->getResult(0));
      });
    if (op->hasAttr("axes") && cast<ArrayAttr>(op->getAttr("axes")).size() == 1)
      if (StringAttr other = otherAxis(op))
        add(at, "over another axis",
            [other](Operation* op) { op->setAttr("axes", ArrayAttr::get(op->getContext(), {other})); });
    if (isa<arith::SubFOp, arith::DivFOp>(op) && op->getOperand(0) != op->getOperand(1))
      add(at, "operands exchanged", [](Operation* op) {
        Value first = op->getOperand(0);
        op->setOperand(0, op->getOperand(1));
        op->setOperand(1, first);
      });
    if (isa<arith::AddFOp>(op) && op->getOperand(0) != op->getOperand(1))
      add(at, "the first operand alone", [](Operation* op) { op->getResult(0).replaceAllUsesWith(op->getOperand(0)); });
    if (isa<arith::MulFOp>(op))
      add(at, "the first operand alone", [](Operation* op) { op->getResult(0).replaceAllUsesWith(op->getOperand(0)); });
    if (auto read = dyn_cast<graph::ReadOp>(op))
      if (StringAttr other = otherVariable(read.getVariable(), read))
        add(at, "another variable",
            [other](Operation* op) { cast<graph::ReadOp>(op).setVariableAttr(FlatSymbolRefAttr::get(other)); });
    if (auto write = dyn_cast<graph::WriteOp>(op))
      if (StringAttr other = otherVariable(write.getVariable(), write))
        add(at, "another variable",
            [other](Operation* op) { cast<graph::WriteOp>(op).setVariableAttr(FlatSymbolRefAttr::get(other)); });
    if (isa<graph::WriteOp>(op)) add(at, "not written", [](Operation* op) { op->erase(); });
    for (NamedAttribute attribute : op->getAttrs())
      if (auto number = dyn_cast<FloatAttr>(attribute.getValue()))
        add(at, "another attribute", [name = attribute.getName()](Operation* op) {
          auto number = op->getAttrOfType<FloatAttr>(name);
          op->setAttr(name, FloatAttr::get(number.getType(), 2 * number.getValueAsDouble() + 1));
        });
    if (auto select = dyn_cast<arith::SelectOp>(op); select && select.getTrueValue() != select.getFalseValue())
      add(at, "the other value", [](Operation* op) {
        Value first = op->getOperand(1);
        op->setOperand(1, op->getOperand(2));
        op->setOperand(2, first);
      });
    if (isa<arith::ConstantOp>(op) && isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType())))
      add(at, "another number", [](Operation* op) {
        auto type = cast<RankedTensorType>(op->getResult(0).getType());
        op->setAttr("value",
                    DenseElementsAttr::get(type, Builder(op->getContext()).getFloatAttr(type.getElementType(), 0.75)));
      });
  }

  /// An addition that is the only use of a sum.
  static Operation* bias(dist::AllReduceOp reduce) {
    if (!reduce->hasOneUse() || !isa<arith::AddFOp>(*reduce->user_begin())) return nullptr;
    return *reduce->user_begin();
  }

  /// An axis of the mesh with as many ranks.
  static StringAttr otherAxis(Operation* op) {
    dist::MeshOp mesh = dist::MeshOp::of(op);
    auto axis = cast<StringAttr>(cast<ArrayAttr>(op->getAttr("axes"))[0]);
    if (axis == "pp") return {};
    for (Attribute name : mesh.getAxisNames())
      if (auto other = cast<StringAttr>(name);
          other != axis && mesh.getSize(other) == mesh.getSize(axis) && other != "pp")
        return other;
    return {};
  }

  /// A variable of the same type and purpose, not of the same parameter.
  static StringAttr otherVariable(StringRef name, Operation* op) {
    auto role = op->getParentOfType<ModuleOp>();
    auto variable = cast<graph::Variable>(role.lookupSymbol(name));
    auto state = dyn_cast<graph::StateOp>(variable.getOperation());
    if (state && (state.isStash() || !state.getOwnerAttr())) return {};
    for (auto other : role.getOps<graph::Variable>())
      if (other->getName() == variable->getName() && other.getVariableName() != name &&
          other.getTensorType() == variable.getTensorType() && other.getFileKey() != variable.getFileKey() &&
          other.getOwnerAttr() != FlatSymbolRefAttr::get(op->getContext(), name))
        return StringAttr::get(op->getContext(), other.getVariableName());
    return {};
  }

  struct Made {
    int64_t at;
    const char* name;
    Edit edit;
  };
  std::vector<Made> edits;
};

class PlacementEdits : public DividedProgram, public testing::WithParamInterface<SmallCase> {};

TEST_P(PlacementEdits, AreAllFound) {
  divide(build(GetParam()), options(GetParam()));
  ASSERT_TRUE(divided && record->whole);
  ASSERT_EQ(problemOf(*divided), "");
  Edits edits(*divided);
  std::vector<std::string> accepted;
  for (size_t number = 0; number < edits.count(); ++number) {
    OwningOpRef<ModuleOp> copy = divided->clone();
    std::string name = edits.make(number, *copy);
    if (problemOf(*copy).empty()) accepted.push_back(name);
  }
  EXPECT_GT(edits.count(), 300u);
  EXPECT_THAT(accepted, IsEmpty()) << " of " << edits.count();
}

INSTANTIATE_TEST_SUITE_P(
    , PlacementEdits,
    testing::Values(
        SmallCase{.name = "llama_dp2_tp2", .model = "llama-tiny", .mesh = "dp=2,tp=2", .microbatches = 2},
        SmallCase{.name = "llama_sequence_zero_1",
                  .model = "llama-tiny",
                  .mesh = "dp=2,tp=2",
                  .sequenceParallel = true,
                  .zero = 1},
        SmallCase{.name = "gpt2_zero_3_bf16", .model = "gpt2-tiny", .mesh = "dp=2", .zero = 3, .dtype = "bf16"},
        SmallCase{.name = "gpt2_tp2", .model = "gpt2-tiny", .mesh = "tp=2"},
        SmallCase{.name = "tied_pp2_dp2", .model = "llama-tied", .mesh = "pp=2,dp=2", .microbatches = 2, .layers = 2}),
    [](const auto& info) { return info.param.name; });

}  // namespace
