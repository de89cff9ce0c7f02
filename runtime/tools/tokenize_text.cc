#include "runtime/tools/tokenize_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/foreign_file.h"
#include "runtime/base/output_files.h"
#include "runtime/text/gguf_tokenizer.h"
#include "runtime/tools/tool_support.h"
#include "runtime/train/data/dataset_formats.h"

namespace bowline {
namespace {

absl::Span<const uint8_t> AsBytes(const void* data, size_t size) { return {static_cast<const uint8_t*>(data), size}; }

// The text to tokenize: a file, a pipe, or the standard input for "-".
absl::StatusOr<FileDescriptor> OpenText(const std::string& text, uint64_t* size) {
  FileDescriptor file(text == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                  : ::open(text.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoToStatus(errno, absl::StrCat("cannot open '", text, "'"));
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return ErrnoToStatus(errno, absl::StrCat("cannot examine '", text, "'"));
  *size = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  // A Git LFS pointer is text as well, and the text of a clone that did not fetch the file.
  std::array<uint8_t, 1024> beginning;
  if (*size > 0 && *size <= beginning.size()) {
    const ssize_t count = ::pread(file.get(), beginning.data(), beginning.size(), 0);
    const auto bytes = absl::MakeConstSpan(beginning).first(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    BOWLINE_RETURN_IF_ERROR(RefuseLfsPointer(text, bytes));
  }
  return file;
}

// Byte values as u16 tokens, in the format of llm.c.
absl::Status TokenizeBytes(const TokenizeOptions& options) {
  uint64_t text_size = 0;
  BOWLINE_ASSIGN_OR_RETURN(const FileDescriptor text, OpenText(options.text, &text_size));
  BOWLINE_ASSIGN_OR_RETURN(AtomicFile output, AtomicFile::Create(options.output));
  std::array<int32_t, kLlmcHeaderBytes / sizeof(int32_t)> header = {kLlmcMagic, kLlmcVersion};
  BOWLINE_RETURN_IF_ERROR(output.Append(AsBytes(header.data(), kLlmcHeaderBytes)));

  constexpr size_t kBlock = size_t{1} << 20;
  std::vector<uint8_t> block(kBlock);
  std::vector<uint16_t> tokens(kBlock);
  Progress progress("tokenizing", text_size);
  int64_t total = 0;
  while (true) {
    const ssize_t count = ::read(text.get(), block.data(), kBlock);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoToStatus(errno, absl::StrCat("cannot read '", options.text, "'"));
    if (count == 0) break;
    total += count;
    if (total > INT32_MAX) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", options.text, "' has more than 2147483647 tokens, all that an llm.c file can count; ",
                       "split it into several files"));
    }
    std::copy_n(block.begin(), count, tokens.begin());
    BOWLINE_RETURN_IF_ERROR(output.Append(AsBytes(tokens.data(), static_cast<size_t>(count) * sizeof(uint16_t))));
    progress.Update(static_cast<uint64_t>(total));
  }
  if (total == 0) return absl::InvalidArgumentError(absl::StrCat("'", options.text, "' is empty; give a text"));
  header[2] = static_cast<int32_t>(total);
  BOWLINE_RETURN_IF_ERROR(output.OverwriteAt(0, AsBytes(header.data(), kLlmcHeaderBytes)));
  return output.Commit();
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  constexpr size_t kBlock = size_t{1} << 20;
  constexpr size_t kMaxBytes = size_t{1} << 30;
  uint64_t size = 0;
  BOWLINE_ASSIGN_OR_RETURN(const FileDescriptor file, OpenText(path, &size));
  std::string text;
  Progress progress("reading", size);
  while (true) {
    const size_t before = text.size();
    text.resize(before + kBlock);
    const ssize_t count = ::read(file.get(), text.data() + before, kBlock);
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoToStatus(errno, absl::StrCat("cannot read '", path, "'"));
    if (count == 0) return text;
    if (text.size() >= kMaxBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' has 1 GiB or more, which is too much at once; split it into several files"));
    }
    progress.Update(text.size());
  }
}

// An array of one dimension, as i32.
absl::Status WriteNpy(const std::vector<int32_t>& ids, AtomicFile* output) {
  std::string header = absl::StrFormat("{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }", ids.size());
  header.resize(117, ' ');
  header = absl::StrCat(absl::string_view("\x93NUMPY\x01\x00\x76\x00", 10), header, "\n");
  BOWLINE_RETURN_IF_ERROR(output->Append(AsBytes(header.data(), header.size())));
  return output->Append(AsBytes(ids.data(), ids.size() * sizeof(int32_t)));
}

absl::Status WriteLlmc(const std::vector<int32_t>& ids, AtomicFile* output) {
  std::array<int32_t, kLlmcHeaderBytes / sizeof(int32_t)> header = {kLlmcMagic, kLlmcVersion,
                                                                    static_cast<int32_t>(ids.size())};
  const std::vector<uint16_t> tokens(ids.begin(), ids.end());
  BOWLINE_RETURN_IF_ERROR(output->Append(AsBytes(header.data(), kLlmcHeaderBytes)));
  return output->Append(AsBytes(tokens.data(), tokens.size() * sizeof(uint16_t)));
}

absl::Status TokenizeByVocabulary(const TokenizeOptions& options) {
  constexpr int32_t kMaxLlmcVocabulary = 1 << 16;
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, OpenModelTokenizer(options.tokenizer));
  BOWLINE_ASSIGN_OR_RETURN(const std::string text, ReadText(options.text));
  if (text.empty()) return absl::InvalidArgumentError(absl::StrCat("'", options.text, "' is empty; give a text"));
  const auto ids = tokenizer->Encode(text, {.add_special = false});
  if (!ids.ok()) return Annotate(ids.status(), absl::StrCat("'", options.text, "'"));
  BOWLINE_ASSIGN_OR_RETURN(AtomicFile output, AtomicFile::Create(options.output));
  BOWLINE_RETURN_IF_ERROR(tokenizer->vocabulary_size() > kMaxLlmcVocabulary ? WriteNpy(*ids, &output)
                                                                            : WriteLlmc(*ids, &output));
  return output.Commit();
}

}  // namespace

absl::Status TokenizeText(const TokenizeOptions& options) {
  BOWLINE_RETURN_IF_ERROR(CheckOutputs({{"TEXT", options.text}}, {{"-o", options.output}}));
  if (options.tokenizer == "bytes") return TokenizeBytes(options);
  std::error_code ignored;
  if (!std::filesystem::exists(options.tokenizer, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tokenizer '", options.tokenizer, "' is neither bytes nor a GGUF file or a directory with tokenizer.json"));
  }
  return TokenizeByVocabulary(options);
}

}  // namespace bowline
