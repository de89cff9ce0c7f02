#ifndef BOWLINE_TEST_UNIT_SERVE_FAKE_PAGED_MODEL_H_
#define BOWLINE_TEST_UNIT_SERVE_FAKE_PAGED_MODEL_H_

#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/serve/scheduler.h"

namespace bowline::serve {

// A model whose next token is a hash of all tokens of a sequence, as it reads them back from a paged cache. As with
// keys and values, a token's cell in the cache depends on all tokens before it. A wrong table, a write that is lost and
// a stale prefix give wrong tokens or an error, and so does a step that breaks its contract.
class FakePagedModel {
 public:
  static constexpr int32_t kVocabulary = 7;

  explicit FakePagedModel(const CacheShape& shape)
      : shape_(shape), cells_(static_cast<size_t>(shape.blocks * shape.block_tokens)) {}

  static SampledToken Next(absl::Span<const int32_t> tokens, const SequenceSampling& sampling) {
    uint64_t hash = sampling.seed * 31 + static_cast<uint64_t>(sampling.top_k);
    const auto mix = [&](uint64_t value) {
      hash = (hash ^ value) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 29;
    };
    for (const float number : {sampling.temperature, sampling.top_p}) {
      uint32_t bits = 0;
      std::memcpy(&bits, &number, sizeof(bits));
      mix(bits);
    }
    for (const int32_t token : tokens) mix(static_cast<uint64_t>(token) + 1);
    return {static_cast<int32_t>((hash >> 32) % kVocabulary), static_cast<float>(hash & 0xffff)};
  }

  // The tokens of a request that has the model for itself.
  static std::vector<int32_t> GenerateAlone(const SequenceRequest& request) {
    std::vector<int32_t> tokens = request.prompt;
    for (int64_t i = 0; i < request.max_new_tokens; ++i) {
      tokens.push_back(Next(tokens, request.sampling).token);
      bool ends = false;
      for (const int32_t end : request.end_tokens) ends |= end == tokens.back();
      if (ends) break;
    }
    return {tokens.begin() + static_cast<ptrdiff_t>(request.prompt.size()), tokens.end()};
  }

  absl::Status Step(const StepBatch& batch, std::vector<SampledToken>& sampled) {
    const auto sequences = static_cast<size_t>(shape_.max_sequences);
    const auto table = static_cast<size_t>((shape_.max_context + shape_.block_tokens - 1) / shape_.block_tokens);
    if (batch.tokens.size() != static_cast<size_t>(batch.bucket) || batch.rows.size() != sequences + 1 ||
        batch.rows[0] != 0 || batch.rows.back() > batch.bucket || batch.lengths.size() != sequences ||
        batch.blocks.size() != sequences * table || batch.sample.size() != sequences ||
        batch.sampling.size() != sequences || batch.wants_token.size() != sequences) {
      return absl::InternalError("the step has ports of wrong sizes");
    }
    std::set<size_t> written;
    for (size_t r = 0; r < sequences; ++r) {
      const int32_t rows = batch.rows[r + 1] - batch.rows[r], length = batch.lengths[r];
      if (rows < 0 || length < rows || length > shape_.max_context || (rows == 0) != (length == 0)) {
        return absl::InternalError(absl::StrCat("sequence ", r, " has ", rows, " rows and the length ", length));
      }
      for (size_t i = 0; i < table; ++i) {
        const int32_t block = batch.blocks[r * table + i];
        const bool listed = static_cast<int64_t>(i) * shape_.block_tokens < length;
        if (listed ? block < 1 || block >= shape_.blocks : block != 0) {
          return absl::InternalError(absl::StrCat("sequence ", r, " has block ", block, " at ", i));
        }
      }
      for (int32_t t = 0; t < rows; ++t) {
        const size_t cell = Cell(batch, r, length - rows + t);
        if (!written.insert(cell).second) return absl::InternalError("two rows write one cell");
        const int32_t position = length - rows + t, row = batch.rows[r] + t;
        const int32_t token = batch.tokens[static_cast<size_t>(row)];
        cells_[cell] = {token, After(position == 0 ? 0 : cells_[Cell(batch, r, position - 1)].text, token)};
      }
    }
    for (auto t = static_cast<size_t>(batch.rows.back()); t < batch.tokens.size(); ++t) {
      if (batch.tokens[t] != 0) return absl::InternalError("padding has a token");
    }
    sampled.assign(sequences, {-1, 0});
    for (size_t r = 0; r < sequences; ++r) {
      if (!batch.wants_token[r]) {
        if (batch.sample[r] != 0) return absl::InternalError("a row is sampled that nobody wants");
        continue;
      }
      if (batch.sample[r] != batch.rows[r + 1] - 1) return absl::InternalError("another row than the last is sampled");
      std::vector<int32_t> tokens;
      uint64_t text = 0;
      for (int32_t i = 0; i < batch.lengths[r]; ++i) {
        const Written& cell = cells_[Cell(batch, r, i)];
        if (cell.token == kNothing) return absl::InternalError(absl::StrCat("position ", i, " was not written"));
        text = After(text, cell.token);
        if (cell.text != text) return absl::InternalError(absl::StrCat("position ", i, " is that of another text"));
        tokens.push_back(cell.token);
      }
      sampled[r] = Next(tokens, batch.sampling[r]);
    }
    return absl::OkStatus();
  }

  // Destroys the cells that a step writes.
  void Spoil(const StepBatch& batch) {
    for (size_t r = 0; r + 1 < batch.rows.size(); ++r) {
      const int32_t rows = batch.rows[r + 1] - batch.rows[r];
      for (int32_t t = 0; t < rows; ++t) cells_[Cell(batch, r, batch.lengths[r] - rows + t)] = {};
    }
  }
  void SpoilBlock(int32_t block) {
    for (int64_t i = 0; i < shape_.block_tokens; ++i) cells_[static_cast<size_t>(block * shape_.block_tokens + i)] = {};
  }

 private:
  static constexpr int32_t kNothing = -1;
  // The cell of a token in the cache: the token, and a hash of the text up to it.
  struct Written {
    int32_t token = kNothing;
    uint64_t text = 0;
  };

  static uint64_t After(uint64_t text, int32_t token) {
    return (text ^ static_cast<uint64_t>(token + 1)) * 0x9e3779b97f4a7c15 + (text >> 31);
  }

  size_t Cell(const StepBatch& batch, size_t r, int64_t position) const {
    const auto table = static_cast<size_t>((shape_.max_context + shape_.block_tokens - 1) / shape_.block_tokens);
    const int32_t block = batch.blocks[r * table + static_cast<size_t>(position / shape_.block_tokens)];
    return static_cast<size_t>(block * shape_.block_tokens + position % shape_.block_tokens);
  }

  const CacheShape shape_;
  std::vector<Written> cells_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_TEST_UNIT_SERVE_FAKE_PAGED_MODEL_H_
