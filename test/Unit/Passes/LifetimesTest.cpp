//===- LifetimesTest.cpp - When each buffer of a program is alive
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/Lifetimes.h"
#include "mlir/Parser/Parser.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

/// The lifetimes of a program, as "name first..last", with "crossing" where the value goes from run to run. Buffers are
/// %x (input), %y (output), %s (scratch) and the temporary %a to %d; kernel @k reads, then writes, @u reads and
/// updates, and @w reads, writes and has scratch.
std::vector<std::string> lifetimes(const std::string &program) {
  std::string text;
  for (const char *name : {"x", "y", "s", "a", "b", "c", "d"}) {
    std::string kind = name[0] == 'x' ? "input" : name[0] == 'y' ? "output" : name[0] == 's' ? "scratch" : "temporary";
    text += std::string("%") + name + " = plan.buffer \"" + name + "\" " + kind + " : !plan.buffer<tensor<4xf32>>\n";
  }
  text += R"(
plan.kernel @k registered "k" [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
plan.kernel @u registered "u" [#plan.arg<read, tensor<4xf32>>, #plan.arg<read_write, tensor<4xf32>>] cost 0.0, 0.0
plan.kernel @w registered "w"
  [#plan.arg<read, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>, #plan.arg<write, tensor<4xf32>>] cost 0.0, 0.0
)" + program;
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context()));
  if (!module)
    return {"does not parse"};
  SymbolTable symbols(*module);
  Lifetimes result(*module->getOps<plan::ProgramOp>().begin(), symbols);
  std::vector<std::string> lines;
  for (auto [buffer, interval] : result.intervals())
    lines.push_back(buffer.getDefiningOp<plan::BufferOp>().getName().str() + " " + std::to_string(interval.first) +
                    ".." + std::to_string(interval.last) + (result.crossesRuns(buffer) ? " crossing" : ""));
  return lines;
}

std::string launch(const std::string &kernel, const std::string &buffers) {
  std::string types = "!plan.buffer<tensor<4xf32>>";
  for (size_t i = 0; i < static_cast<size_t>(llvm::count(buffers, ',')); ++i)
    types += ", !plan.buffer<tensor<4xf32>>";
  return "plan.launch @" + kernel + "(" + buffers + ") : " + types + "\n";
}

std::string segment(const std::vector<std::string> &commands) {
  std::string text = "plan.segment \"s\" {\n";
  for (const std::string &command : commands)
    text += command;
  return text + "}\n";
}

} // namespace

TEST(Lifetimes, FromFirstToLastUse) {
  EXPECT_THAT(lifetimes("plan.program @p timeline [0, 0] {\n" +
                        segment({launch("k", "%x, %a"), launch("w", "%a, %b, %s"), launch("k", "%a, %c"),
                                 launch("k", "%b, %y")}) +
                        "}"),
              ElementsAre("a 0..2", "b 1..3", "s 1..1", "c 2..2"));
}

TEST(Lifetimes, PositionsGoOnInTheNextSegment) {
  EXPECT_THAT(lifetimes("plan.program @p timeline [0, 0, 1, 0] {\n" + segment({launch("k", "%x, %a")}) +
                        segment({launch("k", "%x, %b"), launch("u", "%a, %b"), launch("k", "%b, %y")}) + "}"),
              ElementsAre("a 0..2", "b 1..3"));
}

TEST(Lifetimes, ValuesOfOneRunEndInIt) {
  EXPECT_THAT(lifetimes("plan.program @p timeline [0, 0, 0, 1] {\n" +
                        segment({launch("k", "%x, %a"), launch("k", "%a, %b"), launch("k", "%b, %y")}) + "}"),
              ElementsAre("a 0..1", "b 1..2"));
}

TEST(Lifetimes, WhatTheNextRunReadsFirstLivesThroughAll) {
  EXPECT_THAT(
      lifetimes("plan.program @p timeline [0, 0, 0, 1] {\n" +
                segment({launch("k", "%x, %b"), launch("u", "%b, %a"), launch("k", "%x, %c"), launch("k", "%c, %y")}) +
                "}"),
      ElementsAre("b 0..1", "a 0..3 crossing", "c 2..3"));
}

TEST(Lifetimes, AccumulatorsLiveThroughTheSegmentThatRepeats) {
  std::string begin = segment({launch("k", "%x, %d"), launch("k", "%x, %a")});
  std::string again = segment({launch("k", "%x, %b"), launch("u", "%b, %a"), launch("k", "%b, %c")});
  std::string end = segment({launch("k", "%c, %y")});
  // %a is read only in the segment that repeats, %c after it.
  EXPECT_THAT(lifetimes("plan.program @p timeline [0, 0, 1, 0, 1, 1, 2, 0] {\n" + begin + again + end + "}"),
              ElementsAre("d 0..0", "a 1..4 crossing", "b 2..4", "c 2..5 crossing"));
  EXPECT_THAT(lifetimes("plan.program @p timeline [0, 0, 1, 0, 2, 0] {\n" + begin + again + end + "}"),
              ElementsAre("d 0..0", "a 1..3", "b 2..4", "c 4..5"));
}

TEST(Lifetimes, ValuesThatPassByARepeatedSegmentKeepTheirMemory) {
  EXPECT_THAT(lifetimes("plan.program @p timeline [0, 0, 1, 0, 1, 1, 2, 0] {\n" + segment({launch("k", "%x, %a")}) +
                        segment({launch("k", "%x, %b")}) + segment({launch("k", "%a, %y")}) + "}"),
              ElementsAre("a 0..2 crossing", "b 1..1"));
}

TEST(Lifetimes, WhereSegmentsTakeTurnsWhatGoesFromOneToAnotherLivesFromItsFirstCallToItsLast) {
  EXPECT_THAT(lifetimes("plan.program @p timeline [0, 0, 1, 0, 0, 1, 1, 1] {\n" +
                        segment({launch("k", "%x, %a"), launch("k", "%x, %c")}) +
                        segment({launch("k", "%a, %b"), launch("k", "%b, %y")}) + "}"),
              ElementsAre("a 0..3 crossing", "c 1..1", "b 2..3"));
  // A buffer that is read before it is written has its value from the run before.
  EXPECT_THAT(lifetimes("plan.program @p timeline [0, 0, 1, 0, 0, 1, 1, 1] {\n" +
                        segment({launch("k", "%a, %y"), launch("k", "%x, %a")}) + segment({launch("k", "%x, %b")}) +
                        "}"),
              ElementsAre("a 0..2 crossing", "b 2..2"));
  // Two pairs of segments that take turns, one after the other. Positions follow the first calls: the last segment of
  // the program comes first.
  EXPECT_THAT(lifetimes("plan.program @p timeline [2, 0, 1, 0, 2, 1, 1, 1, 3, 0, 0, 0, 3, 1, 0, 1] {\n" +
                        segment({launch("k", "%c, %y")}) + segment({launch("k", "%a, %b"), launch("k", "%b, %y")}) +
                        segment({launch("k", "%x, %a")}) + segment({launch("k", "%x, %c"), launch("k", "%x, %d")}) +
                        "}"),
              ElementsAre("a 0..2 crossing", "b 1..2", "c 3..5 crossing", "d 4..4"));
}

TEST(Lifetimes, NamedBuffersHaveNone) {
  EXPECT_THAT(lifetimes("plan.program @p timeline [0, 0] {\n" + segment({launch("k", "%x, %y")}) + "}"), IsEmpty());
}
