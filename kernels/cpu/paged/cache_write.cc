#include <algorithm>
#include <cstring>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/paged/paged_sequences.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/signatures/paged_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

// A row of `count` values of type V, rounded to T.
template <typename T, typename V>
void StoreRow(const void* from, int64_t count, void* to) {
  const V* values = static_cast<const V*>(from);
  T* cache = static_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) cache[i] = Narrow<T>(Widen(values[i]));
}

class CacheWrite : public Kernel {
 public:
  CacheWrite(const CacheWriteShape& shape, int threads)
      : shape_(shape.paged),
        loop_(threads),
        row_(shape.paged.heads * shape.paged.head_dim),
        cache_bytes_(row_ * static_cast<int64_t>(SizeOf(shape.paged.cache))),
        values_bytes_(row_ * static_cast<int64_t>(SizeOf(shape.values))),
        store_(shape.values == shape.paged.cache
                   ? nullptr
                   : ChooseByComputedType(shape.paged.cache, &StoreRow<float, float>, &StoreRow<Bf16, float>,
                                          &StoreRow<F16, float>)) {}

  void Run(absl::Span<void* const> arguments, void*) const override {
    char* cache = static_cast<char*>(arguments[0]);
    const char* values = static_cast<const char*>(arguments[1]);
    const PagedIndices indices = {static_cast<const int32_t*>(arguments[2]), static_cast<const int32_t*>(arguments[3]),
                                  static_cast<const int32_t*>(arguments[4])};
    // About 8 bytes a nanosecond.
    const double nanoseconds = 0.125 * static_cast<double>(cache_bytes_ + values_bytes_);
    loop_.Run(shape_.tokens, nanoseconds, [&](int64_t begin, int64_t end) {
      ForEachSequence(indices.rows, indices.lengths, shape_.sequences, shape_.tokens, [&](SequenceRows sequence) {
        const int32_t* table = indices.blocks + sequence.sequence * shape_.table;
        const int64_t first = std::max(begin, sequence.begin), last = std::min(end, sequence.begin + sequence.count);
        for (int64_t t = first; t < last; ++t) {
          const int64_t position = sequence.position + t - sequence.begin;
          if (position < 0 || position >= shape_.table * shape_.block_size) continue;
          const int64_t block = table[position / shape_.block_size];
          if (block < 1 || block >= shape_.blocks) continue;
          char* to = cache + (block * shape_.block_size + position % shape_.block_size) * cache_bytes_;
          Store(values + t * values_bytes_, to);
        }
      });
    });
  }

 private:
  void Store(const char* from, char* to) const {
    if (store_ == nullptr) {
      std::memcpy(to, from, static_cast<size_t>(cache_bytes_));
    } else {
      store_(from, row_, to);
    }
  }

  const PagedShape shape_;
  const ParallelLoop loop_;
  const int64_t row_, cache_bytes_, values_bytes_;  // elements of a row, and its bytes
  void (*const store_)(const void* from, int64_t count, void* to);
};

absl::StatusOr<std::unique_ptr<Kernel>> Create(const Signature& signature) {
  BOWLINE_KERNEL_ASSIGN_OR_RETURN(const CacheWriteShape shape, ParseCacheWrite(signature));
  return std::make_unique<CacheWrite>(shape, signature.threads);
}

}  // namespace

KernelDefinition CacheWriteDefinition() {
  return {"cache_write",
          "cache[blocks[r, p / S], p % S] = values[t] for each row t of sequence r at position p (sequence_positions); "
          "cache [N, S, K, D] of a floating-point type, values [T, K, D] of that type or f32; rows [R+1], lengths [R], "
          "blocks [R, M] i32; block 0, and what is outside of the cache, is not written",
          &Create};
}

}  // namespace bowline::kernels
