//===- PlanDescription.h - the contents of a plan --*- C++ -*-===//

#ifndef BOWLINE_CHECKER_PLANDESCRIPTION_H
#define BOWLINE_CHECKER_PLANDESCRIPTION_H

#include "runtime/plan/plan_file.h"

#include "absl/status/statusor.h"
#include <nlohmann/json.hpp>

#include <string>

namespace bowline {

/// Header, entries with their ports, programs, kernels and buffers. With `memory` each entry says how many bytes are
/// live over its commands.
nlohmann::ordered_json describePlan(const LoadedPlan &plan, bool memory);

/// Kernels alone, with their launches and the resources of their code. Fails where that cannot be read.
absl::StatusOr<nlohmann::ordered_json> describeKernels(const LoadedPlan &plan);

/// Returns the result of describePlan as text for people; with `memory` only its header and entries.
std::string layOutPlan(const nlohmann::ordered_json &plan, bool memory);

/// Returns the result of describeKernels as text for people.
std::string layOutKernels(const nlohmann::ordered_json &kernels);

} // namespace bowline

#endif // BOWLINE_CHECKER_PLANDESCRIPTION_H
