//===- PlanDescription.h - the contents of a plan --*- C++ -*-===//

#ifndef BOWLINE_CHECKER_PLANDESCRIPTION_H
#define BOWLINE_CHECKER_PLANDESCRIPTION_H

#include "runtime/plan/plan_file.h"

#include "absl/status/statusor.h"
#include <nlohmann/json.hpp>

#include <string>

namespace bowline {

/// Describes the header, the entries with their ports, the programs, the kernels and the buffers. With `memory` the
/// description of each entry includes the live bytes over its commands.
nlohmann::ordered_json describePlan(const LoadedPlan &plan, bool memory);

/// Describes only the kernels: their launches and the resources of their code. Fails where that code cannot be read.
absl::StatusOr<nlohmann::ordered_json> describeKernels(const LoadedPlan &plan);

/// Formats the result of describePlan for people; with `memory` only the header and the entries.
std::string layOutPlan(const nlohmann::ordered_json &plan, bool memory);

/// Formats the result of describeKernels for people.
std::string layOutKernels(const nlohmann::ordered_json &kernels);

} // namespace bowline

#endif // BOWLINE_CHECKER_PLANDESCRIPTION_H
