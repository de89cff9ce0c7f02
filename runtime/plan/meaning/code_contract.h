#ifndef BOWLINE_RUNTIME_PLAN_MEANING_CODE_CONTRACT_H_
#define BOWLINE_RUNTIME_PLAN_MEANING_CODE_CONTRACT_H_

// A contract binds generated code to the plan's description of it: its generator states the contract of each kernel
// that calls it (fbs::Code.contracts), and the loader computes it again from the kernel. Code of another symbol, a
// launch of fewer pieces, arguments of other types or sizes and in-place pairs that nobody generated code for have
// another contract.

#include <cstdint>

#include "absl/types/span.h"
#include "runtime/base/sha256.h"
#include "runtime/plan/meaning/digest.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// The digest of all that generated code relies on: of a generated kernel its symbol, geometry, arguments with their
// alignments, in-place pairs, dependences and rows that it may leave out. An epilogue of a registered kernel gets the
// arguments behind the two operands of its product and tiles of an m by n result; its contract has no more of the
// kernel.
Digest ContractOf(const fbs::Kernel& kernel);
Digest ContractOf(const fbs::KernelT& kernel);

// fbs::Code.hash: sha256 of the code's data, followed by its contracts in their order, each as two little-endian
// numbers of 64 bits.
Sha256Digest CodeHash(absl::Span<const uint8_t> data, absl::Span<const fbs::ValueDigest> contracts);

// Returns whether a kernel calls generated code.
bool CallsGeneratedCode(const fbs::Kernel& kernel);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_PLAN_MEANING_CODE_CONTRACT_H_
