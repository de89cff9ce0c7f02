//===- PlanMutations.cpp - Changed plans are refused, or train as before
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Changes compiled plans of every kind of strategy at random, and keeps their certificates and contracts. The loader
// (VerifyPlan) and the proofs of a session (ProvePlan) have to refuse a change, or runs on the driver `discrete`, whose
// streams wait at random, have to give the bits of the plan as it was.
//
//===----------------------------------------------------------------------===//

#include "CLI/CLI.hpp"
#include "checker/PlanChecker.h"
#include "checker/PlanProof.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_writer.h"
#include "test/Execution/StrategyCase.h"
#include "test/Support/test_seed.h"

#include <map>
#include <random>

using namespace bowline;
using namespace bowline::test;

namespace {

constexpr int kSteps = 2;

const char *const kStrategies[] = {
    "model=llama-tiny microbatches=2",
    "model=mistral-tiny mesh=dp=2 recompute=selective",
    "model=llama-tied mesh=dp=2 zero=2 microbatches=2",
    "model=qwen2-tiny mesh=dp=2 zero=3 prefetch=2 dtype=bf16",
    "model=llama-tiny mesh=dp=2,tp=2 sequence_parallel=1 zero=1",
    "model=llama-tiny mesh=tp=2 overlap_chunks=2",
    "model=llama-tied mesh=pp=2 microbatches=4 schedule=1f1b",
    "model=gpt2-tiny mesh=pp=2,dp=2 microbatches=2 zero=1",
    "model=llama-tiny mesh=pp=2 microbatches=4 schedule=interleaved:2 layers=4",
};

/// Changes one thing of a plan. Each kind of change returns its description, or nothing if it found nothing.
class Mutator {
public:
  Mutator(fbs::PlanT &plan, uint64_t seed) : plan(plan), random(seed) {}

