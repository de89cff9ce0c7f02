#include "runtime/base/foreign_file.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace bowline {
namespace {

struct Format {
  absl::string_view magic;
  size_t at;
  absl::string_view name;
};

constexpr Format kFormats[] = {
    {"\x1f\x8b", 0, "it is a gzip archive: unpack it with gunzip or tar first"},
    {"PK\x03\x04", 0,
     "it is a zip archive, as torch.save writes: convert a PyTorch file to safetensors, or unpack the archive"},
    {"GGUF", 0, "it is a GGUF file: give it the name *.gguf, and its path in place of a model's directory"},
    {"\x93NUMPY", 0, "it is a NumPy file (.npy)"},
    {"BWLP", 4, "it is a plan that `bowline compile` wrote"},
    {"\x28\xb5\x2f\xfd", 0, "it is a zstd archive: unpack it with unzstd first"},
    {"\xfd"
     "7zXZ",
     0, "it is an xz archive: unpack it with unxz first"},
    {"BZh", 0, "it is a bzip2 archive: unpack it with bunzip2 first"},
    {"7z\xbc\xaf\x27\x1c", 0, "it is a 7z archive: unpack it first"},
    {"ustar", 257, "it is a tar archive: unpack it with tar first"},
    {"\x89HDF\r\n\x1a\n", 0, "it is an HDF5 file: convert it to safetensors"},
    {"PAR1", 0, "it is a Parquet file: export its text, and make tokens of that with `bowline data`"},
    {"SQLite format 3", 0, "it is an SQLite database: export its text"},
    {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46", 0,
     "it is a file of an older version of torch.save: convert it to safetensors"},
    {"\x80\x02", 0, "it is a Python pickle, as older versions of torch.save write: convert it to safetensors"},
    // Later versions of its protocol, whose first operation begins a frame.
    {"\x80\x04\x95", 0, "it is a Python pickle: convert it to safetensors"},
    {"\x80\x05\x95", 0, "it is a Python pickle: convert it to safetensors"},
    {"%PDF-", 0, "it is a PDF document"},
};

bool IsPage(absl::string_view text) {
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");
  const std::string begin = absl::AsciiStrToLower(absl::StripLeadingAsciiWhitespace(text.substr(0, 256)));
  constexpr absl::string_view kTags[] = {"<!doctype", "<html", "<?xml", "<head", "<!--"};
  return std::any_of(std::begin(kTags), std::end(kTags),
                     [&](absl::string_view tag) { return absl::StartsWith(begin, tag); });
}

// The first line of every pointer; the second is that of the format's first releases. The specification gives pointers
// less than 1024 bytes.
bool IsLfsPointer(absl::string_view text) {
  constexpr absl::string_view kFirstLines[] = {"version https://git-lfs.github.com/spec/v1",
                                               "version https://hawser.github.com/spec/v1"};
  constexpr size_t kMostBytes = 1024;
  // A large file may have no line, and is not read in search of one.
  if (text.size() >= kMostBytes) return false;
  const absl::string_view line = text.substr(0, text.find_first_of("\r\n"));
  return std::find(std::begin(kFirstLines), std::end(kFirstLines), line) != std::end(kFirstLines);
}

absl::string_view AsCharacters(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A length of eight bytes and an object that is at most as long.
bool IsSafetensors(absl::string_view text) {
  if (text.size() < 10 || text[8] != '{' || (text[9] != '"' && text[9] != '}' && text[9] != ' ')) return false;
  return text[5] == 0 && text[6] == 0 && text[7] == 0;
}

}  // namespace

absl::string_view ForeignFormatOf(absl::Span<const uint8_t> bytes, size_t least_magic) {
  const absl::string_view text = AsCharacters(bytes);
  for (const Format& format : kFormats) {
    if (format.magic.size() < least_magic) continue;
    if (text.size() > format.at && absl::StartsWith(text.substr(format.at), format.magic)) return format.name;
  }
  if (IsPage(text)) return "it is a web page (HTML or XML), perhaps of an error or a login: fetch the file again";
  if (IsSafetensors(text)) return kSafetensorsFormat;
  if (IsLfsPointer(text)) return "it is a Git LFS pointer: run `git lfs pull` in the repository that has the file";
  return "";
}

std::string DescribeText(absl::Span<const uint8_t> bytes) {
  constexpr size_t kLooksAt = 512, kShows = 60;
  const absl::string_view text = AsCharacters(bytes.subspan(0, kLooksAt));
  const auto is_text = [](char c) { return absl::ascii_isprint(c) || absl::ascii_isspace(c); };
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_text)) return "";
  const absl::string_view begin = absl::StripAsciiWhitespace(text);
  const absl::string_view line = begin.substr(0, std::min(begin.find_first_of("\r\n"), kShows));
  return absl::StrCat("it is text, and begins with '", line,
                      "': where that is the answer of a server, fetch the file again");
}

absl::Status RefuseLfsPointer(absl::string_view path, absl::Span<const uint8_t> bytes) {
  if (!IsLfsPointer(AsCharacters(bytes))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", path, "' is a Git LFS pointer, not the file itself; run `git lfs pull` in the repository that has it"));
}

std::string ForeignFormatNote(absl::Span<const uint8_t> bytes) {
  const absl::string_view format = ForeignFormatOf(bytes);
  return format.empty() ? "" : absl::StrCat("; ", format);
}

}  // namespace bowline
