// Reads the properties of functions from a cubin, and refuses damaged cubins.

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "checker/DeviceCode.h"

namespace bowline {
namespace {

using Bytes = std::vector<uint8_t>;

template <typename T>
void Append(Bytes& bytes, const T& value) {
  const auto* begin = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
}

void AppendText(Bytes& bytes, const std::string& text) {
  bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.push_back(0);
}

// An entry of .nv.info about a symbol.
void AppendInfo(Bytes& info, uint8_t attribute, uint32_t symbol, uint32_t value) {
  info.insert(info.end(), {0x04, attribute, 8, 0});
  Append(info, symbol);
  Append(info, value);
}

enum Section { kNone, kNames, kStrings, kSymbols, kInfo, kShared, kSections };

// Two functions: 'spills' with 40 registers and 72 bytes of stack, 'fine' with 16 and 2048 bytes of shared memory.
Bytes MakeCubin() {
  Bytes names, strings, symbols, info;
  std::vector<Elf64_Shdr> sections(kSections);
  const auto name = [&](Section section, const char* text) {
    sections[section].sh_name = static_cast<Elf64_Word>(names.size());
    AppendText(names, text);
  };
  name(kNone, "");
  name(kNames, ".shstrtab");
  name(kStrings, ".strtab");
  name(kSymbols, ".symtab");
  name(kInfo, ".nv.info");
  name(kShared, ".nv.shared.fine");
  AppendText(strings, "");
  Append(symbols, Elf64_Sym{});
  for (const char* function : {"spills", "fine"}) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(strings.size());
    AppendText(strings, function);
    Append(symbols, symbol);
  }
  AppendInfo(info, 0x2f, 1, 40);
  AppendInfo(info, 0x11, 1, 72);
  info.insert(info.end(), {0x03, 0x1b, 0xff, 0});  // a number without bytes behind it
  AppendInfo(info, 0x12, 1, 99);                   // an attribute that nobody reads
  AppendInfo(info, 0x2f, 2, 16);
  AppendInfo(info, 0x11, 2, 0);

  Bytes image(sizeof(Elf64_Ehdr));
  const auto place = [&](Section section, uint32_t type, const Bytes& content) {
    sections[section].sh_type = type;
    sections[section].sh_offset = image.size();
    sections[section].sh_size = content.size();
    image.insert(image.end(), content.begin(), content.end());
  };
  place(kNames, SHT_STRTAB, names);
  place(kStrings, SHT_STRTAB, strings);
  place(kSymbols, SHT_SYMTAB, symbols);
  place(kInfo, SHT_LOPROC, info);
  sections[kSymbols].sh_link = kStrings;
  sections[kShared].sh_type = SHT_NOBITS;
  sections[kShared].sh_size = 2048;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = 190;
  header.e_shoff = image.size();
  header.e_shnum = kSections;
  header.e_shstrndx = kNames;
  std::memcpy(image.data(), &header, sizeof(header));
  for (const Elf64_Shdr& section : sections) Append(image, section);
  return image;
}

TEST(DeviceCode, SaysWhatFunctionsTake) {
  const auto functions = readCubin(MakeCubin());
  ASSERT_TRUE(functions.ok()) << functions.status();
  ASSERT_EQ(functions->size(), 2u);
  const DeviceFunction &spills = functions->at("spills"), &fine = functions->at("fine");
  EXPECT_EQ(spills.registers, 40u);
  EXPECT_EQ(spills.stackBytes, 72u);
  EXPECT_EQ(spills.sharedBytes, 0u);
  EXPECT_EQ(fine.registers, 16u);
  EXPECT_EQ(fine.stackBytes, 0u);
  EXPECT_EQ(fine.sharedBytes, 2048u);
}

TEST(DeviceCode, RefusesWhatEndsEarly) {
  const Bytes whole = MakeCubin();
  for (size_t size = 0; size < whole.size(); ++size) {
    // A buffer of the part's size, so that a sanitizer sees reads behind it.
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(readCubin(part).status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
}

TEST(DeviceCode, RefusesOtherMachines) {
  Bytes image = MakeCubin();
  image[offsetof(Elf64_Ehdr, e_machine)] = EM_X86_64;
  const auto functions = readCubin(image);
  EXPECT_THAT(std::string(functions.status().message()), ::testing::HasSubstr("no code for NVIDIA's GPUs"));
}

// Whatever is wrong, nothing outside of the image is read: the sanitizers watch.
TEST(DeviceCode, SurvivesDamage) {
  const Bytes whole = MakeCubin();
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    Bytes image = whole;
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      const uint8_t values[] = {0, 1, 0x7f, 0xff, static_cast<uint8_t>(random())};
      image[random() % image.size()] = values[random() % 5];
    }
    refused += !readCubin(image).ok();
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace bowline
