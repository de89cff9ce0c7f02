#include "runtime/drivers/cuda/cudnn/attention.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/attention_program.h"
#include "runtime/drivers/cuda/cudnn/attention_graph.h"
#include "runtime/drivers/cuda/cudnn/cudnn_plan.h"

namespace bowline {
namespace {

using kernels::AttentionShape;
using kernels::cuda::LibraryAttention;

constexpr size_t kUnit = 256;  // tensors in the workspace begin at multiples of it

size_t Aligned(size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

// The library on a card, for all devices of the process that use it.
struct CudnnOnCard {
  const CudnnApi* api = nullptr;
  cudnnHandle_t handle = nullptr;
  CudnnDescriptor properties;
  std::mutex launching;  // the handle has one stream at a time
};

absl::StatusOr<CudnnOnCard*> OpenCudnnOn(CudaCard* card, const std::vector<std::string>& folders) {
  static std::mutex mutex;
  static auto* const opened = new std::map<CudaCard*, std::unique_ptr<CudnnOnCard>>();
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<CudnnOnCard>& kept = (*opened)[card];
  if (kept == nullptr) {
    auto made = std::make_unique<CudnnOnCard>();
    BOWLINE_ASSIGN_OR_RETURN(made->api, LoadCudnn(folders));
    BOWLINE_RETURN_IF_ERROR(card->MakeCurrent());
    BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDNN(*made->api, cudnnCreate, &made->handle));
    BOWLINE_ASSIGN_OR_RETURN(made->properties,
                             CudnnDescriptor::Create(*made->api, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR));
    BOWLINE_RETURN_IF_ERROR(made->properties.Set(CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, made->handle));
    BOWLINE_RETURN_IF_ERROR(made->properties.Finalize());
    kept = std::move(made);
  }
  return kept.get();
}

// A call's part of the work; all calls of an attention have the same.
std::vector<AttentionPart> PartsOf(const AttentionShape& s) {
  std::vector<AttentionPart> parts;
  for (int64_t batches = s.batch; batches >= 1; --batches) {
    if (s.batch % batches == 0) parts.push_back({batches, s.kv_heads});
  }
  for (int64_t heads = s.kv_heads - 1; heads >= 1; --heads) {
    if (s.kv_heads % heads == 0) parts.push_back({1, heads});
  }
  return parts;
}

class CudnnAttention : public Attention {
 public:
  CudnnAttention(CudnnOnCard* cudnn, const LibraryAttention& attention)
      : cudnn_(cudnn), shape_(attention.shape), backward_(attention.backward) {}

  // The largest part whose workspace fits.
  absl::Status Initialise(size_t scratch_bytes, bool any_order) {
    absl::Status last = absl::ResourceExhaustedError(
        absl::StrCat("the plan gives it ", scratch_bytes, " bytes of workspace, too few for cuDNN"));
    for (const AttentionPart part : PartsOf(shape_)) {
      AttentionShape s = shape_;
      s.batch = part.batches;
      s.heads = shape_.heads / shape_.kv_heads * part.kv_heads;
      s.kv_heads = part.kv_heads;
      const bool whole = part.batches == shape_.batch && part.kv_heads == shape_.kv_heads;
      // All calls' addresses have the alignment of the first one's.
      if (!whole && (s.batch * s.heads * s.queries) % 4 != 0) continue;
      // In order where sums in any order need more workspace than there is.
      for (const bool in_order : {false, true}) {
        if (!in_order && (!any_order || !backward_)) continue;
        const size_t expected =
            backward_ ? kernels::cuda::BackwardWorkspace(s, in_order) : kernels::cuda::kForwardWorkspace;
        if (expected > scratch_bytes) continue;
        last = Compile(part, scratch_bytes, in_order);
        if (!absl::IsResourceExhausted(last)) return last;
      }
    }
    return last;
  }

