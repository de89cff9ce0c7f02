#include "test/Support/cuda_stand_in/cudnn_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

namespace bowline::stand_in {
namespace {

using Kind = GraphOperation::Kind;

// Calls `each` with every index.
template <typename Each>
void ForEach(const Extents4& extents, const Each& each) {
  Extents4 i = {};
  for (i[0] = 0; i[0] < extents[0]; ++i[0]) {
    for (i[1] = 0; i[1] < extents[1]; ++i[1]) {
      for (i[2] = 0; i[2] < extents[2]; ++i[2]) {
        for (i[3] = 0; i[3] < extents[3]; ++i[3]) each(i);
      }
    }
  }
}

size_t OffsetOf(const GraphTensor& tensor, const Extents4& i) {
  int64_t offset = 0;
  for (size_t d = 0; d < 4; ++d) offset += i[d] * tensor.strides[d];
  return static_cast<size_t>(offset);
}

float Bf16(double value) {
  const auto rounded = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  if (!std::isnan(rounded)) bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  float result;
  std::memcpy(&result, &bits, sizeof(bits));
  return result;
}

// The elements of tensors, wherever they lie.
class Elements {
 public:
  explicit Elements(const std::map<int64_t, void*>& memory) : memory_(memory) {}

  double Read(const GraphTensor& t, const Extents4& at) {
    const size_t offset = OffsetOf(t, at);
    if (t.is_virtual) return Own(t)[offset];
    const void* const from = memory_.at(t.number);
    if (t.type == CUDNN_DATA_INT32) return static_cast<const int32_t*>(from)[offset];
    if (t.type == CUDNN_DATA_FLOAT) return static_cast<const float*>(from)[offset];
    const uint32_t bits = uint32_t{static_cast<const uint16_t*>(from)[offset]} << 16;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  // Where t has one element for all along a dimension, or one for a group of them.
  double ReadShared(const GraphTensor& t, const Extents4& at, const Extents4& extents) {
    Extents4 own = at;
    for (size_t d = 0; d < 4; ++d) own[d] = at[d] / (extents[d] / t.extents[d]);
    return Read(t, own);
  }

  void Write(const GraphTensor& t, const Extents4& at, double value) {
    const size_t offset = OffsetOf(t, at);
    const double rounded = t.type == CUDNN_DATA_BFLOAT16 ? static_cast<double>(Bf16(value))
                           : t.type == CUDNN_DATA_FLOAT  ? static_cast<double>(static_cast<float>(value))
                                                         : value;
    if (t.is_virtual) {
      Own(t)[offset] = rounded;
    } else if (t.type == CUDNN_DATA_FLOAT) {
      static_cast<float*>(memory_.at(t.number))[offset] = static_cast<float>(rounded);
    } else {
      const auto stored = static_cast<float>(rounded);
      uint32_t bits;
      std::memcpy(&bits, &stored, sizeof(bits));
      static_cast<uint16_t*>(memory_.at(t.number))[offset] = static_cast<uint16_t>(bits >> 16);
    }
  }

 private:
  std::vector<double>& Own(const GraphTensor& t) {
    std::vector<double>& values = virtuals_[t.number];
    if (values.empty()) {
      Extents4 last;
      for (size_t d = 0; d < 4; ++d) last[d] = t.extents[d] - 1;
      values.resize(OffsetOf(t, last) + 1, std::nan(""));
    }
    return values;
  }

  const std::map<int64_t, void*>& memory_;
  std::map<int64_t, std::vector<double>> virtuals_;
};

size_t InputsOf(cudnnPointwiseMode_t mode) {
  switch (mode) {
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_LOG:
    case CUDNN_POINTWISE_IDENTITY:
    case CUDNN_POINTWISE_GEN_INDEX:
      return 1;
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_CMP_GE:
    case CUDNN_POINTWISE_CMP_GT:
      return 2;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return 3;
    default:
      return 0;
  }
}

double Compute(cudnnPointwiseMode_t mode, const std::vector<double>& x) {
  switch (mode) {
    case CUDNN_POINTWISE_EXP:
      return std::exp(x[0]);
    case CUDNN_POINTWISE_LOG:
      return std::log(x[0]);
    case CUDNN_POINTWISE_IDENTITY:
      return x[0];
    case CUDNN_POINTWISE_ADD:
      return x[0] + x[1];
    case CUDNN_POINTWISE_SUB:
      return x[0] - x[1];
    case CUDNN_POINTWISE_MUL:
      return x[0] * x[1];
    case CUDNN_POINTWISE_DIV:
      return x[0] / x[1];
    case CUDNN_POINTWISE_CMP_GE:
      return x[0] >= x[1];
    case CUDNN_POINTWISE_CMP_GT:
      return x[0] > x[1];
    case CUDNN_POINTWISE_BINARY_SELECT:
      return x[2] != 0 ? x[0] : x[1];
    default:
      return std::nan("");
  }
}

// The extents and strides of dimensions that have more than one element.
std::multiset<std::pair<int64_t, int64_t>> Shape(const GraphTensor& t) {
  std::multiset<std::pair<int64_t, int64_t>> shape;
  for (size_t d = 0; d < 4; ++d) {
    if (t.extents[d] > 1) shape.insert({t.extents[d], t.strides[d]});
  }
  return shape;
}

bool Divides(int64_t a, int64_t b) { return b % a == 0; }

}  // namespace

std::string WhyNoOperation(const GraphOperation& op) {
  const Extents4& out = op.out.extents;
  const Extents4& x = op.inputs[0].extents;
  switch (op.kind) {
    case Kind::kMatmul: {
      const Extents4& b = op.inputs[1].extents;
      if (x[0] != out[0] || x[1] != out[1] || b[0] != out[0] || !Divides(b[1], out[1])) return "batches of a product";
      return x[2] == out[2] && x[3] == b[2] && b[3] == out[3] ? "" : "extents of a product";
    }
    case Kind::kReduce:
      for (size_t d = 0; d < 4; ++d) {
        if (!Divides(out[d], x[d]) || (d != 1 && out[d] != 1 && out[d] != x[d])) return "extents of a reduction";
      }
      return "";
    case Kind::kReshape:
      if (op.out.number == op.inputs[0].number) return "a reshape of itself";
      return Shape(op.inputs[0]) == Shape(op.out) ? "" : "a reshape that moves elements";
    case Kind::kPointwise:
      if (op.inputs.size() != InputsOf(op.mode)) return "operands of a pointwise operation";
      for (const GraphTensor& input : op.inputs) {
        for (size_t d = 0; d < 4; ++d) {
          if (input.extents[d] != out[d] && input.extents[d] != 1) return "extents of a pointwise operation";
        }
      }
      if (op.mode == CUDNN_POINTWISE_GEN_INDEX && (op.axis < 0 || op.axis > 3)) return "the axis of an index";
      return "";
  }
  return "";
}

std::string Sort(std::vector<GraphOperation>& operations) {
  std::map<int64_t, size_t> writers;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].out.by_value) return "a number that is written";
    if (!writers.emplace(operations[i].out.number, i).second) return "a tensor that is written twice";
  }
  std::vector<GraphOperation> sorted;
  std::vector<int> state(operations.size());
  std::string wrong;
  const std::function<void(size_t)> visit = [&](size_t i) {
    if (state[i] == 2) return;
    if (state[i] == 1) {
      wrong = "a circle";
      return;
    }
    state[i] = 1;
    for (const GraphTensor& input : operations[i].inputs) {
      const auto writer = writers.find(input.number);
      if (writer != writers.end()) {
        visit(writer->second);
      } else if (input.is_virtual) {
        wrong = "a virtual tensor that nothing writes";
      }
    }
    state[i] = 2;
    sorted.push_back(operations[i]);
  };
  for (size_t i = 0; i < operations.size(); ++i) visit(i);
  operations = std::move(sorted);
  return wrong;
}

