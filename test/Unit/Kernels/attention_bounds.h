#ifndef BOWLINE_TEST_UNIT_KERNELS_ATTENTION_BOUNDS_H_
#define BOWLINE_TEST_UNIT_KERNELS_ATTENTION_BOUNDS_H_

// How far attention on bf16 tensors may be from the exact result, element by element, before the result is stored.
//
// Products of bf16 are exact in f32, and sums, exponentials and statistics are f32; their errors are left to the
// caller. These values are rounded to bf16, by a factor 1 + d with |d| <= u = 2^-8:
//
//   out[i]      = sum_j p (1 + d) v[j]: an error of sum_j d p v[j], where p stands for p[i,j]
//   dv[j]       = sum_i p (1 + d) dout[i]: the same over i
//   delta[i]    = dout[i] . out[i], of `out` as it is stored: an error of at most e[i] = |dout[i]| . bound, where
//                 the bound is that of out and u |out| for storing it
//   dq[i]       = scale sum_j ds (1 + d) k[j], with ds wrong by p e[i]: errors of scale sum_j d ds k[j] and,
//                 because e[i] does not depend on j, scale e[i] |sum_j p k[j]|
//   dk[j]       = scale sum_i ds (1 + d) q[i]: errors of scale sum_i d ds q[i] and at most scale sum_i p e[i] |q[i]|
//
// Where query heads that share keys have a gradient each, rounded before they are added (rounds_heads), that of dk and
// dv adds u times each head's share, as it is computed.
//
// The first are sums of d x. In the worst case that is u sum |x|. But the d of many different numbers are as good as
// independent of zero mean (N. Higham and T. Mary, "A New Approach to Probabilistic Rounding Error Analysis", 2019), so
// that by Hoeffding's inequality more than 7 u sqrt(sum x^2) has a chance of 2 exp(-7^2 / 2) < 5e-11. The smaller one
// counts. p and ds are rounded only where the machine multiplies pairs of bf16.

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/stored_testing.h"

namespace bowline::kernels::testing {

struct AttentionBounds {
  std::vector<double> out, dq, dk, dv;
};

class RoundedSum {
 public:
  void Add(double x) {
    absolute_ += std::abs(x);
    squares_ += x * x;
  }
  double Bound() const { return 0x1p-8 * std::min(absolute_, 7 * std::sqrt(squares_)); }

 private:
  double absolute_ = 0, squares_ = 0;
};

// Of one query head, whose rows are `Row`s of the tensors.
class HeadBounds {
 public:
  HeadBounds(const reference::AttentionSize& s, bool rounds_weights, bool rounds_heads, int64_t batch, int64_t head)
      : s_(s), rounds_(rounds_weights), rounds_heads_(rounds_heads), batch_(batch), head_(head) {}

