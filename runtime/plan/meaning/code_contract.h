#ifndef BOWLINE_RUNTIME_PLAN_MEANING_CODE_CONTRACT_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_CODE_CONTRACT_H_

// A contract is a digest that binds generated code to the plan's description of it. The code's generator states the
// contract of each kernel that calls the code (fbs::Code.contracts). The loader computes the contract again from the
// kernel. The two differ if the kernel has another symbol, fewer pieces per launch, arguments of other types or sizes,
// or in-place pairs for which the code was not generated.

#include <cstdint>

#include "absl/types/span.h"
#include "runtime/base/sha256.h"
#include "runtime/plan/meaning/digest.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// The digest of everything that generated code relies on. For a generated kernel: symbol, geometry, arguments with
// their alignments, in-place pairs, dependences, and the rows that it may leave out. The epilogue of a registered
// kernel gets tiles of an m by n product, and the arguments behind the product's two operands. Its contract leaves out
// these operands, the workspace, and all attributes but m and n.
Digest ContractOf(const fbs::Kernel& kernel);
Digest ContractOf(const fbs::KernelT& kernel);

// fbs::Code.hash: sha256 of the code's data, followed by its contracts in their order, each as two little-endian
// numbers of 64 bits.
Sha256Digest CodeHash(absl::Span<const uint8_t> data, absl::Span<const fbs::ValueDigest> contracts);

// Returns whether a kernel calls generated code.
bool CallsGeneratedCode(const fbs::Kernel& kernel);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_CODE_CONTRACT_H_