void Evaluate(const std::vector<GraphOperation>& operations, const std::map<int64_t, void*>& memory) {
  Elements elements(memory);
  for (const GraphOperation& op : operations) {
    const GraphTensor& x = op.inputs[0];
    switch (op.kind) {
      case Kind::kMatmul: {
        const GraphTensor& b = op.inputs[1];
        ForEach(op.out.extents, [&](const Extents4& i) {
          double sum = 0;
          for (int64_t l = 0; l < x.extents[3]; ++l) {
            const int64_t head = i[1] / (op.out.extents[1] / b.extents[1]);
            sum += elements.Read(x, {i[0], i[1], i[2], l}) * elements.Read(b, {i[0], head, l, i[3]});
          }
          elements.Write(op.out, i, sum);
        });
        break;
      }
      case Kind::kReduce: {
        const bool most = op.reduction == CUDNN_REDUCE_TENSOR_MAX;
        std::map<Extents4, double> totals;
        ForEach(x.extents, [&](const Extents4& i) {
          Extents4 at;
          for (size_t d = 0; d < 4; ++d) at[d] = i[d] / (x.extents[d] / op.out.extents[d]);
          const double value = elements.Read(x, i);
          const auto [found, fresh] = totals.emplace(at, value);
          if (!fresh) found->second = most ? std::max(found->second, value) : found->second + value;
        });
        for (const auto& [at, total] : totals) elements.Write(op.out, at, total);
        break;
      }
      case Kind::kReshape: {
        // The element at the same place: dimensions of the same extent and stride are one another's.
        GraphTensor view = x;
        view.extents = op.out.extents;
        view.strides = op.out.strides;
        ForEach(op.out.extents, [&](const Extents4& i) { elements.Write(op.out, i, elements.Read(view, i)); });
        break;
      }
      case Kind::kPointwise:
        ForEach(op.out.extents, [&](const Extents4& i) {
          if (op.mode == CUDNN_POINTWISE_GEN_INDEX) {
            elements.Write(op.out, i, static_cast<double>(i[static_cast<size_t>(op.axis)]));
            return;
          }
          std::vector<double> values;
          for (const GraphTensor& input : op.inputs) {
            values.push_back(elements.ReadShared(input, i, op.out.extents));
          }
          elements.Write(op.out, i, Compute(op.mode, values));
        });
        break;
    }
  }
}

}  // namespace bowline::stand_in
