//===- EarlyReductionsTest.cpp - Reductions that move change nothing that a random program computes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Overlap/EarlyReductions.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "passes/Analysis/StreamClocks.h"
#include "test/Unit/Interp/OpHarness.h"
#include "llvm/ADT/Hashing.h"
#include "gtest/gtest.h"

#include <map>
#include <random>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

/// The values of states at the end, as hashes of expressions; commands run in the order of issue. A buffer that nothing
/// wrote holds its name.
std::map<std::string, size_t> statesAfter(plan::ProgramOp program, SymbolTable &symbols) {
  std::map<std::pair<const void *, int64_t>, size_t> values;
  std::map<std::string, size_t> states;
  auto nameOf = [](Value buffer) { return buffer.getDefiningOp<plan::BufferOp>().getName().str(); };
  auto valueOf = [&](Value buffer, int64_t slot) -> size_t & {
    slot %= static_cast<int64_t>(buffer.getDefiningOp<plan::BufferOp>().getSlots());
    size_t initial = llvm::hash_combine(nameOf(buffer), slot);
    return values.try_emplace({buffer.getAsOpaquePointer(), slot}, initial).first->second;
  };
  walkTimeline(
      program, [](int64_t) {},
      [&](Operation *op, int64_t slot) {
        SmallVector<CommandUse> uses = usesOf(op, symbols);
        std::vector<std::pair<Value, size_t>> written;
        if (auto collective = dyn_cast<plan::CollectiveOp>(op)) {
          size_t what = llvm::hash_combine(static_cast<int>(collective.getKind()), collective.getCommunicator());
          for (auto [source, result] : llvm::zip_equal(collective.getSources(), collective.getDestinations()))
            written.emplace_back(result, llvm::hash_combine(what, valueOf(source, slot)));
        } else {
          auto launch = dyn_cast<plan::LaunchOp>(op);
          size_t what = llvm::hash_value(launch ? launch.getKernel() : StringRef("copy"));
          for (const CommandUse &use : uses)
            if (use.reads)
              what = llvm::hash_combine(what, valueOf(use.buffer, slot));
          for (const CommandUse &use : uses)
            if (use.writes)
              written.emplace_back(use.buffer, what);
        }
        for (auto [buffer, value] : written) {
          valueOf(buffer, slot) = value;
          if (buffer.getDefiningOp<plan::BufferOp>().getKind() == plan::BufferKind::State)
            states[nameOf(buffer)] = value;
        }
      });
  return states;
}

/// Programs whose segments are called in any order, then an update that is called once: kernels and copies in all of
/// them, in the update also reductions over two axes. Buffers have 1 or 2 slots; all is read and written everywhere.
class RandomUpdates {
public:
  explicit RandomUpdates(unsigned seed) : random(seed) {}

  std::string text() {
    buffers = pick(6, 14);
    std::string text = R"(module attributes {stage.axis = "pp"} {
dist.mesh @mesh ["pp", "dp"] [2, 2]
plan.communicator @pp over ["pp"]
plan.communicator @dp over ["dp"]
)";
    for (int i = 0; i < buffers; ++i)
      text += name(i) + " = plan.buffer \"b" + std::to_string(i) + "\" " + (i < 3 ? "state" : "temporary") + " : " +
              kType + (pick(0, 7) == 0 ? " slots 2 stride 128\n" : "\n");
    for (int i = 0; i < kShards; ++i)
      text += shard(i) + " = plan.buffer \"s" + std::to_string(i) + "\" temporary : " + kShard + "\n";
    std::string full = "tensor<32xf32>", both = "#plan.arg<read_write, " + full + ">] cost 0.0, 0.0\n";
    text += "plan.kernel @k registered \"k\" [#plan.arg<read, " + full + ">, #plan.arg<write, " + full +
            ">] cost 0.0, 0.0\nplan.kernel @u registered \"u\" [#plan.arg<read, " + full + ">, " + both +
            "plan.kernel @h registered \"h\" [#plan.arg<read, tensor<16xf32>>, " + both;
    int segments = pick(1, 3);
    std::string timeline;
    for (int i = 0, calls = pick(2, 6); i < calls; ++i)
      timeline += std::to_string(pick(0, segments - 1)) + ", " + std::to_string(pick(0, 3)) + ", ";
    text +=
        "plan.program @p timeline [" + timeline + std::to_string(segments) + ", 0] streams [\"compute\", \"s\"] {\n";
    for (int i = 0; i <= segments; ++i)
      text += segment(i, /*reduces=*/i == segments);
    return text + "}\n}\n";
  }