  // Adds to the bounds of dk and dv, which heads of a group share.
  void Add(const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v,
           const std::vector<double>& dout, const std::vector<double>& out, const std::vector<double>& lse,
           AttentionBounds& bounds) const {
    const int64_t dim = s_.head_dim;
    std::vector<RoundedSum> dk(s_.keys * dim), dv(s_.keys * dim);
    std::vector<double> of_delta_in_dk(s_.keys * dim), dk_share(s_.keys * dim), dv_share(s_.keys * dim);
    for (int64_t i = 0; i < s_.queries; ++i) {
      const int64_t row = Query(i), seen = s_.causal ? i + s_.keys - s_.queries + 1 : s_.keys;
      const int64_t first = s_.window > 0 ? std::max<int64_t>(0, seen - s_.window) : 0;
      std::vector<double> p(seen), mean_k(dim);
      std::vector<RoundedSum> of_out(dim), of_dq(dim);
      for (int64_t j = first; j < seen; ++j) {
        p[j] = std::exp(s_.scale * Dot(q, row, k, Key(j)) - lse[(batch_ * s_.heads + head_) * s_.queries + i]);
        for (int64_t d = 0; d < dim; ++d) {
          of_out[d].Add(p[j] * v[Key(j) + d]);
          mean_k[d] += p[j] * k[Key(j) + d];
          dv[j * dim + d].Add(p[j] * dout[row + d]);
          dv_share[j * dim + d] += p[j] * dout[row + d];
        }
      }
      double of_delta = 0;
      for (int64_t d = 0; d < dim; ++d) {
        const double stored = bounds.out[row + d] = rounds_ ? of_out[d].Bound() : 0;
        of_delta += std::abs(dout[row + d]) * (stored + 0x1p-8 * (std::abs(out[row + d]) + stored));
      }
      const double delta = Dot(dout, row, out, row);
      for (int64_t j = first; j < seen; ++j) {
        const double ds = p[j] * (Dot(dout, row, v, Key(j)) - delta);
        for (int64_t d = 0; d < dim; ++d) {
          of_dq[d].Add(ds * k[Key(j) + d]);
          dk[j * dim + d].Add(ds * q[row + d]);
          dk_share[j * dim + d] += s_.scale * ds * q[row + d];
          of_delta_in_dk[j * dim + d] += std::abs(s_.scale) * p[j] * of_delta * std::abs(q[row + d]);
        }
      }
      for (int64_t d = 0; d < dim; ++d) {
        bounds.dq[row + d] = std::abs(s_.scale) * (of_delta * std::abs(mean_k[d]) + (rounds_ ? of_dq[d].Bound() : 0));
      }
    }
    for (int64_t j = 0; j < s_.keys; ++j) {
      for (int64_t d = 0; d < dim; ++d) {
        const int64_t at = j * dim + d;
        const double of_dk = of_delta_in_dk[at] + (rounds_ ? std::abs(s_.scale) * dk[at].Bound() : 0);
        const double of_dv = rounds_ ? dv[at].Bound() : 0;
        const double unit = rounds_heads_ ? 0x1p-8 : 0;
        bounds.dk[Key(j) + d] += of_dk + unit * (std::abs(dk_share[at]) + of_dk);
        bounds.dv[Key(j) + d] += of_dv + unit * (std::abs(dv_share[at]) + of_dv);
      }
    }
  }

 private:
  int64_t Query(int64_t i) const { return ((batch_ * s_.queries + i) * s_.heads + head_) * s_.head_dim; }
  int64_t Key(int64_t j) const {
    return ((batch_ * s_.keys + j) * s_.kv_heads + head_ / (s_.heads / s_.kv_heads)) * s_.head_dim;
  }
  double Dot(const std::vector<double>& x, int64_t i, const std::vector<double>& y, int64_t j) const {
    double sum = 0;
    for (int64_t d = 0; d < s_.head_dim; ++d) sum += x[i + d] * y[j + d];
    return sum;
  }

  const reference::AttentionSize& s_;
  bool rounds_, rounds_heads_;
  int64_t batch_, head_;
};

inline AttentionBounds BoundAttention(const reference::AttentionSize& s, bool rounds_weights,
                                      const std::vector<double>& q, const std::vector<double>& k,
                                      const std::vector<double>& v, const std::vector<double>& dout,
                                      const reference::AttentionOutput& exact, bool rounds_heads = false) {
  const std::vector<double> like_q(q.size()), like_k(k.size());
  AttentionBounds bounds{like_q, like_q, like_k, like_k};
  for (int64_t batch = 0; batch < s.batch; ++batch) {
    for (int64_t head = 0; head < s.heads; ++head) {
      HeadBounds(s, rounds_weights, rounds_heads, batch, head).Add(q, k, v, dout, exact.out, exact.lse, bounds);
    }
  }
  return bounds;
}

// All but the roundings that `bounds` count is computed in f32, and stored once; f32 has no such bounds.
inline void ExpectWithin(const char* name, DType dtype, const Stored& actual, const std::vector<double>& expected,
                         const std::vector<double>& bounds) {
  constexpr double kF32 = 1e-5;
  if (dtype == DType::kF32) {
    EXPECT_LE(ScaledError(actual.Values(), expected), kF32) << name;
    return;
  }
  const Floats values = actual.Values();
  double magnitude = 1;
  for (double value : expected) magnitude = std::max(magnitude, std::abs(value));
  int64_t wrong = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double bound = bounds[i] + kF32 * magnitude, stored = StoringError(dtype, std::abs(expected[i]) + bound);
    if (!(std::abs(values[i] - expected[i]) <= bound + stored) && wrong++ == 0) {
      ADD_FAILURE() << name << "[" << i << "] is " << values[i] << ", expected " << expected[i] << " within " << bound
                    << " and its own rounding";
    }
  }
  EXPECT_EQ(wrong, 0) << name << ", of " << expected.size();
}

}  // namespace bowline::kernels::testing

#endif  // BOWLINE_TEST_UNIT_KERNELS_ATTENTION_BOUNDS_H_
