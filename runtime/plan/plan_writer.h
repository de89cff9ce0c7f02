#ifndef BOWLINE_RUNTIME_PLAN_PLAN_WRITER_H_
#define BOWLINE_RUNTIME_PLAN_PLAN_WRITER_H_

#include <string>

#include "flatbuffers/detached_buffer.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// Serializes a plan into the bytes of a plan file. Sets `version` and `schema_hash` to those of this build, and writes
// the content hash into the result. Equal plans give equal bytes. Returns kInvalidArgument, naming the place, if a
// required part is missing. Does not check the plan's meaning: VerifyPlan does.
absl::StatusOr<flatbuffers::DetachedBuffer> WritePlan(fbs::PlanT& plan);

// Writes the bytes of WritePlan to a file, which appears complete or not at all. Loads and verifies the bytes first, so
// that it never writes a file that LoadedPlan would refuse.
absl::Status WritePlanFile(fbs::PlanT& plan, const std::string& path);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_PLAN_WRITER_H_
