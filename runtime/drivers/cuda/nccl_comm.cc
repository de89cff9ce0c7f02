#include "runtime/drivers/cuda/nccl_comm.h"

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

// How long a communicator waits at its end for the other members. They have had what this one sent by then, unless they
// are that late; and a rank that ends with an error has yet to say so, for which the others wait.
constexpr std::chrono::seconds kFinishLimit{2};
constexpr std::chrono::seconds kNoLimit = std::chrono::hours(24 * 365);

// Lets other threads run: briefly at first, as most waits are short.
void Pause(int round) {
  if (round < 100) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(round < 1000 ? 20 : 1000));
}

ncclConfig_t ConfigOf(const hal::Exchange& exchange) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = exchange.name().c_str();
  return config;
}

}  // namespace

absl::Status NcclComm::Aborted() const {
  BOWLINE_RETURN_IF_ERROR(exchange_.status());
  return absl::CancelledError(absl::StrCat("communicator '", exchange_.name(), "' was aborted"));
}

ncclResult_t NcclComm::State() {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = api_.ncclCommGetAsyncError(comm_, &state);
  return result == ncclSuccess ? state : result;
}

absl::Status NcclComm::AsyncError() {
  const Use use(*this);
  if (!use.allowed()) return Aborted();
  return NcclStatus(api_, State(), "NCCL", comm_);
}

absl::Status NcclComm::Settle(ncclResult_t result, absl::string_view name) {
  for (int round = 0; result == ncclInProgress; ++round) {
    Pause(round);
    const Use use(*this);
    if (!use.allowed()) return Aborted();
    result = State();
  }
  const Use use(*this);
  return use.allowed() ? NcclStatus(api_, result, name, comm_) : Aborted();
}

absl::Status NcclComm::Meet(ncclResult_t result, absl::string_view name, uint64_t number, std::chrono::seconds limit) {
  hal::Operation meeting;
  meeting.kind = hal::OperationKind::kBarrier;
  meeting.number = static_cast<uint32_t>(number);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (int round = 0; result == ncclInProgress; ++round) {
    BOWLINE_RETURN_IF_ERROR(exchange_.Report(meeting, 0, number + 1));
    if (std::chrono::steady_clock::now() > deadline) return absl::DeadlineExceededError(name);
    Pause(round);
    result = State();
  }
  BOWLINE_RETURN_IF_ERROR(NcclStatus(api_, result, name, comm_));
  return exchange_.Report({}, 0, number + 1);
}

absl::Status NcclComm::Connect(const ncclUniqueId& id) {
  ncclConfig_t config = ConfigOf(exchange_);
  const ncclResult_t result = api_.ncclCommInitRankConfig(&comm_, exchange_.size(), id, exchange_.self(), &config);
  BOWLINE_RETURN_IF_ERROR(NcclStatus(api_, result, "ncclCommInitRankConfig", comm_));
  if (comm_ == nullptr) return absl::InternalError("ncclCommInitRankConfig: NCCL made no communicator");
  absl::Status status = Meet(result, "ncclCommInitRankConfig", 0, kNoLimit);
  if (!status.ok()) Abort();
  return status;
}

absl::Status NcclComm::SplitFrom(NcclComm& parent) {
  ncclConfig_t config = ConfigOf(exchange_);
  // All members have one colour; NCCL writes `comm_` on its own thread, before the parent has done its part.
  const absl::Status split = parent.Call("ncclCommSplit", [&](ncclComm_t comm) {
    return api_.ncclCommSplit(comm, /*color=*/0, exchange_.self(), &comm_, &config);
  });
  BOWLINE_RETURN_IF_ERROR(split);
  if (comm_ == nullptr) return absl::InternalError("ncclCommSplit: NCCL made no communicator");
  absl::Status status = Meet(State(), "ncclCommSplit", 0, kNoLimit);
  if (!status.ok()) Abort();
  return status;
}

absl::Status NcclComm::Finish(uint64_t begun) {
  Close();
  if (comm_ == nullptr) return absl::OkStatus();
  const absl::Status status = Meet(api_.ncclCommFinalize(comm_), "ncclCommFinalize", begun + 1, kFinishLimit);
  if (!status.ok()) {
    Abort();
    return status;
  }
  api_.ncclCommDestroy(comm_);
  comm_ = nullptr;
  return absl::OkStatus();
}

void NcclComm::Close() {
  closed_.store(true);
  while (calls_.load() != 0) std::this_thread::yield();
}

void NcclComm::Abort() {
  closed_.store(true);
  if (comm_ == nullptr) return;
  api_.ncclCommAbort(comm_);
  comm_ = nullptr;
}

}  // namespace bowline