private:
  static constexpr int kShards = 3;
  const std::string kType = "!plan.buffer<tensor<32xf32>>", kShard = "!plan.buffer<tensor<16xf32>>";

  int pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }
  static std::string name(int buffer) { return "%b" + std::to_string(buffer); }
  static std::string shard(int buffer) { return "%s" + std::to_string(buffer); }

  std::string segment(int index, bool reduces) {
    std::string text = "plan.segment \"s" + std::to_string(index) + "\" {\n";
    for (int i = 0, count = pick(2, reduces ? 10 : 5); i < count; ++i)
      text += command(reduces ? pick(0, 7) : pick(0, 2));
    return text + "}\n";
  }

  std::string command(int kind) {
    std::vector<int> chosen(buffers);
    std::iota(chosen.begin(), chosen.end(), 0);
    std::shuffle(chosen.begin(), chosen.end(), random);
    std::string a = name(chosen[0]), b = name(chosen[1]), c = name(chosen[2]), d = name(chosen[3]);
    std::string s = shard(pick(0, kShards - 1));
    switch (kind) {
    case 0:
      return "plan.launch @k(" + a + ", " + b + ") : " + kType + ", " + kType + "\n";
    case 1:
      return "plan.launch @u(" + a + ", " + b + ") : " + kType + ", " + kType + "\n";
    case 2:
      return "plan.copy " + a + " to " + b + " : " + kType + " to " + kType + "\n";
    case 3:
      return "plan.launch @h(" + s + ", " + b + ") : " + kShard + ", " + kType + "\n";
    case 4:
      return "plan.collective reduce_scatter @dp(" + a + ") to(" + s + ") : (" + kType + ") to(" + kShard + ")\n";
    case 5:
      return "plan.collective all_reduce @dp(" + a + ", " + b + ") to(" + c + ", " + d + ") : (" + kType + ", " +
             kType + ") to(" + kType + ", " + kType + ")\n";
    default:
      return std::string("plan.collective all_reduce @") + (kind == 6 && pick(0, 3) == 0 ? "pp" : "dp") + "(" + a +
             ") to(" + b + ") : (" + kType + ") to(" + kType + ")\n";
    }
  }

  std::mt19937 random;
  int buffers = 1;
};

} // namespace

TEST(EarlyReductions, RandomProgramsComputeTheSame) {
  int64_t moved = 0, copies = 0, inPlace = 0, left = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::string text = RandomUpdates(seed).text();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context()));
    ASSERT_TRUE(module);
    SymbolTable symbols(*module);
    plan::ProgramOp program = *module->getOps<plan::ProgramOp>().begin();
    std::map<std::string, size_t> before = statesAfter(program, symbols);
    size_t segments = segmentsOf(program).size();

    int64_t early = EarlyReductions(program, symbols).run();
    ASSERT_TRUE(succeeded(verify(*module)));
    ASSERT_EQ(statesAfter(program, symbols), before);
    int64_t outside = 0;
    program.walk([&](plan::CollectiveOp collective) {
      bool isInUpdate = collective->getParentOp() == segmentsOf(program).back();
      EXPECT_TRUE(isInUpdate || collective.getCommunicator() == "dp");
      outside += !isInUpdate;
      left += isInUpdate;
      inPlace += llvm::any_of(collective.getSources(),
                              [&](Value source) { return llvm::is_contained(collective.getDestinations(), source); });
    });
    EXPECT_EQ(outside, early);
    moved += early;
    copies += static_cast<int64_t>(segmentsOf(program).size() - segments);
  }
  // Each of these happens.
  EXPECT_GT(moved, 1000);
  EXPECT_GT(copies, 300);
  EXPECT_GT(inPlace, 100);
  EXPECT_GT(left, 1000);
}
