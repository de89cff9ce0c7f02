#include "runtime/drivers/cuda/cudnn/attention_graph.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

using kernels::AttentionShape;
using Tensor = CudnnGraph::Tensor;
using Extents = CudnnGraph::Extents;

constexpr cudnnDataType_t kStored = CUDNN_DATA_BFLOAT16;
// Hidden scores. Infinity would make a NaN of a row of them, which the library may meet in a block.
constexpr float kHidden = std::numeric_limits<float>::lowest();

// The part that both graphs share: it describes the registry's tensors [batch, rows, heads, head_dim] to cuDNN as
// [batch, heads, rows, head_dim].
class Description {
 public:
  // `part` is the shape of the computed part of a `whole`, in whose memory the part lies.
  Description(CudnnGraph& graph, const AttentionShape& part, const AttentionShape& whole)
      : g_(graph), s_(part), whole_(whole) {}

  Tensor Queries() {
    return g_.InMemory(kStored, {s_.batch, s_.heads, s_.queries, s_.head_dim}, RowsOf(s_.queries, whole_.heads));
  }
  Tensor Keys() {
    return g_.InMemory(kStored, {s_.batch, s_.kv_heads, s_.keys, s_.head_dim}, RowsOf(s_.keys, whole_.kv_heads));
  }
  // The same memory, with columns of keys.
  Tensor TransposedKeys() {
    const Extents rows = RowsOf(s_.keys, whole_.kv_heads);
    return g_.InMemory(kStored, {s_.batch, s_.kv_heads, s_.head_dim, s_.keys}, {rows[0], rows[1], rows[3], rows[2]});
  }
  Tensor Lse() {
    return g_.InMemory(CUDNN_DATA_FLOAT, {s_.batch, s_.heads, s_.queries, 1},
                       {whole_.heads * s_.queries, s_.queries, 1, 1});
  }

  Tensor Scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return g_.Virtual(type, {s_.batch, s_.heads, s_.queries, s_.keys});
  }
  Tensor OfRows() { return g_.Virtual(CUDNN_DATA_FLOAT, {s_.batch, s_.heads, s_.queries, 1}); }
  // A view of scores with a row for each key, rounded as the next product's operand.
  Tensor Transposed(Tensor scores) {
    const Tensor out = g_.Virtual(kStored, {s_.batch, s_.heads, s_.keys, s_.queries},
                                  {s_.heads * s_.queries * s_.keys, s_.queries * s_.keys, 1, s_.keys});
    g_.Reshape(scores, out);
    return out;
  }

  Tensor Scaled(Tensor scores) {
    const Tensor out = Scores();
    g_.Pointwise(CUDNN_POINTWISE_MUL, {scores, g_.Number(s_.scale)}, out);
    return out;
  }

  // Keys that a query does not see have the score kHidden.
  Tensor Masked(Tensor scores) {
    // One query sees all keys up to the last.
    if (s_.causal && s_.queries > 1) scores = Causal(scores);
    return s_.window > 0 ? Windowed(scores) : scores;
  }

 private:
  Extents RowsOf(int64_t rows, int64_t heads) const {
    return {rows * heads * s_.head_dim, s_.head_dim, heads * s_.head_dim, 1};
  }

  Tensor IndexOf(int64_t axis, Tensor scores) {
    const Tensor out = Scores(CUDNN_DATA_INT32);
    g_.Index(axis, scores, out);
    return out;
  }
  Tensor Combined(cudnnPointwiseMode_t mode, Tensor a, Tensor b, cudnnDataType_t type) {
    const Tensor out = Scores(type);
    g_.Pointwise(mode, {a, b}, out, type);
    return out;
  }
  Tensor Select(Tensor scores, Tensor seen) {
    const Tensor out = Scores();
    g_.Pointwise(CUDNN_POINTWISE_BINARY_SELECT, {scores, g_.Number(kHidden), seen}, out);
    return out;
  }

  // query + keys - queries >= key
  Tensor Causal(Tensor scores) {
    Tensor row = IndexOf(2, scores);
    const Tensor column = IndexOf(3, scores);
    if (s_.keys != s_.queries) {
      const Tensor keys = g_.Number(static_cast<int32_t>(s_.keys));
      row = Combined(CUDNN_POINTWISE_ADD, row, keys, CUDNN_DATA_INT32);
      const Tensor queries = g_.Number(static_cast<int32_t>(s_.queries));
      row = Combined(CUDNN_POINTWISE_SUB, row, queries, CUDNN_DATA_INT32);
    }
    return Select(scores, Combined(CUDNN_POINTWISE_CMP_GE, row, column, CUDNN_DATA_BOOLEAN));
  }

  // key + window - (keys - queries) > query. Indices are f32 then, as the library's patterns have them: exact, since
  // they are below 2^24.
  Tensor Windowed(Tensor scores) {
    const Tensor row = IndexOf(2, scores);
    Tensor column = IndexOf(3, scores);
    const Tensor window = g_.Number(static_cast<float>(s_.window - s_.keys + s_.queries));
    column = Combined(CUDNN_POINTWISE_ADD, column, window, CUDNN_DATA_FLOAT);
    return Select(scores, Combined(CUDNN_POINTWISE_CMP_GT, column, row, CUDNN_DATA_BOOLEAN));
  }

  CudnnGraph& g_;
  const AttentionShape& s_;
  const AttentionShape& whole_;
};

