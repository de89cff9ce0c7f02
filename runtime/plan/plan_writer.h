#ifndef BOWLINE_RUNTIME_PLAN_PLAN_WRITER_H_
#define BOWLINE_RUNTIME_PLAN_PLAN_WRITER_H_

#include <string>

#include "flatbuffers/detached_buffer.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// The bytes of a plan file. Sets `version` and `schema_hash` to those of this build; the content hash is computed over
// the result and written into it. Equal plans give equal bytes. kInvalidArgument, naming the place, where a required
// part is missing; the plan's meaning is not checked here (VerifyPlan does).
absl::StatusOr<flatbuffers::DetachedBuffer> WritePlan(fbs::PlanT& plan);

// WritePlan into a file that appears complete or not at all; the bytes are loaded and verified first, so that no file
// is ever written that LoadedPlan would refuse.
absl::Status WritePlanFile(fbs::PlanT& plan, const std::string& path);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_PLAN_WRITER_H_
