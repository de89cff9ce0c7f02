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

/// "123.4 MiB".
std::string formatBytes(uint64_t bytes);

/// "2GiB", "512MiB", "64KiB", "1000" (bytes); kInvalidArgument for anything else.
absl::StatusOr<uint64_t> parseBytes(const std::string &text);

/// The arena by kind of buffer, and the `top` largest buffers with their sources, a line each.
/// `liveBytes` is CompileResult::liveBytes.
std::string describeMemory(const fbs::PlanT &plan, const std::vector<uint64_t> &liveBytes, size_t top);

/// The bytes of parameters and of states that are saved or loaded with them, of the role that has most of them, on the
/// device: no sizes of a step make them fewer. Caches of plans that serve are not among them.
uint64_t bytesOfModel(const fbs::PlanT &plan);

/// Parameters, work per step, kernels and memory of a plan, for people. `unfusedBytes` is CompileResult::unfusedBytes.
std::string describePlan(const fbs::PlanT &plan, const std::vector<uint64_t> &liveBytes,
                         const std::vector<std::map<std::string, double>> &unfusedBytes);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_MEMORYREPORT_H
