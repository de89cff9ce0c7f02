//===- EventsTest.cpp - Random programs of several streams keep every order that they need
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Parser/Parser.h"
#include "passes/Analysis/Lifetimes.h"
#include "passes/Analysis/TemporaryBlocks.h"
#include "passes/Overlap/EventElision.h"
#include "passes/Overlap/EventInsertion.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

#include <map>
#include <random>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

/// A command in a call, and the commands that it waits for: a model of execution that knows no clocks.
struct Step {
  Operation *op;
  int64_t slot;
  std::vector<bool> after; // by earlier step: over when this one begins
};

/// The commands of the whole timeline, signals and waits too. A wait without a signal before is a failure.
std::vector<Step> expand(plan::ProgramOp program) {
  SmallVector<plan::SegmentOp> segments(program.getBody().front().getOps<plan::SegmentOp>());
  std::vector<Step> steps;
  std::map<int64_t, size_t> lastOfStream, lastSignal;
  auto join = [&](Step &step, size_t earlier) {
    for (size_t i = 0; i < earlier; ++i)
      step.after[i] = step.after[i] || steps[earlier].after[i];
    step.after[earlier] = true;
  };
  for (size_t call = 0; call < program.getTimeline().size(); call += 2)
    for (Operation &op : segments[program.getTimeline()[call]].getBody().front()) {
      Step step{&op, program.getTimeline()[call + 1], std::vector<bool>(steps.size())};
      int64_t stream = cast<plan::Command>(op).getStreamIndex();
      if (auto last = lastOfStream.find(stream); last != lastOfStream.end())
        join(step, last->second);
      if (auto wait = dyn_cast<plan::WaitOp>(op)) {
        auto signal = lastSignal.find(wait.getEvent() + step.slot % wait.getSlots());
        EXPECT_NE(signal, lastSignal.end()) << "a wait for an event that nothing signalled";
        if (signal != lastSignal.end())
          join(step, signal->second);
      }
      if (auto signal = dyn_cast<plan::SignalOp>(op))
        lastSignal[signal.getEvent() + step.slot % signal.getSlots()] = steps.size();
      lastOfStream[stream] = steps.size();
      steps.push_back(std::move(step));
    }
  return steps;
}

bool isEvent(Operation *op) { return isa<plan::SignalOp, plan::WaitOp>(op); }

/// By pairs of commands, events left out.
std::vector<bool> ordersOf(const std::vector<Step> &steps) {
  std::vector<bool> orders;
  for (size_t i = 0; i < steps.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (!isEvent(steps[i].op) && !isEvent(steps[j].op))
        orders.push_back(steps[i].after[j]);
  return orders;
}

/// The bytes that a step touches: a slot of a buffer, or bytes of the arena once there are offsets.
struct Touch {
  int64_t begin, end;
  Value buffer;
  int64_t slot;
  bool reads, writes;
};

std::vector<Touch> touches(const Step &step, SymbolTable &symbols, std::map<const void *, int64_t> &numbers) {
  std::vector<Touch> result;
  for (const CommandUse &use : usesOf(step.op, symbols)) {
    auto buffer = use.buffer.getDefiningOp<plan::BufferOp>();
    int64_t slot = step.slot % static_cast<int64_t>(buffer.getSlots()), begin, bytes = buffer.getBytes();
    if (buffer.getOffset()) {
      begin = static_cast<int64_t>(*buffer.getOffset()) + slot * static_cast<int64_t>(buffer.getStride());
    } else {
      // Apart from all others.
      int64_t number = numbers.try_emplace(use.buffer.getAsOpaquePointer(), numbers.size()).first->second;
      begin = (number * 8 + slot) << 20;
    }
    result.push_back({begin, begin + bytes, use.buffer, slot, use.reads, use.writes});
  }
  return result;
}

/// Expects that all conflicting accesses are ordered, and that every read sees the last write to its own buffer.
/// Counts conflicts.
void expectSound(plan::ProgramOp program, SymbolTable &symbols, const std::string &when, int64_t *conflicts) {
  std::vector<Step> steps = expand(program);
  std::map<const void *, int64_t> numbers;
  std::vector<std::vector<Touch>> all;
  for (const Step &step : steps)
    all.push_back(touches(step, symbols, numbers));
  std::map<int64_t, std::pair<const void *, int64_t>> owner; // by 64 bytes
  std::map<std::pair<const void *, int64_t>, bool> written;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const Touch &touch : all[i]) {
      std::pair<const void *, int64_t> self = {touch.buffer.getAsOpaquePointer(), touch.slot};
      if (touch.reads && written[self])
        for (int64_t at = touch.begin; at < touch.end; at += 64)
          ASSERT_EQ(owner[at / 64], self) << when << ": a value was overwritten before step " << i;
      for (size_t j = 0; j < i; ++j)
        for (const Touch &other : all[j])
          if (other.begin < touch.end && touch.begin < other.end && (other.writes || touch.writes)) {
            ++*conflicts;
            ASSERT_TRUE(steps[i].after[j]) << when << ": steps " << j << " and " << i << " race";
          }
    }
    for (const Touch &touch : all[i])
      if (touch.writes) {
        written[{touch.buffer.getAsOpaquePointer(), touch.slot}] = true;
        for (int64_t at = touch.begin; at < touch.end; at += 64)
          owner[at / 64] = {touch.buffer.getAsOpaquePointer(), touch.slot};
      }
  }
}

