#include "runtime/serve/step_group.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline::serve {
namespace {

constexpr int32_t kNothing = -1, kEnd = -2;
// The longest time between two looks at whether the group is whole.
constexpr std::chrono::nanoseconds kLook = std::chrono::milliseconds(500);

absl::StatusOr<std::unique_ptr<hal::Exchange>> CreateExchange(RankGroup& group) {
  std::vector<int> everyone(static_cast<size_t>(group.ranks()));
  std::iota(everyone.begin(), everyone.end(), 0);
  return group.CreateExchange("steps", everyone);
}

// The inputs of an entry of kind Step, in its order.
absl::StatusOr<std::vector<TensorRef>> InputsOf(const Session& session, int entry) {
  const auto& entries = *session.plan().entries();
  if (entry < 0 || static_cast<uint32_t>(entry) >= entries.size() ||
      entries.Get(static_cast<uint32_t>(entry))->kind() != fbs::EntryKind::Step) {
    return absl::InternalError(
        absl::StrCat("rank 0 began entry ", entry, ", but '", session.loaded_plan().name(),
                     "' of this rank has no entry of kind Step there; start all ranks with the same plan"));
  }
  std::vector<TensorRef> inputs;
  for (const fbs::Port* port : *entries.Get(static_cast<uint32_t>(entry))->inputs()) {
    BOWLINE_ASSIGN_OR_RETURN(inputs.emplace_back(), session.Input(session.NameOf(entry), TextOf(port->name())));
  }
  return inputs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepLeader>> StepLeader::Create(const Session& session, RankGroup& group,
                                                               Options options) {
  BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<hal::Exchange> exchange, CreateExchange(group));
  return std::unique_ptr<StepLeader>(new StepLeader(session, group, std::move(options), std::move(exchange)));
}

StepLeader::StepLeader(const Session& session, RankGroup& group, Options options,
                       std::unique_ptr<hal::Exchange> exchange)
    : session_(session),
      group_(group),
      options_(std::move(options)),
      exchange_(std::move(exchange)),
      last_sent_(std::chrono::steady_clock::now()),
      thread_([this] { KeepAlive(); }) {}

StepLeader::~StepLeader() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
    // A group that broke has ended its followers.
    if (exchange_->status().ok()) SendToAll(kEnd, {}).IgnoreError();
  }
  ends_changed_.notify_all();
  thread_.join();
}

absl::Status StepLeader::SendToAll(int32_t kind, absl::Span<const hal::HostPiece> pieces) {
  const hal::HostPiece header = {&kind, nullptr, 1};
  for (int peer = 0; peer < exchange_->size(); ++peer) {
    if (peer == exchange_->self()) continue;
    BOWLINE_RETURN_IF_ERROR(
        exchange_->Run({.kind = hal::OperationKind::kSend, .dtype = kernels::DType::kI32, .peer = peer}, {&header, 1}));
    if (pieces.empty()) continue;
    BOWLINE_RETURN_IF_ERROR(
        exchange_->Run({.kind = hal::OperationKind::kSend, .dtype = kernels::DType::kU8, .peer = peer}, pieces));
  }
  last_sent_ = std::chrono::steady_clock::now();
  return absl::OkStatus();
}

absl::StatusOr<const std::vector<TensorRef>*> StepLeader::PortsOf(int entry) {
  const auto found = ports_.find(entry);
  if (found != ports_.end()) return &found->second;
  BOWLINE_ASSIGN_OR_RETURN(std::vector<TensorRef> ports, InputsOf(session_, entry));
  return &ports_.emplace(entry, std::move(ports)).first->second;
}

absl::Status StepLeader::Send(int entry, absl::Span<const StepInput> inputs) {
  BOWLINE_ASSIGN_OR_RETURN(const std::vector<TensorRef>* const ports, PortsOf(entry));
  std::vector<hal::HostPiece> pieces;
  for (const TensorRef& port : *ports) {
    const auto input = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const StepInput& given) { return given.port.buffer == port.buffer; });
    if (input == inputs.end() || input->bytes.size() != port.bytes) {
      return absl::InternalError(
          absl::StrCat("an input of '", session_.NameOf(entry), "' is missing, or has another size than its port"));
    }
    pieces.push_back({input->bytes.data(), nullptr, input->bytes.size()});
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  return SendToAll(entry, pieces);
}

void StepLeader::Abort(const absl::Status& why) { group_.Abort(why); }

void StepLeader::KeepAlive() {
  const std::chrono::nanoseconds pause = options_.timeout / 4;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ends_changed_.wait_for(lock, std::min(pause, kLook), [&] { return ends_; })) {
    absl::Status status = exchange_->status();
    if (status.ok() && std::chrono::steady_clock::now() - last_sent_ >= pause) status = SendToAll(kNothing, {});
    if (status.ok()) continue;
    lock.unlock();
    if (options_.broken) options_.broken(status);
    return;
  }
}

absl::Status FollowSteps(Session& session, RankGroup& group) {
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<hal::Exchange> exchange, CreateExchange(group));
  struct Step {
    std::vector<TensorRef> ports;
    std::vector<std::vector<uint8_t>> values;
    std::vector<hal::HostPiece> pieces;
  };
  std::map<int32_t, Step> steps;
  while (true) {
    int32_t kind = kEnd;
    const hal::HostPiece header = {nullptr, &kind, 1};
    BOWLINE_RETURN_IF_ERROR(
        exchange->Run({.kind = hal::OperationKind::kReceive, .dtype = kernels::DType::kI32, .peer = 0}, {&header, 1}));
    if (kind == kEnd) return absl::OkStatus();
    if (kind == kNothing) continue;
    const auto [found, is_new] = steps.try_emplace(kind);
    Step& step = found->second;
    if (is_new) {
      BOWLINE_ASSIGN_OR_RETURN(step.ports, InputsOf(session, kind));
      for (const TensorRef& port : step.ports) {
        std::vector<uint8_t>& value = step.values.emplace_back(port.bytes);
        step.pieces.push_back({nullptr, value.data(), value.size()});
      }
    }
    BOWLINE_RETURN_IF_ERROR(
        exchange->Run({.kind = hal::OperationKind::kReceive, .dtype = kernels::DType::kU8, .peer = 0}, step.pieces));
    for (size_t i = 0; i < step.ports.size(); ++i) {
      BOWLINE_RETURN_IF_ERROR(session.Write(step.ports[i], step.values[i]));
    }
    BOWLINE_RETURN_IF_ERROR(session.Run(kind));
  }
}

}  // namespace bowline::serve
