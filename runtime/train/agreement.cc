#include "runtime/train/agreement.h"

#include <numeric>
#include <vector>

namespace bowline {

absl::StatusOr<Agreement> Agreement::Create(CommunicatorGroup* group, hal::Device& device) {
  Agreement agreement;
  if (group == nullptr || group->ranks() == 1) return agreement;
  std::vector<int> everyone(static_cast<size_t>(group->ranks()));
  std::iota(everyone.begin(), everyone.end(), 0);
  BOWLINE_ASSIGN_OR_RETURN(agreement.communicator_, group->CreateCommunicator("agreement", everyone, {}));
  BOWLINE_ASSIGN_OR_RETURN(agreement.stream_, device.CreateStream());
  agreement.flag_ = std::make_unique<int32_t>(0);
  return agreement;
}

absl::StatusOr<bool> Agreement::AnyOf(bool mine) {
  if (communicator_ == nullptr) return mine;
  *flag_ = mine ? 1 : 0;
  const hal::Piece piece = {flag_.get(), flag_.get(), 1};
  BOWLINE_RETURN_IF_ERROR(communicator_->AllReduce(*stream_, {&piece, 1}, kernels::DType::kI32, hal::ReduceOp::kMax));
  BOWLINE_RETURN_IF_ERROR(stream_->Synchronize());
  return *flag_ != 0;
}

}  // namespace bowline
