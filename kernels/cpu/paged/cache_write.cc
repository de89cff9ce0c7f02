#include <algorithm>
#include <cstring>

#include "kernels/cpu/definitions.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/paged/int8_rows.h"
#include "kernels/cpu/paged/paged_sequences.h"
#include "kernels/cpu/parallel/parallel.h"
#include "kernels/signatures/paged_signature.h"
#include "kernels/signatures/signature_check.h"

namespace bowline::kernels {
namespace {

// The values of a token, `heads` rows of `width` elements of type V, as the cache has them.
using StoreToken = void (*)(const void* from, int64_t heads, int64_t width, void* to);

template <typename T>
void RoundToken(const void* from, int64_t heads, int64_t width, void* to) {
  const float* values = static_cast<const float*>(from);
  T* cache = static_cast<T*>(to);
  for (int64_t i = 0; i < heads * width; ++i) cache[i] = Narrow<T>(values[i]);
}

template <typename V>
void RoundTokenToInt8(const void* from, int64_t heads, int64_t width, void* to) {
  for (int64_t head = 0; head < heads; ++head) {
    StoreInt8Row(static_cast<const V*>(from) + head * width, width,
                 static_cast<uint8_t*>(to) + head * Int8RowBytes(width));
  }
}

// Null where bytes are copied.
StoreToken ChooseStore(const CacheWriteShape& shape) {
  if (shape.values == shape.paged.cache) return nullptr;
  if (shape.paged.cache == ElementType::kU8) {
    return ChooseByComputedType<StoreToken>(shape.values, &RoundTokenToInt8<float>, &RoundTokenToInt8<Bf16>,
                                            &RoundTokenToInt8<F16>);
  }
  return ChooseByComputedType<StoreToken>(shape.paged.cache, &RoundToken<float>, &RoundToken<Bf16>, &RoundToken<F16>);
}

class CacheWrite : public Kernel {
 public:
  CacheWrite(const CacheWriteShape& shape, int threads)
      : shape_(shape.paged),
        loop_(threads),
        cache_bytes_(shape.paged.heads * shape.paged.row * static_cast<int64_t>(SizeOf(shape.paged.cache))),
        values_bytes_(shape.paged.heads * shape.paged.head_dim * static_cast<int64_t>(SizeOf(shape.values))),
        store_(ChooseStore(shape)) {}

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
      store_(from, shape_.heads, shape_.head_dim, to);
    }
  }

  const PagedShape shape_;
  const ParallelLoop loop_;
  const int64_t cache_bytes_, values_bytes_;  // of a token
  const StoreToken store_;
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
          "blocks [R, M] i32; optional text format 'int8': a cache of u8 [N, S, K, D + 4] in rows of int8, and values "
          "of any floating-point type; block 0, and places outside of the cache, are not written",
          &Create};
}

}  // namespace bowline::kernels
