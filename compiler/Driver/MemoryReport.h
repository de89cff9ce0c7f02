//===- MemoryReport.h - Report on the buffers that take the memory of a plan
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_MEMORYREPORT_H
#define BOWLINE_COMPILER_DRIVER_MEMORYREPORT_H

#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

#include <map>
#include <string>
#include <vector>

namespace bowline {

/// Formats bytes as "123.4 MiB".
std::string formatBytes(uint64_t bytes);

/// Parses "2GiB", "512MiB", "64KiB" or "1000" (bytes). Returns kInvalidArgument for any other text.
absl::StatusOr<uint64_t> parseBytes(const std::string &text);

/// Describes the arena by kind of buffer, then the `top` largest buffers with their sources, one per line. `liveBytes`
/// is CompileResult::liveBytes.
std::string describeMemory(const fbs::PlanT &plan, const std::vector<uint64_t> &liveBytes, size_t top);

/// Returns the device bytes of parameters and of states that checkpoints have, for the role with the most of them. They
/// do not depend on the sizes of a step. Caches of serving plans do not count.
uint64_t bytesOfModel(const fbs::PlanT &plan);

/// Describes a plan for people: parameters, work per step, kernels and memory. `unfusedBytes` as in CompileResult.
std::string describePlan(const fbs::PlanT &plan, const std::vector<uint64_t> &liveBytes,
                         const std::vector<std::map<std::string, double>> &unfusedBytes);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_MEMORYREPORT_H
