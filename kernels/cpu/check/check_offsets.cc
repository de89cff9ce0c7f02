#include "kernels/cpu/definitions.h"
#include "kernels/signatures/check_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

// Groups are few: no work for several threads.
class CheckOffsets : public Kernel {
 public:
  explicit CheckOffsets(const DataCheckShape& shape) : shape_(shape) {}

  void Run(absl::Span<void* const> arguments, void*) const override {
    const int32_t* offsets = static_cast<const int32_t*>(arguments[0]);
    int32_t* fault = static_cast<int32_t*>(arguments[1]);
    if (fault[0] != 0) return;  // the first one is told
    int32_t before = 0;
    for (int64_t i = 0; i < shape_.count; before = offsets[i++]) {
      if (offsets[i] >= before && offsets[i] <= shape_.rows) continue;
      fault[0] = static_cast<int32_t>(i) + 1;
      fault[1] = offsets[i];
      return;
    }
  }

 private:
  const DataCheckShape shape_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const DataCheckShape shape, ParseCheckOffsets(signature));
  return std::make_unique<CheckOffsets>(shape);
}

}  // namespace

KernelDefinition CheckOffsetsDefinition() {
  return {
      "check_offsets",
      "where fault[0] is 0 it becomes 1 + the index of the first of 'offsets' [G] that is below the one before it, or "
      "0, or above int attribute rows, and fault[1] that offset; they stay where there is none; i32",
      &Create};
}

}  // namespace bowline::kernels
