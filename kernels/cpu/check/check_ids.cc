#include "kernels/cpu/definitions.h"
#include "kernels/signatures/check_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

// Reading the ids takes so little time beside the gather of rows that it has one thread.
class CheckIds : public Kernel {
 public:
  explicit CheckIds(const DataCheckShape& shape) : shape_(shape) {}

  void Run(absl::Span<void* const> arguments, void*) const override {
    const int32_t* ids = static_cast<const int32_t*>(arguments[0]);
    int32_t* fault = static_cast<int32_t*>(arguments[1]);
    if (fault[0] != 0 || AreRows(ids)) return;  // the first one is told
    int64_t first = 0;
    while (IsRow(ids[first])) ++first;
    fault[0] = static_cast<int32_t>(first) + 1;
    fault[1] = ids[first];
  }

 private:
  bool IsRow(int32_t id) const { return static_cast<uint32_t>(id) < static_cast<uint32_t>(shape_.rows); }

  // Without branches, so that it is a loop over vectors.
  bool AreRows(const int32_t* ids) const {
    uint32_t largest = 0;
    for (int64_t i = 0; i < shape_.count; ++i) {
      largest = static_cast<uint32_t>(ids[i]) > largest ? static_cast<uint32_t>(ids[i]) : largest;
    }
    return largest < static_cast<uint32_t>(shape_.rows);
  }

  const DataCheckShape shape_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const DataCheckShape shape, ParseCheckIds(signature));
  return std::make_unique<CheckIds>(shape);
}

}  // namespace

KernelDefinition CheckIdsDefinition() {
  return {"check_ids",
          "where fault[0] is 0 it becomes 1 + the index of the first of 'ids' [N...] that is below 0 or not below int "
          "attribute rows, and fault[1] that id; they stay where there is none; i32",
          &Create};
}

}  // namespace bowline::kernels
