#include "runtime/drivers/cuda/card/cuda_function.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bowline {
namespace {

constexpr std::array<uint32_t, 3> kMostBlocks = {2147483647, 65535, 65535};
constexpr std::array<uint32_t, 3> kMostThreads = {1024, 1024, 64};
constexpr uint32_t kSharedBytesOfEveryLaunch = 48 << 10;

}  // namespace

absl::StatusOr<CudaFunction> CudaFunction::Create(CudaCard* card, CUfunction function, std::string name) {
  CudaFunction created(card, function, std::move(name));
  const CudaApi& api = card->api();
  BOWLINE_ASSIGN_OR_RETURN(created.parameters_, ParameterBytes(api, function));
  BOWLINE_RETURN_IF_ERROR(
      BOWLINE_CUDA(api, cuFuncGetAttribute, &created.most_threads_, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  BOWLINE_RETURN_IF_ERROR(BOWLINE_CUDA(api, cuFuncGetAttribute, &created.static_shared_bytes_,
                                       CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  return created;
}

absl::Status CudaFunction::Prepare(const std::array<uint32_t, 3>& blocks, const std::array<uint32_t, 3>& threads,
                                   uint32_t shared_bytes) const {
  const auto refuse = [&](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("the function '", name_, "' ", why...));
  };
  uint64_t together = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (blocks[axis] < 1 || blocks[axis] > kMostBlocks[axis]) {
      return refuse("is launched over [", absl::StrJoin(blocks, ", "), "] blocks; 1 to [",
                    absl::StrJoin(kMostBlocks, ", "), "] are possible");
    }
    if (threads[axis] < 1 || threads[axis] > kMostThreads[axis]) {
      return refuse("has blocks of [", absl::StrJoin(threads, ", "), "] threads; 1 to [",
                    absl::StrJoin(kMostThreads, ", "), "] are possible");
    }
    together *= threads[axis];
  }
  if (together > static_cast<uint64_t>(most_threads_)) {
    return refuse("has blocks of ", together, " threads; its registers are enough for ", most_threads_);
  }
  const int most_shared = card_->shared_bytes() - static_shared_bytes_;
  if (shared_bytes > static_cast<uint64_t>(most_shared)) {
    return refuse("asks for ", shared_bytes, " bytes of shared memory; this card has ", most_shared, " for it");
  }
  if (shared_bytes + static_cast<uint64_t>(static_shared_bytes_) <= kSharedBytesOfEveryLaunch) return absl::OkStatus();
  // The most that there is, so that launches of one function that need different amounts do not undo each other's.
  BOWLINE_RETURN_IF_ERROR(card_->MakeCurrent());
  return BOWLINE_CUDA(card_->api(), cuFuncSetAttribute, function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                      most_shared);
}

absl::Status CudaFunction::Launch(CUstream stream, const std::array<uint32_t, 3>& blocks,
                                  const std::array<uint32_t, 3>& threads, uint32_t shared_bytes,
                                  void** parameters) const {
  return BOWLINE_CUDA(card_->api(), cuLaunchKernel, function_, blocks[0], blocks[1], blocks[2], threads[0], threads[1],
                      threads[2], shared_bytes, stream, parameters, nullptr);
}

}  // namespace bowline
