#include <algorithm>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/paged/paged_sequences.h"
#include "kernels/signatures/paged_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

// On the caller alone: a batch has hundreds of rows.
class SequencePositions : public Kernel {
 public:
  explicit SequencePositions(const SequencePositionsShape& shape) : shape_(shape) {}

  void Run(absl::Span<void* const> arguments, void*) const override {
    int32_t* positions = static_cast<int32_t*>(arguments[2]);
    std::fill_n(positions, shape_.tokens, 0);
    ForEachSequence(static_cast<const int32_t*>(arguments[0]), static_cast<const int32_t*>(arguments[1]),
                    shape_.sequences, shape_.tokens, [&](SequenceRows sequence) {
                      for (int64_t i = std::max<int64_t>(0, -sequence.position); i < sequence.count; ++i) {
                        positions[sequence.begin + i] = static_cast<int32_t>(sequence.position + i);
                      }
                    });
  }

 private:
  const SequencePositionsShape shape_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const SequencePositionsShape shape, ParseSequencePositions(signature));
  return std::make_unique<SequencePositions>(shape);
}

}  // namespace

KernelDefinition SequencePositionsDefinition() {
  return {"sequence_positions",
          "positions[t] = lengths[r] - (rows[r+1] - rows[r]) + (t - rows[r]) for rows[r] <= t < rows[r+1], or 0 where "
          "that is negative, and 0 for rows of no sequence; rows [R+1], lengths [R], positions [T], all i32; rows that "
          "do not ascend within T count as the nearest that do",
          &Create};
}

}  // namespace bowline::kernels
