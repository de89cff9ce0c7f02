#include "runtime/train/agreement.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace bowline {

absl::StatusOr<Agreement> Agreement::Create(RankGroup* group) {
  Agreement agreement;
  if (group == nullptr || group->ranks() == 1) return agreement;
  std::vector<int> everyone(static_cast<size_t>(group->ranks()));
  std::iota(everyone.begin(), everyone.end(), 0);
  BOWLINE_ASSIGN_OR_RETURN(agreement.everyone_, group->CreateExchange("agreement", everyone));
  return agreement;
}

absl::Status Agreement::Max(int32_t* values, size_t count) {
  const auto largest =
      hal::Operation::Reduction(hal::OperationKind::kAllReduce, kernels::DType::kI32, hal::ReduceOp::kMax);
  const hal::HostPiece piece = {values, values, count};
  return everyone_->Run(largest, {&piece, 1});
}

absl::StatusOr<bool> Agreement::AnyOf(bool mine) {
  if (everyone_ == nullptr) return mine;
  int32_t flag = mine ? 1 : 0;
  BOWLINE_RETURN_IF_ERROR(Max(&flag, 1));
  return flag != 0;
}

absl::StatusOr<std::optional<int32_t>> Agreement::NumberOfRankZero(int32_t mine, bool go_on) {
  if (everyone_ == nullptr) return go_on ? std::optional<int32_t>(mine) : std::nullopt;
  int32_t number = !go_on ? INT32_MAX : rank() == 0 ? mine : -1;
  BOWLINE_RETURN_IF_ERROR(Max(&number, 1));
  return number == INT32_MAX ? std::nullopt : std::optional<int32_t>(number);
}

absl::StatusOr<std::string> Agreement::FromRank(int rank, absl::string_view text) {
  if (everyone_ == nullptr) return std::string(text);
  if (this->rank() != rank) text = {};
  auto size = static_cast<int32_t>(std::min<size_t>(text.size(), INT32_MAX));
  BOWLINE_RETURN_IF_ERROR(Max(&size, 1));
  // One character per number: texts are short, and every communicator reduces i32.
  std::vector<int32_t> characters(static_cast<size_t>(size), 0);
  for (size_t i = 0; i < text.size() && i < characters.size(); ++i) characters[i] = static_cast<uint8_t>(text[i]);
  if (size > 0) BOWLINE_RETURN_IF_ERROR(Max(characters.data(), characters.size()));
  std::string result;
  for (const int32_t character : characters) result.push_back(static_cast<char>(character));
  return result;
}

absl::StatusOr<std::string> Agreement::FromRankZero(absl::string_view text) { return FromRank(0, text); }

absl::Status Agreement::AllOk(const absl::Status& mine) {
  if (everyone_ == nullptr) return mine;
  // The first rank is the one with the largest distance from the end.
  int32_t first = mine.ok() ? 0 : ranks() - rank();
  BOWLINE_RETURN_IF_ERROR(Max(&first, 1));
  if (first == 0) return absl::OkStatus();
  const int failed = ranks() - first;
  int32_t code = failed == rank() ? static_cast<int32_t>(mine.code()) : 0;
  BOWLINE_RETURN_IF_ERROR(Max(&code, 1));
  BOWLINE_ASSIGN_OR_RETURN(const std::string message, FromRank(failed, mine.message()));
  return {static_cast<absl::StatusCode>(code), absl::StrCat("rank ", failed, ": ", message)};
}

}  // namespace bowline
