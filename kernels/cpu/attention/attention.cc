#include "kernels/cpu/attention/attention.h"

#include <array>
#include <initializer_list>
#include <memory>
#include <vector>

#include "kernels/cpu/attention/attention_division.h"
#include "kernels/cpu/definitions.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/signatures/attention_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

class AttentionForward : public Kernel {
 public:
  AttentionForward(const AttentionShape& shape, int threads, const AttentionForwardTable& table)
      : shape_(shape), table_(table), threads_(threads), loop_(threads) {}

  size_t ScratchBytes() const override { return ForwardScratchBytes(shape_, threads_, table_.sizes); }

  void Run(absl::Span<void* const> x, void* scratch) const override {
    const AttentionForwardArguments arguments{x[0], x[1], x[2], x[3], static_cast<float*>(x[4])};
    loop_.RunMembers(units_, [&](int member, int64_t begin, int64_t end) {
      table_.run(shape_, arguments, begin, end, static_cast<float*>(scratch) + member * scratch_floats_);
    });
  }

 private:
  AttentionShape shape_;
  const AttentionForwardTable& table_;
  int threads_;
  ParallelLoop loop_;
  int64_t units_ = table_.sizes.units(shape_);
  size_t scratch_floats_ = table_.sizes.scratch_floats(shape_);
};

class AttentionBackward : public Kernel {
 public:
  AttentionBackward(const AttentionShape& shape, int threads, const AttentionBackwardTable& table)
      : shape_(shape), table_(table), threads_(threads), loops_{ParallelLoop(threads), ParallelLoop(threads)} {}

  size_t ScratchBytes() const override { return BackwardScratchBytes(shape_, threads_, parts_, table_.sizes); }

  void Run(absl::Span<void* const> x, void* scratch) const override {
    const AttentionBackwardArguments arguments{x[0], x[1], x[2], x[3], static_cast<const float*>(x[4]),
                                               x[5], x[6], x[7], x[8]};
    for (size_t i = 0; i < parts_.size(); ++i) {
      const BackwardPart part = parts_[i];
      loops_[i].RunMembers(table_.sizes.units(shape_, part), [&](int member, int64_t begin, int64_t end) {
        table_.run(shape_, part, arguments, begin, end, static_cast<float*>(scratch) + member * scratch_floats_);
      });
    }
  }

 private:
  AttentionShape shape_;
  const AttentionBackwardTable& table_;
  int threads_;
  std::array<ParallelLoop, 2> loops_;  // one for each of `parts_`
  std::vector<BackwardPart> parts_ = BackwardPartsFor(shape_, threads_, table_.sizes);
  size_t scratch_floats_ = BackwardScratchFloats(shape_, parts_, table_.sizes);
};

// The first of `tables` whose kernel does with the workspace, else the last.
template <typename Attention, typename Table>
std::unique_ptr<Kernel> Choose(const AttentionShape& shape, const Signature& signature,
                               std::initializer_list<const Table*> tables) {
  std::unique_ptr<Kernel> kernel;
  for (const Table* table : tables) {
    kernel = std::make_unique<Attention>(shape, signature.threads, *table);
    if (kernel->ScratchBytes() <= signature.scratch_limit) break;
  }
  return kernel;
}

// Of an instruction set's forms of a pass: AMX's tiles, single elements or pairs of bf16.
template <typename Attention, typename Table>
std::unique_ptr<Kernel> ChooseForm(const AttentionShape& shape, const Signature& signature, const Table* tiles,
                                   const Table& elements, const Table& pairs) {
  if (AttentionPrefersPairs(shape, ActiveIsa())) return Choose<Attention, Table>(shape, signature, {&pairs});
  if (tiles != nullptr) return Choose<Attention, Table>(shape, signature, {tiles, &elements, &pairs});
  if (AttentionMayMultiplyBf16(shape)) return Choose<Attention, Table>(shape, signature, {&elements, &pairs});
  return Choose<Attention, Table>(shape, signature, {&elements});
}

#if defined(BOWLINE_HAVE_X86_VARIANTS)
#define BOWLINE_TILES_OF(name, shape) (AttentionIsForAmx(shape, ActiveIsa()) ? &isa_amx::name : nullptr)
#else
#define BOWLINE_TILES_OF(name, shape) nullptr
#endif

absl::StatusOr<std::unique_ptr<Kernel>> CreateForward(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const AttentionShape shape, ParseAttentionForward(signature));
  const AttentionForwardTable* tiles = BOWLINE_TILES_OF(kAttentionForwardBf16, shape);
  return ChooseForm<AttentionForward>(shape, signature, tiles, BOWLINE_SELECT_ISA(kAttentionForward),
                                      BOWLINE_SELECT_BF16_ISA(kAttentionForward));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateBackward(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const AttentionShape shape, ParseAttentionBackward(signature));
  const AttentionBackwardTable* tiles = BOWLINE_TILES_OF(kAttentionBackwardBf16, shape);
  return ChooseForm<AttentionBackward>(shape, signature, tiles, BOWLINE_SELECT_ISA(kAttentionBackward),
                                       BOWLINE_SELECT_BF16_ISA(kAttentionBackward));
}

}  // namespace

KernelDefinition AttentionForwardDefinition() {
  return {
      "attention_forward",
      "out, lse = softmax(scale q k^T) v: q, out [B,S,H,D], k, v [B,T,KV,D] with KV dividing H, of one floating-point "
      "type, "
      "lse [B,H,S] f32; int causal: query i sees keys j <= i + T - S; optional int window, with causal: of these the "
      "last window alone; float scale; summed in f32; same bits for every number of threads",
      &CreateForward};
}

KernelDefinition AttentionBackwardDefinition() {
  return {
      "attention_backward",
      "dq, dk, dv of attention_forward from q, k, v, out, lse, dout, all f32 or all but lse bf16; int causal, optional "
      "int window, float scale; summed in f32; same bits for every number of threads",
      &CreateBackward};
}

}  // namespace bowline::kernels
