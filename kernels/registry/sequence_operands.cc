#include "kernels/registry/sequence_operands.h"

#include <array>
#include <utility>

namespace bowline::kernels {
namespace {

constexpr std::array<std::pair<std::string_view, SequenceOperands>, 3> kKernels = {
    {{"cache_write", {.rows = 2, .lengths = 3, .step = 1, .blocks = 4, .cache = 0}},
     {"paged_attention", {.rows = 3, .lengths = 4, .step = 0, .blocks = 5, .cache = 1}},
     {"sequence_positions", {.rows = 0, .lengths = 1, .step = 2, .blocks = std::nullopt, .cache = std::nullopt}}}};

}  // namespace

const SequenceOperands* FindSequenceOperands(std::string_view kernel) {
  for (const auto& [name, operands] : kKernels) {
    if (name == kernel) return &operands;
  }
  return nullptr;
}

}  // namespace bowline::kernels
