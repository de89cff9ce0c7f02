#ifndef BOWLINE_RUNTIME_COMM_GLOO_GLOO_ENDPOINT_H_
#define BOWLINE_RUNTIME_COMM_GLOO_GLOO_ENDPOINT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/gloo/gloo_channel.h"
#include "runtime/hal/exchange.h"

namespace bowline {

// A member's exchange over its channel, which the group keeps longer.
class GlooEndpoint : public hal::Exchange {
 public:
  explicit GlooEndpoint(std::shared_ptr<GlooChannel> channel) : channel_(std::move(channel)) {}

  const std::string& name() const override { return channel_->name(); }
  const std::vector<int>& ranks() const override { return channel_->ranks(); }
  int self() const override { return channel_->self(); }
  absl::Status Run(hal::Operation operation, absl::Span<const hal::HostPiece> pieces) override {
    return channel_->Run(operation, pieces);
  }
  absl::Status Break(absl::Status why) override { return channel_->Break(why); }
  absl::Status status() const override { return channel_->status(); }
  absl::Status Report(const hal::Operation& operation, uint64_t elements, uint64_t collectives) override {
    return channel_->Report(operation, elements, collectives);
  }
  absl::Status Complain(const std::string& failure) override { return channel_->Complain(failure); }
  bool emulates_link() const override { return channel_->link().emulated(); }

 private:
  std::shared_ptr<GlooChannel> channel_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_GLOO_GLOO_ENDPOINT_H_
