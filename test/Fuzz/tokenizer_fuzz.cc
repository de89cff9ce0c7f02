// Any bytes as tokenizer.json, and behind a zero byte a text: an error, or tokens that become text again.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/text/tokenizer_json.h"
#include "runtime/text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  auto definition = bowline::ParseTokenizerJson(input.substr(0, end), "fuzz.json");
  if (!definition.ok()) return 0;
  const auto tokenizer = bowline::Tokenizer::Create(*std::move(definition));
  if (!tokenizer.ok() || end == absl::string_view::npos) return 0;
  const absl::string_view text = input.substr(end + 1);
  const auto ids = (*tokenizer)->Encode(text);
  if (!ids.ok()) return 0;
  bowline::StreamDecoder decoder(**tokenizer);
  for (const int32_t id : *ids) {
    if (id < 0 || id >= (*tokenizer)->vocabulary_size()) std::abort();
    const std::string part = decoder.Add(id);
    if (bowline::FindInvalidUtf8(part) != std::string::npos) std::abort();
  }
  if (bowline::FindInvalidUtf8((*tokenizer)->Decode(*ids)) != std::string::npos) std::abort();
  return 0;
}