AttentionShape ShapeOf(const AttentionShape& whole, AttentionPart part) {
  AttentionShape s = whole;
  s.batch = part.batches;
  s.kv_heads = part.kv_heads;
  s.heads = whole.heads / whole.kv_heads * part.kv_heads;
  return s;
}

std::vector<int64_t> NumbersOf(std::initializer_list<Tensor> tensors) {
  std::vector<int64_t> numbers;
  for (const Tensor tensor : tensors) numbers.push_back(CudnnGraph::NumberOf(tensor));
  return numbers;
}

}  // namespace

std::string WhyNotByCudnn(const AttentionShape& s, bool backward, int major) {
  // Of heads beyond 128 elements, gradients are computed by the kernels of sm_90 alone.
  if (!backward || s.head_dim <= 128 || major == 9) return "";
  return absl::StrCat("cuDNN has no gradients for heads of ", s.head_dim, " elements on this card, only up to 128");
}

std::unique_ptr<AttentionGraph> DescribeAttentionForward(const CudnnApi& api, const AttentionShape& whole,
                                                         AttentionPart part) {
  const AttentionShape s = ShapeOf(whole, part);
  auto described = std::make_unique<AttentionGraph>(api);
  CudnnGraph& g = described->graph;
  Description d(g, s, whole);
  const Tensor q = d.Queries(), k = d.TransposedKeys(), v = d.Keys(), out = d.Queries(), lse = d.Lse();
  described->arguments = NumbersOf({q, k, v, out, lse});

  Tensor scores = d.Scores();
  g.Matmul(q, k, scores);
  scores = d.Masked(d.Scaled(scores));
  const Tensor most = d.OfRows(), less = d.Scores(), weights = d.Scores(), sum = d.OfRows(), log = d.OfRows();
  g.Reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
  g.Pointwise(CUDNN_POINTWISE_SUB, {scores, most}, less);
  g.Pointwise(CUDNN_POINTWISE_EXP, {less}, weights);
  g.Reduce(CUDNN_REDUCE_TENSOR_ADD, weights, sum);
  g.Pointwise(CUDNN_POINTWISE_LOG, {sum}, log);
  g.Pointwise(CUDNN_POINTWISE_ADD, {most, log}, lse);
  const Tensor shares = d.Scores(kStored);
  g.Pointwise(CUDNN_POINTWISE_DIV, {weights, sum}, shares);
  g.Matmul(shares, v, out);
  return described;
}

