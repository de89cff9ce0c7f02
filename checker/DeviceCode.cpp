//===- DeviceCode.cpp - properties in machine code for GPUs ---------------===//

#include "checker/DeviceCode.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include <elf.h>

#include <cstring>
#include <optional>
#include <vector>

namespace bowline {
namespace {

constexpr uint16_t kMachineCuda = 190;
/// Section type of .nv.info, and of what it holds: entries of a byte each for the form of the value and for what it
/// says, and two for the value or, in form kSized, for the bytes of the value behind them.
constexpr uint32_t kSectionInfo = SHT_LOPROC;
constexpr uint8_t kSized = 0x04, kFrameSize = 0x11, kRegisterCount = 0x2f;

/// Reads tables that may lie anywhere.
class Reader {
public:
  explicit Reader(absl::Span<const uint8_t> image) : image(image) {}

  template <typename T> std::optional<T> at(uint64_t offset) const {
    if (offset > image.size() || image.size() - offset < sizeof(T))
      return std::nullopt;
    T value;
    std::memcpy(&value, image.data() + offset, sizeof(T));
    return value;
  }

  std::optional<absl::Span<const uint8_t>> range(uint64_t offset, uint64_t size) const {
    if (offset > image.size() || image.size() - offset < size)
      return std::nullopt;
    return image.subspan(offset, size);
  }

private:
  absl::Span<const uint8_t> image;
};

/// The text of a table of strings up to its next zero.
std::optional<std::string> textAt(absl::Span<const uint8_t> strings, uint64_t offset) {
  if (offset >= strings.size())
    return std::nullopt;
  const auto *begin = reinterpret_cast<const char *>(strings.data()) + offset;
  const size_t most = strings.size() - offset, length = strnlen(begin, most);
  if (length == most)
    return std::nullopt;
  return std::string(begin, length);
}

absl::Status broken(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the image is no code for NVIDIA's GPUs: ", what));
}

/// Adds the properties in .nv.info, by the numbers of symbols.
absl::Status readInfo(absl::Span<const uint8_t> info, std::map<uint32_t, DeviceFunction> &bySymbol) {
  const Reader reader(info);
  for (uint64_t at = 0; at < info.size();) {
    const auto form = reader.at<uint8_t>(at), attribute = reader.at<uint8_t>(at + 1);
    const auto value = reader.at<uint16_t>(at + 2);
    if (!form || !attribute || !value)
      return broken("its section .nv.info ends early");
    at += 4;
    if (*form != kSized)
      continue;
    const auto symbol = reader.at<uint32_t>(at), number = reader.at<uint32_t>(at + 4);
    if (*value == 8 && symbol && number) {
      if (*attribute == kFrameSize)
        bySymbol[*symbol].stackBytes = *number;
      else if (*attribute == kRegisterCount)
        bySymbol[*symbol].registers = *number;
    }
    at += *value;
  }
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<std::map<std::string, DeviceFunction>> readCubin(absl::Span<const uint8_t> image) {
  const Reader reader(image);
  const auto header = reader.at<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != kMachineCuda)
    return broken("it is no ELF file of theirs");
  std::vector<Elf64_Shdr> sections;
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    // Offsets may be anything, so that sums may wrap around.
    const uint64_t before = i * sizeof(Elf64_Shdr);
    const auto section =
        header->e_shoff > image.size() ? std::nullopt : reader.at<Elf64_Shdr>(header->e_shoff + before);
    if (!section)
      return broken("its sections lie outside of it");
    sections.push_back(*section);
  }
  const auto contentOf = [&](uint64_t index) -> std::optional<absl::Span<const uint8_t>> {
    if (index >= sections.size() || sections[index].sh_type == SHT_NOBITS)
      return std::nullopt;
    return reader.range(sections[index].sh_offset, sections[index].sh_size);
  };
  const auto names = contentOf(header->e_shstrndx);
  if (!names)
    return broken("its sections have no names");

  std::map<uint32_t, DeviceFunction> bySymbol;
  std::map<std::string, uint64_t> shared;
  std::optional<size_t> symbols;
  for (size_t i = 0; i < sections.size(); ++i) {
    const auto name = textAt(*names, sections[i].sh_name);
    if (!name)
      return broken("a section has no name");
    constexpr absl::string_view kShared = ".nv.shared.";
    if (absl::StartsWith(*name, kShared))
      shared[name->substr(kShared.size())] = sections[i].sh_size;
    if (sections[i].sh_type == SHT_SYMTAB)
      symbols = i;
    if (sections[i].sh_type == kSectionInfo && *name == ".nv.info") {
      const auto info = contentOf(i);
      if (!info)
        return broken("its section .nv.info lies outside of the image");
      if (absl::Status status = readInfo(*info, bySymbol); !status.ok())
        return status;
    }
  }
  const auto table = symbols ? contentOf(*symbols) : std::nullopt;
  const auto strings = symbols ? contentOf(sections[*symbols].sh_link) : std::nullopt;
  if (!table || !strings)
    return broken("it has no symbols");
  std::map<std::string, DeviceFunction> functions;
  for (auto [number, function] : bySymbol) {
    const auto symbol = Reader(*table).at<Elf64_Sym>(uint64_t{number} * sizeof(Elf64_Sym));
    const auto name = symbol ? textAt(*strings, symbol->st_name) : std::nullopt;
    if (!name)
      return broken("it speaks of a function without a name");
    if (const auto memory = shared.find(*name); memory != shared.end())
      function.sharedBytes = memory->second;
    functions[*name] = function;
  }
  return functions;
}

} // namespace bowline
