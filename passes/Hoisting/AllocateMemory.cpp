//===- AllocateMemory.cpp - The uses of memory that save most time
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Remarks.h"
#include "passes/Analysis/Roles.h"
#include "passes/Analysis/TemporaryBlocks.h"
#include "passes/Hoisting/MemoryOffers.h"
#include "passes/Hoisting/Passes.h"
#include "passes/Overlap/OverlapChoices.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_ALLOCATEMEMORY
#include "passes/Hoisting/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class AllocateMemory : public bowline::impl::AllocateMemoryBase<AllocateMemory> {
public:
  using AllocateMemoryBase::AllocateMemoryBase;

  void runOnProgram() override {
    if (memoryLimit == 0)
      return markAllAnalysesPreserved();
    ModuleOp module = getOperation();
    FailureOr<ModuleTarget> target = ModuleTarget::of(module);
    FailureOr<targets::CostModel> model = costModelOf(module, links);
    if (failed(target) || failed(model))
      return signalPassFailure();
    MemoryOffers offers(module, *target, *model, {minSaving, minPersistentSaving});
    llvm::BitVector taken = choose(module, offers, *model);
    offers.decline(module, taken);
    report(module, offers.offers(), taken);
  }

private:
  static constexpr int kMostLeftOut = 4; // by a search, before it ends

  struct Attempt {
    llvm::BitVector taken;
    double seconds = -1; // that a step is shorter
  };

  llvm::BitVector choose(ModuleOp module, const MemoryOffers &offers, const targets::CostModel &model) {
    SmallVector<std::optional<OverlapOptions>> overlaps = {std::nullopt};
    if (!module.getOps<plan::CommunicatorOp>().empty()) {
      OverlapOptions most;
      most.model = model;
      overlaps.clear();
      llvm::append_range(overlaps, overlapChoices(most));
      overlaps.push_back(std::nullopt);
    }
    Attempt best{llvm::BitVector(offers.offers().size())};
    for (const std::optional<OverlapOptions> &overlap : overlaps) {
      std::optional<Attempt> attempt = attemptWith(module, offers, overlap);
      if (attempt && attempt->seconds > best.seconds)
        best = std::move(*attempt);
      // Less overlap has nothing to offer where all of the rest is taken.
      if (best.seconds >= 0 && best.taken.all())
        break;
    }
    return best.taken;
  }

  /// The best use of the memory that an overlap leaves; none where the overlap alone has no room.
  std::optional<Attempt> attemptWith(ModuleOp module, const MemoryOffers &offers,
                                     const std::optional<OverlapOptions> &overlap) {
    double overlapped = 0;
    auto bytesOf = [&](const llvm::BitVector &taken) {
      RoleCopy copy(module);
      offers.apply(*copy, taken);
      if (overlap)
        overlapped = overlapCopy(*copy, *overlap);
      return arenaBytes(*copy);
    };
    std::optional<llvm::BitVector> taken = chooseWithin(memoryLimit, offers.offers().size(), kMostLeftOut, bytesOf);
    if (!taken)
      return std::nullopt;
    bytesOf(*taken); // sets `overlapped` for these
    return Attempt{*taken, overlapped + secondsOf(offers.offers(), *taken)};
  }

  static double secondsOf(ArrayRef<MemoryOffer> offers, const llvm::BitVector &taken) {
    double seconds = 0;
    for (unsigned index : taken.set_bits())
      seconds += offers[index].seconds;
    return seconds;
  }

  static void report(ModuleOp module, ArrayRef<MemoryOffer> offers, const llvm::BitVector &taken) {
    if (offers.empty() || taken.all())
      return;
    remark::missed(module.getLoc(), remark::RemarkOpts::name("AllocateMemory").category("memory"))
        << llvm::formatv("the memory limit leaves room for {0} of {1} commands and weights that could be computed or "
                         "packed ahead: they save {2:F3} of {3:F3} ms of a step by the cost model",
                         taken.count(), offers.size(), 1e3 * secondsOf(offers, taken),
                         1e3 * secondsOf(offers, llvm::BitVector(offers.size(), true)))
               .str();
  }
};

} // namespace
