#include "runtime/comm/loopback/loopback_communicator.h"

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

class SingleRank : public hal::Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

  absl::Status AllReduce(hal::Stream& stream, const void* send, void* receive, size_t count, kernels::DType dtype,
                         hal::ReduceOp) override {
    return Identity(stream, send, receive, count, dtype);
  }
  absl::Status AllGather(hal::Stream& stream, const void* send, void* receive, size_t count,
                         kernels::DType dtype) override {
    return Identity(stream, send, receive, count, dtype);
  }
  absl::Status ReduceScatter(hal::Stream& stream, const void* send, void* receive, size_t count, kernels::DType dtype,
                             hal::ReduceOp) override {
    return Identity(stream, send, receive, count, dtype);
  }
  absl::Status Barrier() override { return absl::OkStatus(); }

 private:
  static absl::Status Identity(hal::Stream& stream, const void* send, void* receive, size_t count,
                               kernels::DType dtype) {
    if (send == receive) return absl::OkStatus();
    return stream.Copy(receive, send, count * kernels::SizeOf(dtype));
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<hal::Communicator>> CreateLoopbackCommunicator(int size) {
  if (size == 1) return std::make_unique<SingleRank>();
  if (size < 1) return absl::InvalidArgumentError(absl::StrCat("a communicator of ", size, " ranks"));
  return absl::UnimplementedError(
      absl::StrCat("a loopback communicator of ", size, " ranks; this build runs one rank per process"));
}

}  // namespace bowline
