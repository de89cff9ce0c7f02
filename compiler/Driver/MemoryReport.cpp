//===- MemoryReport.cpp - Report on the buffers that take the memory of a plan
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/MemoryReport.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/plan/view/plan_view.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

using namespace bowline;

std::string bowline::formatBytes(uint64_t bytes) {
  static constexpr std::array<const char *, 4> units = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024)
    return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, units[unit]);
}

absl::StatusOr<uint64_t> bowline::parseBytes(const std::string &text) {
  static const std::map<std::string, uint64_t> units = {
      {"", 1},      {"B", 1},     {"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30},  {"TiB", 1ull << 40},
      {"kB", 1000}, {"KB", 1000}, {"MB", 1000000},     {"GB", 1000000000},  {"TB", 1000000000000}};
  size_t digits = text.find_first_not_of("0123456789.");
  std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  double number = 0;
  auto found = units.find(unit);
  if (found == units.end() || !absl::SimpleAtod(text.substr(0, digits), &number))
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no amount of memory; write for instance 512MiB or 2GiB"));
  double bytes = number * static_cast<double>(found->second);
  if (!(bytes >= 1 && bytes <= 1e18))
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not 1 to 10^18 bytes; write for instance 512MiB or 2GiB"));
  return static_cast<uint64_t>(bytes);
}

static uint64_t extentOf(const fbs::BufferT &buffer) { return buffer.bytes + (buffer.slots - 1) * buffer.slot_stride; }

static bool isPersistent(fbs::BufferKind kind) {
  return kind != fbs::BufferKind::Temporary && kind != fbs::BufferKind::Scratch;
}

/// The end of the persistent buffers in a role's device memory, and the end of all packed buffers. Behind that are
/// second buffers of ports and words for faults.
struct PackedEnds {
  uint64_t persistent = 0, all = 0;
};

static PackedEnds packedEndsOf(const fbs::PlanT &plan, size_t role) {
  llvm::SmallDenseSet<uint32_t> seconds;
  for (const auto &entry : plan.entries)
    if (entry->in_flight == 2)
      for (const auto *ports : {&entry->inputs, &entry->outputs})
        for (const auto &port : *ports)
          seconds.insert(port->second);
  PackedEnds ends;
  for (const auto &[index, buffer] : llvm::enumerate(plan.buffers)) {
    if (buffer->role != role || buffer->space != fbs::MemorySpace::Device || buffer->kind == fbs::BufferKind::Fault ||
        seconds.contains(index))
      continue;
    ends.all = std::max(ends.all, buffer->offset + extentOf(*buffer));
    if (isPersistent(buffer->kind))
      ends.persistent = std::max(ends.persistent, buffer->offset + extentOf(*buffer));
  }
  return ends;
}

/// ", of role R" where there are several.
static std::string ofRole(const fbs::PlanT &plan, size_t role) {
  return plan.roles.size() > 1 ? ", of role " + plan.roles[role]->name : "";
}

/// Describes the persistent buffers in a role's device memory, by kind.
static std::string describePersistent(const fbs::PlanT &plan, size_t role) {
  std::map<fbs::BufferKind, uint64_t> byKind;
  llvm::SmallDenseSet<uint32_t> states;
  for (const auto &state : plan.states)
    states.insert(state->buffer);
  uint64_t prepared = 0;
  for (const auto &[index, buffer] : llvm::enumerate(plan.buffers)) {
    if (buffer->role != role || buffer->space != fbs::MemorySpace::Device || !isPersistent(buffer->kind))
      continue;
    bool isPrepared = buffer->kind == fbs::BufferKind::State && !states.contains(index);
    (isPrepared ? prepared : byKind[buffer->kind]) += extentOf(*buffer);
  }
  std::string text;
  for (auto [kind, bytes] : byKind)
    absl::StrAppend(&text, "  ", fbs::EnumNameBufferKind(kind), ": ", formatBytes(bytes), ofRole(plan, role), "\n");
  if (prepared > 0)
    absl::StrAppend(&text, "  computed from parameters when they are set: ", formatBytes(prepared), ofRole(plan, role),
                    "\n");
  return text;
}

/// Describes the memory that a role's other buffers share, with its ratio to the most bytes alive at one time.
static std::string describeSharing(const fbs::PlanT &plan, size_t role, const std::vector<uint64_t> &liveBytes) {
  const PackedEnds ends = packedEndsOf(plan, role);
  auto shared = [&](uint64_t end) { return end > ends.persistent ? end - ends.persistent : 0; };
  uint64_t bytes = shared(ends.all);
  std::string text = absl::StrCat("  Temporary and Scratch, sharing: ", formatBytes(bytes));
  uint64_t least = role < liveBytes.size() ? shared(liveBytes[role]) : 0;
  if (least > 0)
    absl::StrAppendFormat(&text, ", %.3f times the most bytes alive at one time",
                          static_cast<double>(bytes) / static_cast<double>(least));
  return text + ofRole(plan, role) + "\n";
}

std::string bowline::describeMemory(const fbs::PlanT &plan, const std::vector<uint64_t> &liveBytes, size_t top) {
  std::vector<const fbs::BufferT *> largest;
  for (const auto &buffer : plan.buffers)
    if (buffer->space == fbs::MemorySpace::Device)
      largest.push_back(buffer.get());
  std::string text = absl::StrCat("arena: ", formatBytes(plan.arena_bytes),
                                  plan.roles.size() > 1 ? ", that of the role that needs the most" : "", "\n");
  for (size_t role = 0; role < std::max<size_t>(plan.roles.size(), 1); ++role)
    text += describePersistent(plan, role) + describeSharing(plan, role, liveBytes);
  for (const auto &arena : plan.arenas)
    absl::StrAppend(&text, "arena in ", fbs::EnumNameMemorySpace(arena->space), ofRole(plan, arena->role), ": ",
                    formatBytes(arena->bytes), "\n");
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto *lhs, const auto *rhs) { return extentOf(*lhs) > extentOf(*rhs); });
  largest.resize(std::min(top, largest.size()));
  absl::StrAppend(&text, "largest buffers:\n");
  for (const fbs::BufferT *buffer : largest) {
    const std::string &source = plan.sources[buffer->source]->location;
    absl::StrAppend(&text, "  ", formatBytes(extentOf(*buffer)), "  ", fbs::EnumNameBufferKind(buffer->kind), "  ",
                    buffer->name, source.empty() ? "" : absl::StrCat("  (", source, ")"), ofRole(plan, buffer->role),
                    "\n");
  }
  return text;
}

