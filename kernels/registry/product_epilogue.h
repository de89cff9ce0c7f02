#ifndef BOWLINE_KERNELS_REGISTRY_PRODUCT_EPILOGUE_H_
#define BOWLINE_KERNELS_REGISTRY_PRODUCT_EPILOGUE_H_

// The epilogues that a library may compute together with `matmul`. The kernel's attribute `epilogue` names one of them.
// Code generated for a product (registry.h, Signature::has_epilogue) is different: it has no name.

#include <array>
#include <string_view>

namespace bowline::kernels {

// The attribute of `matmul`, a text.
inline constexpr std::string_view kEpilogue = "epilogue";

// With A [m, k], B [k, n] and P = A B in f32, the kernel's arguments are, in this order,
//   A, B             read
//   bias [n]         read, where `bias`
//   input [m, n]     read, where `gradient`
//   C [m, n]         written
//   kept [m, n]      written, where `keeps`
//   sums [m] or [n]  written, where `sums`
// dense, all but A and B with the type of C. x = P + bias, or P without one; C is x, gelu(x) where `gelu`, and
// P * gelu'(input) where `gradient`; `kept` is x. Each result is rounded once, from f32. Sums are over k: of A for each
// row, 'a', or of B for each column, 'b'. gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), and gelu' is
// its derivative.
struct ProductEpilogue {
  std::string_view name;
  bool bias = false, gelu = false, keeps = false, gradient = false;
  char sums = 0;

  friend bool operator==(const ProductEpilogue&, const ProductEpilogue&) = default;
};

inline constexpr std::array<ProductEpilogue, 7> kProductEpilogues = {{
    {.name = "bias", .bias = true},
    {.name = "bias_gelu", .bias = true, .gelu = true},
    {.name = "bias_gelu_kept", .bias = true, .gelu = true, .keeps = true},
    {.name = "gelu", .gelu = true},
    {.name = "gelu_gradient", .gradient = true},
    {.name = "sum_a", .sums = 'a'},
    {.name = "sum_b", .sums = 'b'},
}};

// The step of the compiler that asks for it, which --disable-step leaves out.
constexpr std::string_view StepOf(const ProductEpilogue& epilogue) {
  return epilogue.sums != 0 ? "library-sums" : "library-epilogues";
}

// Null where there is none of the name.
constexpr const ProductEpilogue* FindProductEpilogue(std::string_view name) {
  for (const ProductEpilogue& epilogue : kProductEpilogues) {
    if (epilogue.name == name) return &epilogue;
  }
  return nullptr;
}

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_REGISTRY_PRODUCT_EPILOGUE_H_
