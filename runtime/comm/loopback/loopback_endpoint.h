#ifndef BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_ENDPOINT_H_
#define BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_ENDPOINT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/loopback/channel.h"
#include "runtime/hal/exchange.h"

namespace bowline {

// A member's end of a channel.
class LoopbackEndpoint : public hal::Exchange {
 public:
  LoopbackEndpoint(std::shared_ptr<Channel> channel, int self) : channel_(std::move(channel)), self_(self) {}

  const std::string& name() const override { return channel_->name(); }
  const std::vector<int>& ranks() const override { return channel_->ranks(); }
  int self() const override { return self_; }
  absl::Status Run(hal::Operation operation, absl::Span<const hal::HostPiece> pieces) override {
    return channel_->Run(self_, operation, pieces);
  }
  absl::Status Break(absl::Status why) override { return channel_->Break(std::move(why)); }
  absl::Status status() const override { return channel_->status(); }
  absl::Status Report(const hal::Operation& operation, uint64_t elements, uint64_t collectives) override {
    return channel_->Report(self_, operation, elements, collectives);
  }
  absl::Status Complain(const std::string& failure) override { return channel_->Complain(self_, failure); }
  bool emulates_link() const override { return channel_->link().emulated(); }

 private:
  std::shared_ptr<Channel> channel_;
  const int self_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_LOOPBACK_LOOPBACK_ENDPOINT_H_
