//===- ChangedServePlanTest.cpp - Changed plans of serving that the checker refuses
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Execution/ServePlanFixture.h"

using namespace bowline;
using namespace bowline::serve_plan;
using ::bowline::testing::ReadTensor;
using ::bowline::testing::WriteTensor;
using ::testing::HasSubstr;

namespace {

struct Change {
  const char *name;
  std::function<void(fbs::PlanT &, fbs::EntryT &)> make;
  const char *message;
};

fbs::LaunchT &launchOf(fbs::PlanT &plan, const fbs::EntryT &entry, const std::string &kernel) {
  for (auto &segment : plan.programs[entry.program]->segments)
    for (auto &command : segment->commands)
      if (fbs::LaunchT *launch = command->body.AsLaunch(); launch && plan.kernels[launch->kernel]->name == kernel)
        return *launch;
  throw std::runtime_error("no launch of " + kernel);
}

uint32_t bufferOf(const fbs::EntryT &entry, const std::string &input) {
  for (const auto &port : entry.inputs)
    if (port->name == input)
      return port->buffer;
  throw std::runtime_error("no input " + input);
}

/// The first slot of an input.
fbs::Operand inputOf(const fbs::EntryT &entry, const std::string &input) { return {bufferOf(entry, input), 0}; }

const Change kChanges[] = {
    {"AnotherInputForLengths",
     [](fbs::PlanT &plan, fbs::EntryT &entry) {
       launchOf(plan, entry, "cache_write").operands[3] = inputOf(entry, "sample");
     },
     "for the lengths of sequences, but callers promise them in input 'lengths'"},
    {"LengthsOfAttention",
     [](fbs::PlanT &plan, fbs::EntryT &entry) {
       launchOf(plan, entry, "paged_attention").operands[4] = inputOf(entry, "sample");
     },
     "for the lengths of sequences, but callers promise them in input 'lengths'"},
    {"LengthsOfPositions",
     [](fbs::PlanT &plan, fbs::EntryT &entry) {
       launchOf(plan, entry, "sequence_positions").operands[1] = inputOf(entry, "sample");
     },
     "for the lengths of sequences, but callers promise them in input 'lengths'"},
    {"NoPromise", [](fbs::PlanT &, fbs::EntryT &entry) { entry.sequences.reset(); },
     "reads the places of sequences, but callers of the entry make no promise about them"},
    {"MoreBlocksThanTheCache", [](fbs::PlanT &, fbs::EntryT &entry) { ++entry.sequences->block_count; },
     "has 21 blocks of a cache, and callers of the entry promise values for 22"},
    {"MoreRowsThanTheStep", [](fbs::PlanT &, fbs::EntryT &entry) { ++entry.sequences->tokens; },
     "has 16 rows, and callers of the entry promise values for 17"},
    {"LargerBlocks", [](fbs::PlanT &, fbs::EntryT &entry) { ++entry.sequences->block_tokens; },
     "has 4 tokens of a block, and callers of the entry promise values for 5"},
    {"SmallerBlocks", [](fbs::PlanT &, fbs::EntryT &entry) { --entry.sequences->block_tokens; },
     "has 4 tokens of a block, and callers of the entry promise values for 3"},
    {"AnotherPromisedInput",
     [](fbs::PlanT &, fbs::EntryT &entry) {
       for (uint32_t i = 0; i < entry.inputs.size(); ++i)
         if (entry.inputs[i]->name == "sample")
           entry.sequences->lengths = i;
     },
     "for the lengths of sequences, but callers promise them in input 'sample'"},
    {"WrittenByACommand",
     [](fbs::PlanT &plan, fbs::EntryT &entry) {
       fbs::CopyT copy;
       copy.source = std::make_unique<fbs::Operand>(inputOf(entry, "sample"));
       copy.destination = std::make_unique<fbs::Operand>(inputOf(entry, "lengths"));
       copy.bytes = kSequences * sizeof(int32_t);
       auto command = std::make_unique<fbs::CommandT>();
       command->body.Set(std::move(copy));
       auto &commands = plan.programs[entry.program]->segments[0]->commands;
       commands.insert(commands.begin(), std::move(command));
     },
     "'step_16.lengths'"},
};

class ChangedServePlan : public ::testing::TestWithParam<Change> {
protected:
  /// The error of the loader, or else the result of the checker.
  static absl::Status check(fbs::PlanT &plan) {
    auto written = WritePlan(plan);
    if (!written.ok())
      return written.status();
    auto loaded = LoadedPlan::FromBytes({written->data(), written->size()});
    return loaded.ok() ? PlanChecker(loaded->plan()).check() : loaded.status();
  }
};

} // namespace

INSTANTIATE_TEST_SUITE_P(All, ChangedServePlan, ::testing::ValuesIn(kChanges),
                         [](const auto &info) { return std::string(info.param.name); });

TEST_P(ChangedServePlan, IsRefused) {
  static const std::vector<uint8_t> original = [] {
    std::unique_ptr<fbs::PlanT> plan = compile(optionsOf({"llama-tiny"}, CompileMode::Serve));
    return plan ? bytesOf(*plan) : std::vector<uint8_t>();
  }();
  ASSERT_FALSE(original.empty());
  fbs::PlanT plan;
  fbs::GetPlan(original.data())->UnPackTo(&plan);
  absl::Status sound = check(plan);
  ASSERT_TRUE(sound.ok()) << sound;
  auto entry =
      std::find_if(plan.entries.begin(), plan.entries.end(), [](const auto &some) { return some->name == "step_16"; });
  ASSERT_NE(entry, plan.entries.end());
  GetParam().make(plan, **entry);
  plan.certificates.clear(); // which say that it was changed
  absl::Status refused = check(plan);
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.message()), HasSubstr(GetParam().message));
}
