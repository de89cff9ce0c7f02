#ifndef BOWLINE_KERNELS_REGISTRY_KERNEL_TRAITS_H_
#define BOWLINE_KERNELS_REGISTRY_KERNEL_TRAITS_H_

// Facts about the kernels of the registry that hold on every device. Each kernel states its own facts beside its
// signature (kernels/signatures), in the function NameTraits that CMake registers (bowline_register_kernels).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/registry/data_check.h"
#include "kernels/registry/registry.h"
#include "kernels/registry/sequence_operands.h"
#include "kernels/registry/valid_rows.h"

namespace bowline::kernels {

struct KernelTraits {
  // The check that must run before the kernel, because the kernel's data can be wrong.
  std::optional<DataCheck> data_check = std::nullopt;
  // The rows that the usual form of the kernel skips, and those that the form with kLeavesRowsOut skips. Without a
  // value the form uses all rows of its arguments, or does not exist.
  std::optional<ValidRows> valid_rows = std::nullopt, left_out_rows = std::nullopt;
  // The operands that say where the rows of sequences and the blocks of their caches are.
  std::optional<SequenceOperands> sequences = std::nullopt;
  // Returns OK if a launch with a signature that a device accepts writes every element of each argument that it writes
  // and does not read; kInvalidArgument names the kernel and the part that it leaves out. Null: every such launch does.
  absl::Status (*coverage)(const Signature& signature) = nullptr;
  // Of a kernel that checks data and writes kFaultWords words: a sentence about the two words, of which the first is
  // not 0. Null: the kernel computes something else.
  std::string (*describe_fault)(int32_t place, int32_t value) = nullptr;
};

// Null: the registry has no such kernel.
const KernelTraits* FindTraits(std::string_view kernel);

// Calls the kernel's KernelTraits::coverage; OK where it has none.
absl::Status CheckCoverage(const Signature& signature);

#define BOWLINE_KERNEL(Name, name) KernelTraits Name##Traits();
#include "kernels/registry/kernels.inc"  // IWYU pragma: keep
#undef BOWLINE_KERNEL

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_REGISTRY_KERNEL_TRAITS_H_
