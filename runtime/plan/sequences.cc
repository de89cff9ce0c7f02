#include "runtime/plan/sequences.h"

#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"

namespace bowline {
namespace {

// Places of one table.
struct Table {
  int64_t sequence, used,
      first_written;  // numbers of places: those below `used` are read, from `first_written` written
};

template <typename... Parts>
absl::Status Broken(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckRows(const SequenceSizes& sizes, absl::Span<const int32_t> rows, absl::Span<const int32_t> lengths,
                       std::vector<Table>& tables) {
  if (rows[0] != 0) return Broken("the rows of sequence 0 begin at ", rows[0], "; they must begin at 0");
  for (int64_t r = 0; r < sizes.sequences; ++r) {
    const int64_t begin = rows[r], end = rows[r + 1], length = lengths[r];
    if (end < begin || end > sizes.tokens) {
      return Broken("the rows of sequence ", r, " are [", begin, ", ", end, "), which do not ascend within the ",
                    sizes.tokens, " rows of the step");
    }
    if (length < end - begin || length > sizes.listed * sizes.block_tokens) {
      return Broken("the length of sequence ", r, " is ", length, "; with ", end - begin, " rows and ", sizes.listed,
                    " blocks of ", sizes.block_tokens, " tokens it must be ", end - begin, " to ",
                    sizes.listed * sizes.block_tokens);
    }
    if (end == begin) continue;
    const int64_t written = (length - (end - begin)) / sizes.block_tokens;
    tables.push_back({r, (length + sizes.block_tokens - 1) / sizes.block_tokens, written});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSequences(const SequenceSizes& sizes, absl::Span<const int32_t> rows,
                            absl::Span<const int32_t> lengths, absl::Span<const int32_t> blocks) {
  std::vector<Table> tables;
  if (absl::Status status = CheckRows(sizes, rows, lengths, tables); !status.ok()) return status;
  std::unordered_map<int32_t, int64_t> writers;  // sequences by the blocks that they write
  const auto block_of = [&](const Table& table, int64_t place) {
    return blocks[table.sequence * sizes.listed + place];
  };
  for (const Table& table : tables) {
    for (int64_t place = 0; place < table.used; ++place) {
      const int32_t block = block_of(table, place);
      if (block < 1 || block >= sizes.block_count) {
        return Broken("place ", place, " in the table of sequence ", table.sequence, " has block ", block,
                      "; its length needs one of 1 to ", sizes.block_count - 1);
      }
      if (place < table.first_written) continue;
      const auto [found, is_new] = writers.emplace(block, table.sequence);
      if (!is_new) {
        return Broken("block ", block, " is written by sequence ", found->second, ", and place ", place,
                      " in the table of sequence ", table.sequence, " has it too");
      }
    }
  }
  for (const Table& table : tables) {
    for (int64_t place = 0; place < table.first_written; ++place) {
      const int32_t block = block_of(table, place);
      const auto found = writers.find(block);
      if (found == writers.end()) continue;
      return Broken("block ", block, " is written by sequence ", found->second, ", and place ", place,
                    " in the table of sequence ", table.sequence, " has it too");
    }
  }
  return absl::OkStatus();
}

}  // namespace bowline