uint64_t bowline::bytesOfModel(const fbs::PlanT &plan) {
  std::map<uint32_t, uint64_t> byRole;
  for (const auto &state : plan.states) {
    const fbs::BufferT &buffer = *plan.buffers[state->buffer];
    if (buffer.space == fbs::MemorySpace::Device && !Has(state->flags, fbs::StateFlag::PerRequest) &&
        !Has(state->flags, fbs::StateFlag::Cache))
      byRole[buffer.role] += extentOf(buffer);
  }
  uint64_t most = 0;
  for (auto [role, bytes] : byRole)
    most = std::max(most, bytes);
  return most;
}

std::string bowline::describePlan(const fbs::PlanT &plan, const std::vector<uint64_t> &liveBytes,
                                  const std::vector<std::map<std::string, double>> &unfusedBytes) {
  uint64_t parameters = 0, tensors = 0;
  for (const auto &state : plan.states) {
    if (!Has(state->flags, fbs::StateFlag::Weight) || Has(state->flags, fbs::StateFlag::Mirror))
      continue;
    uint64_t count = 1;
    for (int64_t size : plan.buffers[state->buffer]->shape)
      count *= size;
    parameters += count;
    ++tensors;
  }
  std::string text = absl::StrCat("plan ", plan.name, " for ", plan.target->cpu, ", ", plan.target->threads,
                                  " threads\nparameters: ", parameters, " in ", tensors, " tensors\n");
  for (const auto &entry : plan.entries) {
    const fbs::ProgramT &program = *plan.programs[entry->program];
    double flops = 0, bytes = 0;
    size_t commands = 0, launches = 0;
    for (const fbs::SegmentCall &call : program.timeline)
      for (const auto &command : program.segments[call.segment()]->commands) {
        ++commands;
        if (const fbs::LaunchT *launch = command->body.AsLaunch()) {
          ++launches;
          flops += plan.kernels[launch->kernel]->flops;
          bytes += plan.kernels[launch->kernel]->bytes_moved;
        }
      }
    absl::StrAppendFormat(&text, "entry %s%s: %d commands, %d launches, %.3g GFLOP, %.3g GB moved", entry->name,
                          ofRole(plan, program.role), commands, launches, flops / 1e9, bytes / 1e9);
    if (program.role < unfusedBytes.size())
      if (auto unfused = unfusedBytes[program.role].find(entry->name);
          unfused != unfusedBytes[program.role].end() && unfused->second > 1.01 * bytes) // else nothing was fused
        absl::StrAppendFormat(&text, " (%.3g GB if nothing were fused)", unfused->second / 1e9);
    absl::StrAppend(&text, "\n");
  }
  size_t generated = std::count_if(plan.kernels.begin(), plan.kernels.end(),
                                   [](const auto &kernel) { return kernel->origin == fbs::KernelOrigin::Generated; });
  uint64_t code = 0;
  bool hasCode = true;
  for (const auto &image : plan.images)
    for (const auto &part : image->codes) {
      code += part->data.size();
      hasCode &= part->format != kNoImageFormat;
    }
  absl::StrAppend(&text, "kernels: ", generated, " generated (", hasCode ? formatBytes(code) : "without code", "), ",
                  plan.kernels.size() - generated, " registered\n");
  int64_t split = llvm::count_if(plan.kernels, [](const auto &kernel) {
    return llvm::any_of(kernel->attributes, [](const auto &attribute) { return attribute->name == "bf16x6"; });
  });
  if (split > 0)
    absl::StrAppend(&text, split, " kernels of products of f32 may use six of bf16, where there is AMX\n");
  return text + describeMemory(plan, liveBytes, 8);
}