std::unique_ptr<AttentionGraph> DescribeAttentionBackward(const CudnnApi& api, const AttentionShape& whole,
                                                          AttentionPart part, bool in_order) {
  const AttentionShape s = ShapeOf(whole, part);
  auto described = std::make_unique<AttentionGraph>(api);
  CudnnGraph& g = described->graph;
  Description d(g, s, whole);
  const Tensor q = d.Queries(), k = d.TransposedKeys(), v = d.TransposedKeys(), out = d.Queries(), lse = d.Lse(),
               dout = d.Queries(), dq = d.Queries(), dk = d.Keys(), dv = d.Keys();
  described->arguments = NumbersOf({q, k, v, out, lse, dout, dq, dk, dv});
  const auto rows = static_cast<size_t>(s.batch * s.heads * s.queries);

  // delta = the sum of dout * out over a row
  const Tensor products = g.Virtual(CUDNN_DATA_FLOAT, {s.batch, s.heads, s.queries, s.head_dim});
  g.Pointwise(CUDNN_POINTWISE_MUL, {dout, out}, products);
  const Tensor sums = d.OfRows();
  g.Reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
  const Tensor delta =
      g.InMemory(CUDNN_DATA_FLOAT, {s.batch, s.heads, s.queries, 1}, {s.heads * s.queries, s.queries, 1, 1});
  g.Pointwise(CUDNN_POINTWISE_MUL, {sums, g.Number(1.0f)}, delta);
  described->between.emplace_back(CudnnGraph::NumberOf(delta), rows * sizeof(float));

  // p = exp(scores - lse), as it was in the forward pass
  const Tensor scores = d.Scores(), less = d.Scores(), p = d.Scores();
  g.Matmul(q, k, scores);
  g.Pointwise(CUDNN_POINTWISE_SUB, {d.Scaled(scores), lse}, less);
  g.Pointwise(CUDNN_POINTWISE_EXP, {d.Masked(less)}, p);

  // A gradient of keys, which the query heads of a group have a part of each.
  const auto of_keys = [&](Tensor weights, Tensor of_queries, Tensor result) {
    const Tensor transposed = d.Transposed(weights);
    if (s.heads == s.kv_heads) {
      g.Matmul(transposed, of_queries, result);
      return;
    }
    const Tensor of_heads = g.Virtual(kStored, {s.batch, s.heads, s.keys, s.head_dim});
    g.Matmul(transposed, of_queries, of_heads);
    g.Reduce(CUDNN_REDUCE_TENSOR_ADD, of_heads, result);
  };
  of_keys(p, dout, dv);

  // ds = scale p (dout v^T - delta)
  const Tensor dp = d.Scores(), moved = d.Scores(), weighted = d.Scores();
  g.Matmul(dout, v, dp);
  g.Pointwise(CUDNN_POINTWISE_SUB, {dp, delta}, moved);
  g.Pointwise(CUDNN_POINTWISE_MUL, {moved, p}, weighted);
  const Tensor ds = d.Scaled(weighted);
  of_keys(ds, q, dk);

  const Tensor rows_of_keys =
      g.Virtual(kStored, {s.batch, s.kv_heads, s.keys, s.head_dim},
                {s.keys * whole.kv_heads * s.head_dim, s.head_dim, whole.kv_heads * s.head_dim, 1});
  g.Reshape(k, rows_of_keys);
  if (in_order) {
    g.Matmul(ds, rows_of_keys, dq);
    return described;
  }
  // Blocks of keys add to it, in any order.
  const Extents packed = {s.heads * s.queries * s.head_dim, s.queries * s.head_dim, s.head_dim, 1};
  const Tensor total = g.InMemory(CUDNN_DATA_FLOAT, {s.batch, s.heads, s.queries, s.head_dim}, packed);
  described->between.emplace_back(CudnnGraph::NumberOf(total), rows * static_cast<size_t>(s.head_dim) * sizeof(float));
  g.Matmul(ds, rows_of_keys, total);
  g.Pointwise(CUDNN_POINTWISE_IDENTITY, {total}, dq);
  return described;
}

}  // namespace bowline
