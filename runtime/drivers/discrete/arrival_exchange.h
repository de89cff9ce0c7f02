#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_ARRIVAL_EXCHANGE_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_ARRIVAL_EXCHANGE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/hal/exchange.h"

namespace bowline {

// For each operation of a communicator, the members that have arrived and are threads of this process.
class Arrivals;

// Wraps another exchange. While an operation waits for a member, it is not an activity of its device (DeviceActivity).
// The members in other processes are not visible, so that an operation with such members is never an activity.
class ArrivalExchange : public hal::Exchange {
 public:
  explicit ArrivalExchange(std::unique_ptr<hal::Exchange> exchange);
  ~ArrivalExchange() override;
  ArrivalExchange(const ArrivalExchange&) = delete;
  ArrivalExchange& operator=(const ArrivalExchange&) = delete;

  const std::string& name() const override { return exchange_->name(); }
  const std::vector<int>& ranks() const override { return exchange_->ranks(); }
  int self() const override { return exchange_->self(); }
  // Called on the thread of a host call. That call counts as an activity.
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
