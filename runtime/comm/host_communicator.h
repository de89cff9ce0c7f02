#ifndef BOWLINE_RUNTIME_COMM_HOST_COMMUNICATOR_H_
#define BOWLINE_RUNTIME_COMM_HOST_COMMUNICATOR_H_

#include <string>
#include <vector>

#include "runtime/comm/operation.h"
#include "runtime/hal/communicator.h"

namespace bowline {

// A communicator whose operations are done by the host: checks what a call says and puts it into the stream.
class HostCommunicator : public hal::Communicator {
 public:
  // `ranks` are the members' ranks in the group, `self` this one's place among them.
  HostCommunicator(std::string name, std::vector<int> ranks, int self);

  int rank() const final { return self_; }
  int size() const final { return static_cast<int>(ranks_.size()); }

  absl::Status AllReduce(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype,
                         hal::ReduceOp op) final;
  absl::Status AllGather(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype) final;
  absl::Status ReduceScatter(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype,
                             hal::ReduceOp op) final;
  absl::Status AllToAll(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype) final;
  absl::Status Send(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype, int peer) final;
  absl::Status Receive(hal::Stream& stream, absl::Span<const hal::Piece> pieces, kernels::DType dtype, int peer) final;
  absl::Status Barrier(hal::Stream& stream) final;

 protected:
  const std::string& name() const { return name_; }
  const std::vector<int>& ranks() const { return ranks_; }

  // Does the operation, whose number is not set, from its begin to its end, at its turn in the stream. The pieces are
  // possible ones, but may be others than those of the other members.
  virtual absl::Status Run(const Operation& operation, absl::Span<const hal::Piece> pieces) = 0;

 private:
  absl::Status Issue(hal::Stream& stream, const Operation& operation, absl::Span<const hal::Piece> pieces);
  absl::Status Check(const Operation& operation, absl::Span<const hal::Piece> pieces) const;
  static absl::Status RunCall(const hal::HostCall& call);

  const std::string name_;
  const std::vector<int> ranks_;
  const int self_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_COMM_HOST_COMMUNICATOR_H_
