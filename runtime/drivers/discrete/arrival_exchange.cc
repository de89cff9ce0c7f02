#include "runtime/drivers/discrete/arrival_exchange.h"

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "runtime/drivers/discrete/device_activity.h"

namespace bowline {

// All is called with DeviceActivity's mutex held.
class Arrivals {
 public:
  Arrivals(const std::string& name, const std::vector<int>& ranks)
      : name_(name), ranks_(ranks), members_(ranks.size()), transfers_(ranks.size() * ranks.size()) {}

  // Those of the communicator that `exchange` is a member of: the first of its name that lacks this one, as all members
  // make the communicators that they share in the same order.
  static std::shared_ptr<Arrivals> Join(const hal::Exchange& exchange) {
    auto& all = All();
    std::erase_if(all, [](const auto& arrivals) { return arrivals.expired(); });
    const auto self = static_cast<size_t>(exchange.self());
    for (const auto& candidate : all) {
      const std::shared_ptr<Arrivals> arrivals = candidate.lock();
      if (arrivals->name_ != exchange.name() || arrivals->ranks_ != exchange.ranks()) continue;
      if (arrivals->has_lost_one_ || arrivals->members_[self].is_there) continue;
      arrivals->members_[self].is_there = true;
      return arrivals;
    }
    auto arrivals = std::make_shared<Arrivals>(exchange.name(), exchange.ranks());
    arrivals->members_[self].is_there = true;
    all.push_back(arrivals);
    return arrivals;
  }

  void Leave() { has_lost_one_ = true; }

  void Begin(int self, const hal::Operation& operation) {
    Member& member = members_[static_cast<size_t>(self)];
    if (operation.concerns_two()) {
      member.number = ++Transfers(self, operation);
    } else {
      member.number = ++member.collectives;
    }
    member.operation = operation;
    member.waits = !IsComplete(self);
    for (int other = 0; other < static_cast<int>(members_.size()); ++other) {
      if (other != self && members_[static_cast<size_t>(other)].waits && IsComplete(other)) GoOn(other);
    }
    if (member.waits) DeviceActivity::End();
  }

  void End(int self) {
    // It ended with an error where it still waits.
    if (members_[static_cast<size_t>(self)].waits) GoOn(self);
  }

 private:
  struct Member {
    bool is_there = false;
    bool waits = false;  // in an operation that lacks a member
    hal::Operation operation;
    uint64_t number = 0;  // of it, among collectives or among transfers between these two, from 1
    uint64_t collectives = 0;
  };

  static std::vector<std::weak_ptr<Arrivals>>& All() {
    static std::vector<std::weak_ptr<Arrivals>> all;
    return all;
  }

  // The sends and receives that `self` has begun with the peer of the operation.
  struct OfPair {
    uint64_t sends = 0, receives = 0;
  };
  uint64_t& Transfers(int self, const hal::Operation& operation, bool of_peer = false) {
    const int from = of_peer ? operation.peer : self, to = of_peer ? self : operation.peer;
    OfPair& pair = transfers_[static_cast<size_t>(from) * members_.size() + static_cast<size_t>(to)];
    return (operation.kind == hal::OperationKind::kSend) != of_peer ? pair.sends : pair.receives;
  }

  bool IsComplete(int self) {
    const Member& member = members_[static_cast<size_t>(self)];
    if (member.operation.concerns_two()) return Transfers(self, member.operation, /*of_peer=*/true) >= member.number;
    return std::all_of(members_.begin(), members_.end(),
                       [&](const Member& other) { return other.collectives >= member.number; });
  }

  void GoOn(int member) {
    members_[static_cast<size_t>(member)].waits = false;
    DeviceActivity::Begin();
  }

  const std::string name_;
  const std::vector<int> ranks_;
  bool has_lost_one_ = false;
  std::vector<Member> members_;
  std::vector<OfPair> transfers_;
};

ArrivalExchange::ArrivalExchange(std::unique_ptr<hal::Exchange> exchange) : exchange_(std::move(exchange)) {
  const std::lock_guard<std::mutex> lock(DeviceActivity::mutex());
  arrivals_ = Arrivals::Join(*exchange_);
}

ArrivalExchange::~ArrivalExchange() {
  const std::lock_guard<std::mutex> lock(DeviceActivity::mutex());
  arrivals_->Leave();
}

absl::Status ArrivalExchange::Run(hal::Operation operation, absl::Span<const hal::HostPiece> pieces) {
  {
    const std::lock_guard<std::mutex> lock(DeviceActivity::mutex());
    arrivals_->Begin(self(), operation);
  }
  absl::Status status = exchange_->Run(operation, pieces);
  const std::lock_guard<std::mutex> lock(DeviceActivity::mutex());
  arrivals_->End(self());
  return status;
}

}  // namespace bowline