  absl::Status Submit(CUstream stream, absl::Span<const hal::DeviceAddress> arguments,
                      hal::DeviceAddress scratch) const override {
    for (int64_t batch = 0; batch < shape_.batch; batch += part_.batches) {
      for (int64_t head = 0; head < shape_.kv_heads; head += part_.kv_heads) {
        BOWLINE_RETURN_IF_ERROR(SubmitPart(stream, arguments, scratch, batch, head));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Compile(AttentionPart part, size_t scratch_bytes, bool in_order) {
    part_ = part;
    described_ = backward_ ? DescribeAttentionBackward(*cudnn_->api, shape_, part, in_order)
                           : DescribeAttentionForward(*cudnn_->api, shape_, part);
    BOWLINE_ASSIGN_OR_RETURN(const CudnnDescriptor* const graph, described_->graph.Finalize());
    workspace_at_ = 0;
    for (const auto& [number, bytes] : described_->between) workspace_at_ += Aligned(bytes);
    if (workspace_at_ > scratch_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat("cuDNN needs more than ", workspace_at_,
                                                       " bytes of workspace, and ", scratch_bytes, " are there"));
    }
    BOWLINE_ASSIGN_OR_RETURN(
        CudnnPlan plan, CudnnPlan::Create(*cudnn_->api, cudnn_->properties, *graph, scratch_bytes - workspace_at_));
    plan_.emplace(std::move(plan));
    return absl::OkStatus();
  }

  absl::Status SubmitPart(CUstream stream, absl::Span<const hal::DeviceAddress> arguments, hal::DeviceAddress scratch,
                          int64_t batch, int64_t head) const {
    std::vector<int64_t> numbers = described_->arguments;
    std::vector<const void*> addresses;
    for (size_t i = 0; i < numbers.size(); ++i) {
      addresses.push_back(reinterpret_cast<const void*>(arguments[i] + OffsetOf(i, batch, head)));
    }
    hal::DeviceAddress end = scratch;
    for (const auto& [number, bytes] : described_->between) {
      numbers.push_back(number);
      addresses.push_back(reinterpret_cast<const void*>(end));
      end += Aligned(bytes);
    }
    for (const auto& [number, value] : described_->graph.Values()) {
      numbers.push_back(number);
      addresses.push_back(value);
    }
    const CudnnApi& api = *cudnn_->api;
    BOWLINE_ASSIGN_OR_RETURN(const CudnnDescriptor pack,
                             CudnnDescriptor::Create(api, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
    BOWLINE_RETURN_IF_ERROR(
        pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, absl::MakeConstSpan(numbers)));
    BOWLINE_RETURN_IF_ERROR(
        pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, absl::MakeConstSpan(addresses)));
    BOWLINE_RETURN_IF_ERROR(
        pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, reinterpret_cast<const void*>(end)));
    BOWLINE_RETURN_IF_ERROR(pack.Finalize());
    const std::lock_guard<std::mutex> lock(cudnn_->launching);
    BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDNN(api, cudnnSetStream, cudnn_->handle, reinterpret_cast<cudaStream_t>(stream)));
    return BOWLINE_CUDNN(api, cudnnBackendExecute, cudnn_->handle, plan_->descriptor().get(), pack.get());
  }

  // Bytes before the first element of a part, whose first batch and key head are given, in argument `index`.
  uint64_t OffsetOf(size_t index, int64_t batch, int64_t head) const {
    const AttentionShape& s = shape_;
    const int64_t query_head = s.heads / s.kv_heads * head;
    // q, k, v, out, lse, and then dout, dq, dk, dv
    if (index == 4) return static_cast<uint64_t>((batch * s.heads + query_head) * s.queries) * sizeof(float);
    const bool of_keys = index == 1 || index == 2 || index == 7 || index == 8;
    const int64_t elements = of_keys ? (batch * s.keys * s.kv_heads + head) * s.head_dim
                                     : (batch * s.queries * s.heads + query_head) * s.head_dim;
    return static_cast<uint64_t>(elements) * SizeOf(s.element);
  }

  CudnnOnCard* cudnn_;
  AttentionShape shape_;
  bool backward_;
  AttentionPart part_ = {};
  std::unique_ptr<AttentionGraph> described_;
  size_t workspace_at_ = 0;  // where the library's own workspace begins, behind what is between parts of the graph
  std::optional<CudnnPlan> plan_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Attention>> CreateCudnnAttention(CudaCard* card, const LibraryAttention& attention,
                                                                size_t scratch_bytes, const AttentionOptions& options) {
  const std::string why_not = WhyNotByCudnn(attention.shape, attention.backward, card->major());
  if (!why_not.empty()) return absl::UnimplementedError(why_not);
  BOWLINE_ASSIGN_OR_RETURN(CudnnOnCard* const cudnn, OpenCudnnOn(card, options.libraries));
  auto made = std::make_unique<CudnnAttention>(cudnn, attention);
  BOWLINE_RETURN_IF_ERROR(made->Initialise(scratch_bytes, options.any_order));
  return made;
}

}  // namespace bowline
