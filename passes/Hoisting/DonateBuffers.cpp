//===- DonateBuffers.cpp - Compute results where they are wanted
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinOps.h"
#include "passes/Analysis/InPlace.h"
#include "passes/Analysis/Lifetimes.h"
#include "passes/Hoisting/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace bowline {
#define GEN_PASS_DEF_DONATEBUFFERS
#include "passes/Hoisting/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

/// Removes the copies of one program.
class Donation {
public:
  Donation(plan::ProgramOp program, SymbolTable &symbols) : program(program), symbols(symbols) {
    int64_t next = 0;
    program.walk([&](Operation *op) {
      if (isa<plan::Command>(op))
        position[op] = next++;
    });
  }

  void run() {
    SmallVector<plan::CopyOp> copies;
    program.walk([&](plan::CopyOp copy) { copies.push_back(copy); });
    for (plan::CopyOp copy : copies)
      if (canDonate(copy))
        donate(copy);
  }

private:
  /// A command of this program and how it uses a buffer.
  struct Use {
    Operation *command;
    bool reads, writes;
  };

  SmallVector<Use> usesIn(Value buffer) {
    SmallVector<Use> result;
    llvm::SetVector<Operation *> users(buffer.user_begin(), buffer.user_end());
    for (Operation *user : users) {
      if (!position.contains(user))
        continue;
      Use use{user, false, false};
      for (const CommandUse &operand : usesOf(user, symbols))
        if (operand.buffer == buffer) {
          use.reads |= operand.reads;
          use.writes |= operand.writes;
        }
      result.push_back(use);
    }
    return result;
  }

  bool canDonate(plan::CopyOp copy) {
    Value source = copy.getSource(), destination = copy.getDestination();
    auto buffer = source.getDefiningOp<plan::BufferOp>();
    if (buffer.getKind() != plan::BufferKind::Temporary || source == destination)
      return false;
    // Kernels do not reach every memory space, and who stages a tensor elsewhere wants it there.
    if (buffer.getSpace() != destination.getDefiningOp<plan::BufferOp>().getSpace())
      return false;

    // A port, or a command of another program, would see the destination instead.
    if (llvm::any_of(source.getUsers(), [&](Operation *user) { return !position.contains(user); }))
      return false;
    Operation *producer = nullptr;
    int64_t firstUse = position.lookup(copy), lastUse = 0;
    for (const Use &use : usesIn(source)) {
      if (use.command->getParentOp() != copy->getParentOp())
        return false;
      firstUse = std::min(firstUse, position.lookup(use.command));
      lastUse = std::max(lastUse, position.lookup(use.command));
      if (!use.writes)
        continue;
      if (producer || use.reads || !isa<plan::LaunchOp, plan::CollectiveOp>(use.command))
        return false;
      producer = use.command;
    }
    // A value that is read before it is written comes from the run of the segment before.
    if (!producer || firstUse != position.lookup(producer))
      return false;

    int64_t start = position.lookup(producer), end = position.lookup(copy);
    for (const Use &use : usesIn(destination)) {
      int64_t at = position.lookup(use.command);
      bool inBetween = at > start && at < end;
      bool overwritesLater = use.writes && at > end && at <= lastUse;
      bool clashes = use.command == producer && !producerMayOverwrite(producer, source, destination);
      if (inBetween || overwritesLater || clashes)
        return false;
    }
    return true;
  }

  bool producerMayOverwrite(Operation *command, Value source, Value destination) {
    auto producer = dyn_cast<plan::LaunchOp>(command);
    if (!producer)
      return false; // ranks read the sent buffer while others receive
    auto kernel = symbols.lookup<plan::KernelOp>(producer.getKernel());
    unsigned output = llvm::find(producer.getOperands(), source) - producer.getOperands().begin();
    return mayOverwrite(producer, kernel, output, destination);
  }

  void donate(plan::CopyOp copy) {
    Value source = copy.getSource(), destination = copy.getDestination();
    position.erase(copy);
    copy.erase();
    source.replaceAllUsesWith(destination);
    source.getDefiningOp()->erase();
  }

  plan::ProgramOp program;
  SymbolTable &symbols;
  DenseMap<Operation *, int64_t> position;
};

class DonateBuffers : public bowline::impl::DonateBuffersBase<DonateBuffers> {
public:
  using DonateBuffersBase::DonateBuffersBase;

  void runOnProgram() override {
    SymbolTable symbols(getOperation());
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      Donation(program, symbols).run();
  }
};

} // namespace
