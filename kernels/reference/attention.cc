#include <cmath>

#include "kernels/reference/reference.h"

namespace bowline::kernels::reference {
namespace {

// Index of element 0 of a head's vector in a [batch, sequence, heads, head_dim] tensor.
int64_t At(int64_t batch, int64_t position, int64_t head, int64_t sequence, int64_t heads, int64_t head_dim) {
  return ((batch * sequence + position) * heads + head) * head_dim;
}

double Dot(const Tensor& x, int64_t i, const Tensor& y, int64_t j, int64_t count) {
  double sum = 0;
  for (int64_t d = 0; d < count; ++d) sum += x[i + d] * y[j + d];
  return sum;
}

// The keys that a query sees: [begin, end).
struct Keys {
  int64_t begin, end;

  Keys(const AttentionSize& s, int64_t query) : begin(0), end(s.causal ? query + s.keys - s.queries + 1 : s.keys) {
    if (s.window > 0 && s.window < end) begin = end - s.window;
  }
};

// Scaled scores of one query over the keys it sees.
std::vector<double> Scores(const AttentionSize& s, const Tensor& q, const Tensor& k, int64_t b, int64_t i, int64_t h) {
  const Keys keys(s, i);
  std::vector<double> scores(keys.end - keys.begin);
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const int64_t key = At(b, keys.begin + j, h / (s.heads / s.kv_heads), s.keys, s.kv_heads, s.head_dim);
    scores[j] = s.scale * Dot(q, At(b, i, h, s.queries, s.heads, s.head_dim), k, key, s.head_dim);
  }
  return scores;
}

double LogSumExp(const std::vector<double>& x) {
  double largest = x[0], sum = 0;
  for (double value : x) largest = std::fmax(largest, value);
  for (double value : x) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

}  // namespace

AttentionOutput Attention(const AttentionSize& s, const Tensor& q, const Tensor& k, const Tensor& v) {
  AttentionOutput result{Tensor(q.size(), 0.0), Tensor(s.batch * s.heads * s.queries)};
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t i = 0; i < s.queries; ++i) {
        const std::vector<double> scores = Scores(s, q, k, b, i, h);
        const double lse = LogSumExp(scores);
        result.lse[(b * s.heads + h) * s.queries + i] = lse;
        for (std::size_t j = 0; j < scores.size(); ++j) {
          const int64_t value = At(b, Keys(s, i).begin + j, h / (s.heads / s.kv_heads), s.keys, s.kv_heads, s.head_dim);
          const int64_t out = At(b, i, h, s.queries, s.heads, s.head_dim);
          const double p = std::exp(scores[j] - lse);
          for (int64_t d = 0; d < s.head_dim; ++d) result.out[out + d] += p * v[value + d];
        }
      }
    }
  }
  return result;
}

AttentionGradients AttentionBackward(const AttentionSize& s, const Tensor& q, const Tensor& k, const Tensor& v,
                                     const Tensor& dout) {
  AttentionGradients g{Tensor(q.size(), 0.0), Tensor(k.size(), 0.0), Tensor(v.size(), 0.0)};
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t i = 0; i < s.queries; ++i) {
        const std::vector<double> scores = Scores(s, q, k, b, i, h);
        const double lse = LogSumExp(scores);
        const int64_t query = At(b, i, h, s.queries, s.heads, s.head_dim);
        std::vector<double> p(scores.size()), dp(scores.size());
        double mean = 0;  // sum_j p_j dp_j: the Jacobian of softmax is diag(p) - p p^T
        for (std::size_t j = 0; j < scores.size(); ++j) {
          const int64_t key = At(b, Keys(s, i).begin + j, h / (s.heads / s.kv_heads), s.keys, s.kv_heads, s.head_dim);
          p[j] = std::exp(scores[j] - lse);
          dp[j] = Dot(dout, query, v, key, s.head_dim);
          mean += p[j] * dp[j];
        }
        for (std::size_t j = 0; j < scores.size(); ++j) {
          const int64_t key = At(b, Keys(s, i).begin + j, h / (s.heads / s.kv_heads), s.keys, s.kv_heads, s.head_dim);
          const double ds = p[j] * (dp[j] - mean);
          for (int64_t d = 0; d < s.head_dim; ++d) {
            g.dq[query + d] += s.scale * ds * k[key + d];
            g.dk[key + d] += s.scale * ds * q[query + d];
            g.dv[key + d] += p[j] * dout[query + d];
          }
        }
      }
    }
  }
  return g;
}

}  // namespace bowline::kernels::reference
