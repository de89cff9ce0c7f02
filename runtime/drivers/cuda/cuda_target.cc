#include "runtime/drivers/cuda/cuda_target.h"

#include <elf.h>

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace bowline {
namespace {

absl::Status Refuse(absl::string_view what, absl::string_view needed, absl::string_view present) {
  return absl::FailedPreconditionError(absl::StrCat("the plan was compiled for ", what, " '", needed,
                                                    "', but this device is '", present,
                                                    "'; compile the model again for this device"));
}

}  // namespace

std::optional<CudaArch> ParseCudaArch(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "sm_")) return std::nullopt;
  CudaArch arch;
  arch.exact = absl::ConsumeSuffix(&text, "a");
  int number = 0;
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
  if (!digits || text.size() < 2 || text.size() > 3 || !absl::SimpleAtoi(text, &number)) return std::nullopt;
  arch.major = number / 10;
  arch.minor = number % 10;
  return arch;
}

absl::Status CheckCudaTarget(const hal::Target& target, int major, int minor) {
  if (target.device != "cuda") return Refuse("device", target.device, "cuda");
  if (target.arch != "nvptx64") return Refuse("architecture", target.arch, "nvptx64");
  const std::optional<CudaArch> needed = ParseCudaArch(target.cpu);
  const bool runs =
      needed.has_value() && needed->major == major && (needed->exact ? needed->minor == minor : needed->minor <= minor);
  if (runs) return absl::OkStatus();
  return Refuse("GPU", target.cpu, absl::StrCat("sm_", major, minor));
}

absl::Status CheckCubin(absl::Span<const uint8_t> image) {
  const auto refuse = [](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("the image of format 'cubin' ", why));
  };
  Elf64_Ehdr header;
  if (image.size() < sizeof(header) || std::memcmp(image.data(), ELFMAG, SELFMAG) != 0) return refuse("is no ELF file");
  std::memcpy(&header, image.data(), sizeof(header));
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return refuse("is not for 64 bits");
  const auto inside = [&](uint64_t offset, uint64_t bytes) {
    return offset <= image.size() && bytes <= image.size() - offset;
  };
  const uint64_t sections = uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  const uint64_t segments = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) || !inside(header.e_shoff, sections) ||
      !inside(header.e_phoff, segments)) {
    return refuse("is broken off");
  }
  for (uint16_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image.data() + header.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type != SHT_NULL && section.sh_type != SHT_NOBITS && !inside(section.sh_offset, section.sh_size)) {
      return refuse("is broken off");
    }
  }
  return absl::OkStatus();
}

}  // namespace bowline
