#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_ARRIVAL_EXCHANGE_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_ARRIVAL_EXCHANGE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/hal/exchange.h"

namespace bowline {

// The operations of a communicator's members as far as they are threads of this process: which members each has.
class Arrivals;

// Runs another exchange. An operation that waits for a member is no activity of its device (DeviceActivity) until that
// member has come to it; members in other processes are not seen, so that an operation with them never is.
class ArrivalExchange : public hal::Exchange {
 public:
  explicit ArrivalExchange(std::unique_ptr<hal::Exchange> exchange);
  ~ArrivalExchange() override;
  ArrivalExchange(const ArrivalExchange&) = delete;
  ArrivalExchange& operator=(const ArrivalExchange&) = delete;

  const std::string& name() const override { return exchange_->name(); }
  const std::vector<int>& ranks() const override { return exchange_->ranks(); }
  int self() const override { return exchange_->self(); }
  // From the thread of a call of the host, which counts.
  absl::Status Run(hal::Operation operation, absl::Span<const hal::HostPiece> pieces) override;
  absl::Status Break(absl::Status why) override { return exchange_->Break(std::move(why)); }
  absl::Status status() const override { return exchange_->status(); }
  absl::Status Report(const hal::Operation& operation, uint64_t elements, uint64_t collectives) override {
    return exchange_->Report(operation, elements, collectives);
  }
  absl::Status Complain(const std::string& failure) override { return exchange_->Complain(failure); }
  bool emulates_link() const override { return exchange_->emulates_link(); }

 private:
  std::unique_ptr<hal::Exchange> exchange_;
  std::shared_ptr<Arrivals> arrivals_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_ARRIVAL_EXCHANGE_H_
