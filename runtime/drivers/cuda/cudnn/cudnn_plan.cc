#include "runtime/drivers/cuda/cudnn/cudnn_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

// The library's choices, best first.
absl::StatusOr<std::vector<CudnnDescriptor>> ChoicesFor(const CudnnApi& api, const CudnnDescriptor& properties,
                                                        const CudnnDescriptor& graph, cudnnBackendHeurMode_t mode) {
  BOWLINE_ASSIGN_OR_RETURN(const CudnnDescriptor heuristics,
                           CudnnDescriptor::Create(api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
  BOWLINE_RETURN_IF_ERROR(heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
  BOWLINE_RETURN_IF_ERROR(heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode));
  BOWLINE_RETURN_IF_ERROR(heuristics.Set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties));
  BOWLINE_RETURN_IF_ERROR(heuristics.Finalize());
  int64_t count = 0;
  const auto results = [&](int64_t asked, cudnnBackendDescriptor_t* into) {
    return BOWLINE_CUDNN(api, cudnnBackendGetAttribute, heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                         CUDNN_TYPE_BACKEND_DESCRIPTOR, asked, &count, into);
  };
  BOWLINE_RETURN_IF_ERROR(results(0, nullptr));
  std::vector<CudnnDescriptor> choices;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < count; ++i) {
    BOWLINE_ASSIGN_OR_RETURN(CudnnDescriptor choice, CudnnDescriptor::Create(api, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    handles.push_back(choice.get());
    choices.push_back(std::move(choice));
  }
  // Fewer, where the library finds that it cannot make some.
  BOWLINE_RETURN_IF_ERROR(results(count, handles.data()));
  choices.resize(std::min(choices.size(), static_cast<size_t>(std::max<int64_t>(count, 0))));
  return choices;
}

}  // namespace

absl::StatusOr<CudnnPlan> CudnnPlan::Create(const CudnnApi& api, const CudnnDescriptor& properties,
                                            const CudnnDescriptor& graph, size_t limit) {
  absl::Status refused = absl::UnimplementedError("cuDNN has no kernel for it");
  std::optional<int64_t> least;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    const absl::StatusOr<std::vector<CudnnDescriptor>> choices = ChoicesFor(api, properties, graph, mode);
    if (!choices.ok()) {
      refused = choices.status();
      continue;
    }
    for (const CudnnDescriptor& choice : *choices) {
      BOWLINE_ASSIGN_OR_RETURN(CudnnDescriptor plan,
                               CudnnDescriptor::Create(api, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
      BOWLINE_RETURN_IF_ERROR(plan.Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties));
      BOWLINE_RETURN_IF_ERROR(plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, choice));
      if (absl::Status status = plan.Finalize(); !status.ok()) {
        refused = std::move(status);
        continue;
      }
      BOWLINE_ASSIGN_OR_RETURN(const int64_t bytes, plan.Int64(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
      if (bytes >= 0 && static_cast<uint64_t>(bytes) <= limit)
        return CudnnPlan(std::move(plan), static_cast<size_t>(bytes));
      least = std::min(bytes, least.value_or(bytes));
    }
  }
  if (!least.has_value()) return absl::UnimplementedError(refused.message());
  return absl::ResourceExhaustedError(
      absl::StrCat("cuDNN needs ", *least, " bytes of workspace for it, and ", limit, " are there"));
}

}  // namespace bowline