/// Programs of 2 to 4 streams: segments one after the other, some of them several times, or in any order; each buffer
/// has 1 to 3 slots. Values that go from one call to another, or that are read before any write, occur all the time.
class RandomStreams {
public:
  explicit RandomStreams(unsigned seed) : random(seed) {}

  std::string text() {
    streams = pick(2, 4);
    buffers = pick(5, 12);
    std::string text;
    for (int i = 0; i < buffers; ++i) {
      int slots = pick(0, 3) == 0 ? pick(2, 3) : 1;
      text += name(i) + " = plan.buffer \"b" + std::to_string(i) + "\" " + (i < 2 ? "state" : "temporary") +
              " : !plan.buffer<" + kType + ">" +
              (slots > 1 ? " slots " + std::to_string(slots) + " stride 128" : std::string()) + "\n";
    }
    std::string read = "#plan.arg<read, " + kType + ">", write = "#plan.arg<write, " + kType + ">",
                both = "#plan.arg<read_write, " + kType + ">";
    text += "plan.kernel @k registered \"k\" [" + read + ", " + write + "] in_place [1, 0] cost 0.0, 0.0\n";
    text += "plan.kernel @u registered \"u\" [" + read + ", " + both + "] cost 0.0, 0.0\n";
    text += "plan.kernel @w registered \"w\" [" + read + ", " + write + ", " + write +
            "] in_place [1, 0, 2, 0] cost 0.0, 0.0\n";
    int segments = pick(1, 4);
    text += "plan.program @p timeline [" + timeline(segments) + "] streams [\"compute\"";
    for (int i = 1; i < streams; ++i)
      text += ", \"s" + std::to_string(i) + "\"";
    text += "] {\n";
    for (int i = 0; i < segments; ++i)
      text += segment(i);
    return text + "}\n";
  }

private:
  const std::string kType = "tensor<32xf32>";

  int pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }
  static std::string name(int buffer) { return "%b" + std::to_string(buffer); }

  std::string timeline(int segments) {
    std::string text;
    auto call = [&](int segment, int slot) {
      text += (text.empty() ? "" : ", ") + std::to_string(segment) + ", " + std::to_string(slot);
    };
    bool takesTurns = pick(0, 1) == 1;
    for (int i = 0; i < (takesTurns ? pick(3, 8) : segments); ++i)
      for (int run = 0, runs = takesTurns ? 1 : pick(1, 3); run < runs; ++run)
        call(takesTurns ? pick(0, segments - 1) : i, takesTurns ? pick(0, 4) : run);
    return text;
  }

  std::string segment(int index) {
    std::string text = "plan.segment \"s" + std::to_string(index) + "\" {\n";
    for (int i = 0, count = pick(2, 7); i < count; ++i) {
      std::vector<int> chosen(buffers);
      std::iota(chosen.begin(), chosen.end(), 0);
      std::shuffle(chosen.begin(), chosen.end(), random);
      std::string stream = std::to_string(pick(0, streams - 1)), type = "!plan.buffer<" + kType + ">";
      const char *kernel = (const char *[]){"k", "k", "u", "w"}[pick(0, 3)];
      text += std::string("plan.launch @") + kernel + "(" + name(chosen[0]) + ", " + name(chosen[1]) +
              (*kernel == 'w' ? ", " + name(chosen[2]) : "") + ") on " + stream + " : " + type + ", " + type +
              (*kernel == 'w' ? ", " + type : "") + "\n";
    }
    return text + "}\n";
  }

  std::mt19937 random;
  int streams = 1, buffers = 1;
};

} // namespace

