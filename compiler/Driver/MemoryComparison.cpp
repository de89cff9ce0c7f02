//===- MemoryComparison.cpp - The memory of a plan beside its formulas
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/MemoryComparison.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "checker/MemoryContents.h"
#include "checker/PredictedTimeline.h"
#include "compiler/Driver/MemoryAdvice.h"
#include "compiler/Driver/MemoryReport.h"
#include "runtime/plan/plan_writer.h"
#include "runtime/plan/view/collective_view.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <set>

using namespace bowline;

/// The part of the model that each role has: the layers, embedding and head whose weights it has and updates. Empty
/// where there is one role.
static std::vector<RankPart> partsOf(const fbs::PlanT &plan) {
  std::vector<RankPart> parts(plan.roles.size());
  std::vector<std::set<int64_t>> layers(plan.roles.size());
  for (const auto &state : plan.states) {
    const fbs::BufferT &buffer = *plan.buffers[state->buffer];
    if (parts.empty() || !Has(state->flags, fbs::StateFlag::Weight) || Has(state->flags, fbs::StateFlag::Mirror))
      continue;
    llvm::StringRef name = buffer.name;
    int64_t layer = 0;
    if (name.consume_front("layers.") && !name.consumeInteger(10, layer))
      layers[buffer.role].insert(layer);
    parts[buffer.role].hasEmbedding |= name == "embed";
    parts[buffer.role].hasHead |= name == "head";
  }
  for (auto [part, own] : llvm::zip(parts, layers))
    part.layers = static_cast<int64_t>(own.size());
  return parts;
}

/// The entry of a step of training of the role; the plan has one.
static uint32_t trainStepOf(const fbs::Plan &plan, size_t role) {
  for (uint32_t i = 0; i < SizeOf(plan.entries()); ++i) {
    const fbs::Entry &entry = *plan.entries()->Get(i);
    if (entry.kind() == fbs::EntryKind::TrainStep && plan.programs()->Get(entry.program())->role() == role)
      return i;
  }
  llvm_unreachable("each role of a plan for training has such a step");
}

namespace {

/// A table with a column of formulas and one of a plan.
class Table {
public:
  void row(llvm::StringRef name, std::optional<int64_t> formula, uint64_t plan) {
    absl::StrAppendFormat(&text, "  %-38s %12s %12s\n", name.str(), formula ? formatBytes(*formula) : "-",
                          formatBytes(plan));
  }

  std::string text = absl::StrFormat("  %-38s %12s %12s\n", "", "formula", "plan");
};

} // namespace

/// The rows are those that a plan can tell apart: gradients that pass are gradients, and gathered matrices copies.
static std::string layOut(const MemoryRows &rows, const MemoryContents &contents, uint64_t arenaBytes) {
  Table table;
  table.row("weights and moments", rows.weightsAndMoments, contents.weightsAndMoments);
  table.row("gradients of parameters", rows.gradients + rows.passingGradients, contents.gradients);
  table.row("activations", rows.activations, contents.activations);
  table.row("values that are computed again", rows.recomputed, contents.recomputed);
  table.row("copies and gathered matrices", rows.copies + rows.gathered, contents.copies);
  table.row("logits and their gradients", rows.logits, contents.loss);
  table.row("gradients of activations", rows.gradientsOfActivations, contents.gradientsOfActivations);
  table.row("inputs, outputs, constants, scratch", std::nullopt, contents.others);
  const uint64_t alive = contents.sum();
  table.row("gaps, and slots that are kept", std::nullopt, arenaBytes > alive ? arenaBytes - alive : 0);
  table.row("sum", rows.sum(), arenaBytes);
  return table.text;
}

/// The seconds of a gather of a matrix of an MLP, and of a product with it on a microbatch.
static PrefetchSeconds prefetchSecondsOf(const MemoryInputs &inputs, const targets::CostModel &model) {
  if (inputs.zeroAxis.empty())
    return {};
  const MemoryStrategy &strategy = inputs.strategy;
  const double elements =
      static_cast<double>(inputs.shape.hidden * inputs.shape.inner) / static_cast<double>(strategy.tensor);
  const double bytes = static_cast<double>(strategy.width()) * elements;
  const std::vector<std::string> axes = {inputs.zeroAxis};
  return {.gather = model.CollectiveSeconds(model.LinkAlong(axes), DefinitionOf(fbs::CollectiveKind::AllGather), bytes,
                                            static_cast<double>(strategy.zeroRanks)),
          .product = model.LaunchSeconds(2 * static_cast<double>(strategy.tokens) * elements, bytes)};
}

absl::StatusOr<MemoryComparison> bowline::compareWithFormulas(fbs::PlanT &plan, MemoryInputs inputs,
                                                              const std::vector<std::string> &links) {
  inputs.strategy.parts = partsOf(plan);
  BOWLINE_ASSIGN_OR_RETURN(const flatbuffers::DetachedBuffer bytes, WritePlan(plan));
  const fbs::Plan &written = *fbs::GetPlan(bytes.data());
  BOWLINE_ASSIGN_OR_RETURN(const targets::CostModel model, costModelOf(written, links));

  size_t role = 0;
  for (size_t other = 1; other < plan.roles.size(); ++other)
    if (plan.roles[other]->arena_bytes > plan.roles[role]->arena_bytes)
      role = other;
  const uint64_t arenaBytes = plan.roles.empty() ? plan.arena_bytes : plan.roles[role]->arena_bytes;
  const Timeline timeline(written);
  const uint32_t entry = trainStepOf(written, role);
  const MemoryTimeline memory = computeMemoryTimeline(timeline, entry);
  const RankFormula formula(inputs.shape, inputs.strategy, static_cast<int64_t>(role));

  MemoryComparison result;
  result.table = absl::StrCat("memory of a step by the formulas of docs/memory.md, and of this plan",
                              plan.roles.size() > 1 ? ", of role " + plan.roles[role]->name : "", ":\n",
                              layOut(formula.atPeak(), computeContentsAtPeak(timeline, entry, memory), arenaBytes),
                              "  formula: at the ", formula.isPeakAtBegin() ? "begin" : "end",
                              " of the last backward pass\n  plan: at ", timeline.describe(memory.peakSite), "\n");
  if (const auto largest = static_cast<size_t>(largestRank(inputs.shape, inputs.strategy)); largest != role)
    absl::StrAppend(&result.table, "  by formulas role ", plan.roles[largest]->name, " needs the most, ",
                    formatBytes(predictedBytes(inputs.shape, inputs.strategy)), "\n");
  result.notes = adviseOnMemory(inputs, plan.arena_bytes, prefetchSecondsOf(inputs, model));
  return result;
}
