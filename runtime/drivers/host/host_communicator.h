#ifndef BOWLINE_RUNTIME_DRIVERS_HOST_HOST_COMMUNICATOR_H_
#define BOWLINE_RUNTIME_DRIVERS_HOST_HOST_COMMUNICATOR_H_

#include <memory>
#include <utility>

#include "runtime/hal/communicator.h"

namespace bowline {

// The communicator of a device whose addresses are the host's pointers. It runs an exchange in the order of streams;
// the exchange reads and writes the data in place.
class HostCommunicator : public hal::Communicator {
 public:
  explicit HostCommunicator(std::unique_ptr<hal::Exchange> exchange) : exchange_(std::move(exchange)) {}

  int rank() const override { return exchange_->self(); }
  int size() const override { return exchange_->size(); }
  absl::Status Issue(hal::Stream& stream, const hal::Operation& operation,
                     absl::Span<const hal::Piece> pieces) override;

 private:
  static absl::Status Run(const hal::HostCall& call);

  std::unique_ptr<hal::Exchange> exchange_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_HOST_HOST_COMMUNICATOR_H_
