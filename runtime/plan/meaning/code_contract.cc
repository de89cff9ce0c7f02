#include "runtime/plan/meaning/code_contract.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "runtime/plan/meaning/digest_tags.h"
#include "runtime/plan/meaning/kernel_digests.h"
#include "runtime/plan/view/plan_view.h"

namespace bowline {
namespace {

// The arguments in [begin, end) are the code's.
struct Arguments {
  uint32_t begin, end;
};

// An epilogue gets the arguments behind the two operands of a product, without the workspace at the end.
Arguments ArgumentsOfCode(const fbs::Kernel& kernel) {
  constexpr uint32_t kOperands = 2;
  const uint32_t count = SizeOf(kernel.arguments());
  if (kernel.origin() == fbs::KernelOrigin::Generated) return {0, count};
  const bool has_scratch = count > kOperands && kernel.arguments()->Get(count - 1)->dtype() == fbs::DType::U8;
  return {std::min(kOperands, count), count - has_scratch};
}

void AddArguments(const fbs::Kernel& kernel, Arguments arguments, DigestBuilder& builder) {
  builder.Add(arguments.end - arguments.begin);
  for (uint32_t i = arguments.begin; i < arguments.end; ++i) {
    const fbs::Argument& argument = *kernel.arguments()->Get(i);
    builder.Add(static_cast<uint64_t>(argument.access())).Add(static_cast<uint64_t>(argument.dtype()));
    builder.Add(argument.alignment()).Add(SizeOf(argument.shape()));
    for (uint32_t d = 0; d < SizeOf(argument.shape()); ++d) {
      builder.Add(static_cast<uint64_t>(argument.shape()->Get(d)));
    }
  }
}

// The rows and columns of the product whose tiles an epilogue gets.
void AddSizesOfProduct(const fbs::Kernel& kernel, DigestBuilder& builder) {
  for (const absl::string_view name : {"m", "n"}) {
    for (uint32_t i = 0; i < SizeOf(kernel.attributes()); ++i) {
      const fbs::Attribute& attribute = *kernel.attributes()->Get(i);
      if (TextOf(attribute.name()) != name || SizeOf(attribute.ints()) != 1) continue;
      builder.Add(name).Add(static_cast<uint64_t>(attribute.ints()->Get(0)));
    }
  }
}

void AddInPlace(const fbs::Kernel& kernel, Arguments arguments, DigestBuilder& builder) {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (uint32_t i = 0; i < SizeOf(kernel.in_place()); ++i) {
    const fbs::InPlace& pair = *kernel.in_place()->Get(i);
    if (pair.output() >= arguments.begin && pair.input() >= arguments.begin) {
      pairs.emplace_back(pair.output(), pair.input());
    }
  }
  std::sort(pairs.begin(), pairs.end());
  builder.Add(pairs.size());
  for (const auto& [output, input] : pairs) builder.Add(output).Add(input);
}

void AddValidRows(const fbs::Kernel& kernel, DigestBuilder& builder) {
  const fbs::ValidRows* rows = kernel.valid_rows();
  builder.Add(rows != nullptr);
  if (rows == nullptr) return;
  builder.Add(rows->count()).Add(SizeOf(rows->arguments()));
  for (uint32_t i = 0; i < SizeOf(rows->arguments()); ++i) builder.Add(rows->arguments()->Get(i));
}

void AddDependences(const fbs::Kernel& kernel, DigestBuilder& builder) {
  builder.Add(SizeOf(kernel.dependences()));
  for (uint32_t i = 0; i < SizeOf(kernel.dependences()); ++i) {
    const fbs::Dependence& dependence = *kernel.dependences()->Get(i);
    builder.Add(dependence.output()).Add(SizeOf(dependence.inputs()));
    for (uint32_t k = 0; k < SizeOf(dependence.inputs()); ++k) builder.Add(dependence.inputs()->Get(k));
  }
}

}  // namespace

bool CallsGeneratedCode(const fbs::Kernel& kernel) {
  return kernel.origin() == fbs::KernelOrigin::Generated || !TextOf(kernel.epilogue()).empty();
}

Digest ContractOf(const fbs::Kernel& kernel) {
  const Arguments arguments = ArgumentsOfCode(kernel);
  DigestBuilder builder(kContractTag);
  builder.Add(static_cast<uint64_t>(kernel.origin())).Add(TextOf(kernel.name())).Add(TextOf(kernel.epilogue()));
  if (kernel.origin() != fbs::KernelOrigin::Generated) AddSizesOfProduct(kernel, builder);
  AddGeometry(kernel, builder);
  AddArguments(kernel, arguments, builder);
  AddInPlace(kernel, arguments, builder);
  AddDependences(kernel, builder);
  AddValidRows(kernel, builder);
  return builder.Finish();
}

Digest ContractOf(const fbs::KernelT& kernel) {
  flatbuffers::FlatBufferBuilder packed;
  packed.Finish(fbs::Kernel::Pack(packed, &kernel));
  return ContractOf(*flatbuffers::GetRoot<fbs::Kernel>(packed.GetBufferPointer()));
}

Sha256Digest CodeHash(absl::Span<const uint8_t> data, absl::Span<const fbs::ValueDigest> contracts) {
  Sha256 hash;
  hash.Update(data);
  for (const fbs::ValueDigest& contract : contracts) {
    for (const uint64_t word : {contract.low(), contract.high()}) {
      std::array<uint8_t, sizeof word> bytes;
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(word >> (8 * i));
      hash.Update(absl::MakeConstSpan(bytes));
    }
  }
  return hash.Finish();
}

}  // namespace bowline