  std::string mutate() {
    using Kind = std::string (Mutator::*)();
    static constexpr Kind kKinds[] = {
        &Mutator::deleteCommand, &Mutator::swapCommands,    &Mutator::changeStream,       &Mutator::changeOperandOffset,
        &Mutator::changeOperand, &Mutator::moveBuffer,      &Mutator::changeKernel,       &Mutator::changeAttribute,
        &Mutator::changeExtent,  &Mutator::changeReduction, &Mutator::changeCommunicator, &Mutator::changeEvent,
        &Mutator::swapCalls,     &Mutator::changeSlot,      &Mutator::changeInPlace,      &Mutator::changeLimit};
    std::string what;
    while (what.empty())
      what = (this->*kKinds[below(std::size(kKinds))])();
    return what;
  }

private:
  size_t below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random); }

  using Commands = std::vector<std::unique_ptr<fbs::CommandT>>;
  Commands &commands() {
    fbs::ProgramT &program = *plan.programs[below(plan.programs.size())];
    return program.segments[below(program.segments.size())]->commands;
  }
  fbs::CommandT *command() {
    Commands &all = commands();
    return all.empty() ? nullptr : all[below(all.size())].get();
  }

  std::string deleteCommand() {
    Commands &all = commands();
    if (all.empty())
      return "";
    const size_t at = below(all.size());
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
    return "deleted command " + std::to_string(at);
  }
  std::string swapCommands() {
    Commands &all = commands();
    if (all.size() < 2)
      return "";
    const size_t first = below(all.size()), second = std::min(all.size() - 1, first + 1 + below(8));
    std::swap(all[first], all[second]);
    return first == second ? "" : "swapped commands " + std::to_string(first) + " and " + std::to_string(second);
  }
  std::string changeStream() {
    fbs::ProgramT &program = *plan.programs[below(plan.programs.size())];
    if (program.streams.size() < 2)
      return "";
    Commands &all = program.segments[below(program.segments.size())]->commands;
    if (all.empty())
      return "";
    fbs::CommandT &changed = *all[below(all.size())];
    const auto stream = static_cast<uint16_t>(below(program.streams.size()));
    if (stream == changed.stream)
      return "";
    changed.stream = stream;
    return "changed a stream to " + program.streams[stream];
  }
  fbs::Operand *operand() {
    fbs::CommandT *chosen = command();
    fbs::LaunchT *launch = chosen ? chosen->body.AsLaunch() : nullptr;
    return launch && !launch->operands.empty() ? &launch->operands[below(launch->operands.size())] : nullptr;
  }
  std::string changeOperandOffset() {
    fbs::Operand *changed = operand();
    if (!changed)
      return "";
    const uint64_t offset = below(4) * (below(2) == 0 ? 4 : 64);
    if (offset == changed->offset())
      return "";
    *changed = fbs::Operand(changed->buffer(), offset);
    return "changed the offset of an operand to " + std::to_string(offset);
  }
  std::string changeOperand() {
    fbs::Operand *changed = operand();
    if (!changed)
      return "";
    const fbs::BufferT &old = *plan.buffers[changed->buffer()];
    for (int attempt = 0; attempt < 100; ++attempt) {
      const size_t other = below(plan.buffers.size());
      const fbs::BufferT &buffer = *plan.buffers[other];
      if (other == changed->buffer() || buffer.role != old.role || buffer.dtype != old.dtype ||
          buffer.bytes < old.bytes)
        continue;
      *changed = fbs::Operand(static_cast<uint32_t>(other), changed->offset());
      return "took buffer '" + buffer.name + "' for '" + old.name + "'";
    }
    return "";
  }
  std::string moveBuffer() {
    fbs::BufferT &buffer = *plan.buffers[below(plan.buffers.size())];
    const fbs::BufferT &other = *plan.buffers[below(plan.buffers.size())];
    if (buffer.role != other.role || buffer.offset == other.offset)
      return "";
    buffer.offset = other.offset;
    return "moved buffer '" + buffer.name + "' to '" + other.name + "'";
  }
  std::string changeKernel() {
    fbs::CommandT *chosen = command();
    fbs::LaunchT *launch = chosen ? chosen->body.AsLaunch() : nullptr;
    if (!launch)
      return "";
    const size_t kernel = below(plan.kernels.size());
    if (kernel == launch->kernel || plan.kernels[kernel]->arguments.size() != launch->operands.size())
      return "";
    launch->kernel = static_cast<uint32_t>(kernel);
    return "launched kernel '" + plan.kernels[kernel]->name + "' instead";
  }
  std::string changeAttribute() {
    fbs::KernelT &kernel = *plan.kernels[below(plan.kernels.size())];
    if (kernel.attributes.empty())
      return "";
    fbs::AttributeT &attribute = *kernel.attributes[below(kernel.attributes.size())];
    if (attribute.ints.empty())
      return "";
    int64_t &value = attribute.ints[below(attribute.ints.size())];
    value = below(2) == 0 ? value / 2 : value + 1;
    return "changed attribute '" + attribute.name + "' of '" + kernel.name + "'";
  }
  std::string changeExtent() {
    fbs::KernelT &kernel = *plan.kernels[below(plan.kernels.size())];
    fbs::ByRangeT *range = kernel.geometry.AsByRange();
    if (!range)
      return "";
    range->extent = below(2) == 0 ? std::max<uint64_t>(1, range->extent / 2) : range->extent + 1;
    return "changed the extent of '" + kernel.name + "'";
  }
  std::string changeReduction() {
    fbs::CommandT *chosen = command();
    fbs::CollectiveT *collective = chosen ? chosen->body.AsCollective() : nullptr;
    if (!collective)
      return "";
    collective->reduction = collective->reduction == fbs::Reduction::Sum ? fbs::Reduction::Max : fbs::Reduction::Sum;
    return "changed the reduction of a collective";
  }
  std::string changeCommunicator() {
    fbs::CommandT *chosen = command();
    fbs::CollectiveT *collective = chosen ? chosen->body.AsCollective() : nullptr;
    if (!collective || plan.communicators.size() < 2)
      return "";
    const size_t other = below(plan.communicators.size());
    if (other == collective->communicator)
      return "";
    collective->communicator = static_cast<uint32_t>(other);
    return "took communicator '" + plan.communicators[other]->name + "'";
  }
  std::string changeEvent() {
    fbs::CommandT *chosen = command();
    if (!chosen || (!chosen->body.AsSignal() && !chosen->body.AsWait()))
      return "";
    uint32_t &event = chosen->body.AsSignal() ? chosen->body.AsSignal()->event : chosen->body.AsWait()->event;
    event = event == 0 ? 1 : event - 1;
    return "changed an event to " + std::to_string(event);
  }
  std::string swapCalls() {
    std::vector<fbs::SegmentCall> &timeline = plan.programs[below(plan.programs.size())]->timeline;
    if (timeline.size() < 2)
      return "";
    const size_t first = below(timeline.size() - 1);
    std::swap(timeline[first], timeline[first + 1]);
    return "swapped call " + std::to_string(first) + " with the next";
  }
  std::string changeSlot() {
    std::vector<fbs::SegmentCall> &timeline = plan.programs[below(plan.programs.size())]->timeline;
    if (timeline.empty())
      return "";
    fbs::SegmentCall &call = timeline[below(timeline.size())];
    call = fbs::SegmentCall(call.segment(), call.slot() == 0 ? 1 : call.slot() - 1);
    return "changed the slot of a call";
  }
  std::string changeInPlace() {
    fbs::KernelT &kernel = *plan.kernels[below(plan.kernels.size())];
    if (kernel.arguments.size() < 2)
      return "";
    kernel.in_place.emplace_back(static_cast<uint32_t>(kernel.arguments.size() - 1), 0);
    return "gave '" + kernel.name + "' an in-place pair";
  }
  std::string changeLimit() {
    fbs::EntryT &entry = *plan.entries[below(plan.entries.size())];
    if (entry.inputs.empty())
      return "";
    entry.inputs[below(entry.inputs.size())]->limit += 1;
    return "raised the limit of an input of '" + entry.name + "'";
  }

  fbs::PlanT &plan;
  std::mt19937_64 random;
};

