#ifndef BOWLINE_KERNELS_REFERENCE_REFERENCE_H_
#define BOWLINE_KERNELS_REFERENCE_REFERENCE_H_

// References of the kernels, in f64 and in the plainest way. They are written from the definitions and share no code
// with the fast versions; all tensors are dense and row-major.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bowline::kernels::reference {

using Tensor = std::vector<double>;

// c[batch, m, n] (+)= sum_k a[batch, m, k] b[batch, k, n] at the given strides, in elements.
void Matmul(int64_t batch, int64_t m, int64_t n, int64_t k, const std::array<int64_t, 3>& a_strides,
            const std::array<int64_t, 3>& b_strides, const std::array<int64_t, 3>& c_strides, bool accumulate,
            const Tensor& a, const Tensor& b, Tensor& c);

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) (Hendrycks and Gimpel, 2016), and its derivative.
double Gelu(double x);
double GeluSlope(double x);

// sums[rows] = sum_k matrix[rows, k] at the given strides, in elements.
Tensor SumsOverK(int64_t rows, int64_t k, int64_t row_stride, int64_t k_stride, const Tensor& matrix);

struct AttentionSize {
  int64_t batch, queries, keys, heads, kv_heads, head_dim;
  bool causal;
  double scale;
  int64_t window = 0;  // keys up to the query's own that it sees, with `causal`; 0: all of these
};

struct AttentionOutput {
  Tensor out;  // [batch, queries, heads, head_dim]
  Tensor lse;  // [batch, heads, queries]
};
AttentionOutput Attention(const AttentionSize& size, const Tensor& q, const Tensor& k, const Tensor& v);

struct AttentionGradients {
  Tensor dq, dk, dv;
};
AttentionGradients AttentionBackward(const AttentionSize& size, const Tensor& q, const Tensor& k, const Tensor& v,
                                     const Tensor& dout);

Tensor GatherRows(const Tensor& table, int64_t columns, const std::vector<int32_t>& ids);
Tensor ScatterAddRows(const Tensor& updates, int64_t rows, int64_t columns, const std::vector<int32_t>& ids);

struct Angles {
  Tensor cos, sin;  // [positions, half]
};
// Frequencies are scaled by the formula of the Hugging Face library for "llama3", or all divided where `original` is 0.
struct RopeScaling {
  double factor = 1, original = 0, low = 0, high = 0;
};
Angles RopeAngles(const std::vector<int32_t>& positions, int64_t half, double theta, const RopeScaling& scaling = {});

}  // namespace bowline::kernels::reference

#endif  // BOWLINE_KERNELS_REFERENCE_REFERENCE_H_