TEST(Events, RandomProgramsAreOrderedLeanAndPackedWithoutRaces) {
  int64_t conflicts = 0, removed = 0, kept = 0, saved = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::string text = RandomStreams(seed).text();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context()));
    ASSERT_TRUE(module);
    SymbolTable symbols(*module);
    plan::ProgramOp program = *module->getOps<plan::ProgramOp>().begin();

    EventInsertion(program, symbols).run();
    expectSound(program, symbols, "inserted", &conflicts);
    std::vector<bool> inserted = ordersOf(expand(program));
    EventElision::Result elided = EventElision(program).run();
    // The waits and signals that are left give the same order.
    ASSERT_EQ(ordersOf(expand(program)), inserted);
    expectSound(program, symbols, "elided", &conflicts);
    EventElision::Result again = EventElision(program).run();
    EXPECT_EQ(again.waits, 0);
    EXPECT_EQ(again.signals, 0);

    int64_t base = 1 << 16, whole = 0;
    PackedArena packed = TemporaryBlocks(program, symbols).place(base);
    int64_t next = 0;
    for (auto buffer : module->getOps<plan::BufferOp>()) {
      if (isPersistent(buffer)) {
        buffer.setOffset(next);
        next += alignedBytes(buffer);
      } else if (buffer.getOffset()) {
        whole += alignedBytes(buffer);
      }
    }
    expectSound(program, symbols, "packed", &conflicts);
    removed += elided.waits;
    program.walk([&](plan::WaitOp) { ++kept; });
    saved += whole - packed.bytes;
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(conflicts, 10000);
  // Neither elision nor packing did nothing.
  EXPECT_GT(removed, kept / 2);
  EXPECT_GT(saved, 0);
  RecordProperty("waits_removed", static_cast<int>(removed));
  RecordProperty("waits_kept", static_cast<int>(kept));
}

TEST(Events, LinearInTheCommandsOfTheTimeline) {
  // 50,000 calls of a transfer and its use, with as many slots as are in flight.
  std::string calls;
  for (int i = 0; i < 50000; ++i)
    calls += (i > 0 ? ", 0, " : "0, ") + std::to_string(i);
  std::string text = R"(
%a = plan.buffer "a" state : !plan.buffer<tensor<4xf32>>
%b = plan.buffer "b" temporary : !plan.buffer<tensor<4xf32>> slots 3 stride 64
%c = plan.buffer "c" state : !plan.buffer<tensor<4xf32>>
plan.program @p timeline [)" +
                     calls +
                     R"(] streams ["compute", "dp"] {
  plan.segment "s" {
    plan.copy %a to %b on 1 : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
    plan.copy %b to %c : !plan.buffer<tensor<4xf32>> to !plan.buffer<tensor<4xf32>>
  }
}
)";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context()));
  ASSERT_TRUE(module);
  SymbolTable symbols(*module);
  plan::ProgramOp program = *module->getOps<plan::ProgramOp>().begin();
  EventInsertion(program, symbols).run();
  EventElision(program).run();
  int waits = 0, first = 0;
  program.walk([&](plan::WaitOp) { ++waits; });
  for (auto segment : program.getBody().front().getOps<plan::SegmentOp>())
    if (segment.getName() == "begin")
      first = std::distance(segment.getBody().front().begin(), segment.getBody().front().end());
  EXPECT_EQ(waits, 2); // for the value, and for the slot to be free
  EXPECT_EQ(first, 3); // which it is at first, in each slot
}
