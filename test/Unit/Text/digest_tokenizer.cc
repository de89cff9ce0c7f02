// digest-tokenizer DIR STRINGS BLOCKS: the digests that scripts/record-tokenizers.py compares with the reference, a
// line each. With --ids, the ids of each string instead.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_join.h"
#include "runtime/text/tokenizer_json.h"
#include "test/Unit/Text/reference_strings.h"

namespace bowline {
namespace {

absl::Status Print(const std::string& directory, const std::string& path, uint64_t blocks, bool with_ids) {
  BOWLINE_ASSIGN_OR_RETURN(const auto tokenizer, OpenTokenizer(directory));
  BOWLINE_ASSIGN_OR_RETURN(const std::vector<std::string> strings, ReadReferenceStrings(path));
  const std::vector<std::string> added = tokenizer->AddedContents();
  for (uint64_t block = 0; block < blocks && !with_ids; ++block) {
    BOWLINE_ASSIGN_OR_RETURN(const std::string digest, DigestOfReferenceBlock(*tokenizer, block, strings, added));
    std::puts(digest.c_str());
  }
  for (uint64_t index = 0; index < blocks * kReferenceBlock && with_ids; ++index) {
    const EncodeOptions options{.add_special = index % 2 == 0, .parse_special = index % 3 != 0};
    BOWLINE_ASSIGN_OR_RETURN(const auto ids, tokenizer->Encode(MakeReferenceString(index, strings, added), options));
    std::puts(absl::StrJoin(ids, " ").c_str());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace bowline

int main(int argc, char** argv) {
  if (argc < 4) return 1;
  const absl::Status status =
      bowline::Print(argv[1], argv[2], std::strtoull(argv[3], nullptr, 10), argc > 4 && !std::strcmp(argv[4], "--ids"));
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