class PlanMutations : public testing::Test {
public:
  PlanMutations(std::string text, int count) : text(std::move(text)), count(count) {}

  void TestBody() override {
    std::optional<StrategyCase> strategy = StrategyCase::parse(text);
    ASSERT_TRUE(strategy);
    std::unique_ptr<TokenDataset> tokens = randomDataset(strategy->sizes.vocabulary);
    std::unique_ptr<fbs::PlanT> plan = compileStrategy(*strategy);
    ASSERT_TRUE(tokens && plan);
    ASSERT_EQ(CertifyPlan(*plan), absl::OkStatus());
    const auto bytes = WritePlan(*plan);
    ASSERT_TRUE(bytes.ok());
    const TrainOutcome expected = run({bytes->data(), bytes->size()}, *tokens, "");
    ASSERT_TRUE(expected.status.ok()) << expected.status;
    int byLoader = 0, byProofs = 0, accepted = 0;
    for (int i = 0; i < count; ++i) {
      fbs::PlanT changed = *plan;
      const std::string what = Mutator(changed, uint64_t{TestSeed()} * 1000003 + static_cast<uint64_t>(i)).mutate();
      const auto written = WritePlan(changed);
      if (!written.ok())
        continue; // it is no plan any more
      auto loaded = LoadedPlan::FromBytes({written->data(), written->size()});
      if (!loaded.ok()) {
        ++byLoader;
        continue;
      }
      if (!ProvePlan(loaded->plan()).ok()) {
        ++byProofs;
        continue;
      }
      ++accepted;
      const TrainOutcome outcome =
          run({written->data(), written->size()}, *tokens, "discrete:seed=" + std::to_string(i));
      EXPECT_TRUE(outcome.equals(expected))
          << "change " << i << " of '" << text << "' was accepted and trains otherwise: " << what << ": "
          << outcome.status;
    }
    std::printf("%s: %d changes; the loader refused %d, the proofs %d; %d trained as before\n", text.c_str(), count,
                byLoader, byProofs, accepted);
  }

private:
  static TrainOutcome run(absl::Span<const uint8_t> plan, const TokenDataset &tokens, const std::string &driver) {
    TrainRun options{kSteps};
    options.driver = driver;
    options.evaluate = true;
    return tryOnRanks(plan, tokens, options);
  }

  std::string text;
  int count;
};

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  CLI::App app("Changes compiled plans at random: they are refused, or train as before");
  int count = 40;
  std::vector<std::string> strategies(std::begin(kStrategies), std::end(kStrategies));
  app.add_option("STRATEGY", strategies, "Instead of all, for instance 'model=llama-tiny mesh=dp=2'");
  app.add_option("--count", count, "Changes of each plan")->capture_default_str()->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  for (const std::string &text : strategies) {
    std::optional<StrategyCase> strategy = StrategyCase::parse(text);
    if (!strategy)
      return 1;
    testing::RegisterTest("PlanMutations", strategy->name().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [text, count] { return new PlanMutations(text, count); });
  }
  return RUN_ALL_TESTS();
}
