#include "kernels/cpu/definitions.h"
#include "kernels/cpu/matmul/packed_matrix.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/signatures/matmul_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

constexpr double kNsPerElement = 0.5;  // measured: 0.3 to 0.9

class PackMatrixKernel : public Kernel {
 public:
  PackMatrixKernel(const PackShape& shape, DType dtype, int threads)
      : table_(BOWLINE_SELECT_BF16_ISA(kPackMatrix)), pack_(table_.Of(dtype)), shape_(shape), loop_(threads) {}

  void Run(absl::Span<void* const> arguments, void*) const override {
    const int64_t panels = (shape_.n + table_.tile_n - 1) / table_.tile_n;
    const double panel_ns = kNsPerElement * static_cast<double>(shape_.k) * table_.tile_n;
    loop_.Run(panels, panel_ns, [&](int64_t begin, int64_t end) {
      pack_(shape_, arguments[0], begin, end, static_cast<float*>(arguments[1]));
    });
  }

 private:
  const PackMatrixTable& table_;
  const PackPanels pack_;
  const PackShape shape_;
  const ParallelLoop loop_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const PackShape shape, ParsePackMatrix(signature));
  BOWLINE_KERNEL_RETURN_IF_ERROR(CheckPacked(signature, 1, shape.k, shape.n, ActiveIsa()));
  return std::make_unique<PackMatrixKernel>(shape, signature.arguments[0].dtype, signature.threads);
}

}  // namespace

KernelDefinition PackMatrixDefinition() {
  return {"pack_matrix",
          "packed = B[k,n] in the order in which matmul with b_packed reads it, both f32 or, with AVX512-BF16, bf16; "
          "ints k, n, b_strides [b,k,n] in elements, of which the first is not used; packed has round_up(n, 48) * k "
          "elements, of bf16 round_up(n, 48) * round_up(k, 32)",
          &Create};
}

}  // namespace bowline::kernels
