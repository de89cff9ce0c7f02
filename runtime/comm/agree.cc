#include "runtime/comm/agree.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace bowline {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

// Longer values are compared in full and shown from around the place where they begin to differ.
constexpr size_t kShown = 120, kBefore = 20;

void AppendSized(std::string& text, absl::string_view value) {
  for (int i = 0; i < 8; ++i) text.push_back(static_cast<char>(value.size() >> (8 * i) & 0xff));
  text.append(value.data(), value.size());
}

// Removes a value that AppendSized wrote from the front of `text`. As another process sent the text, the size in it may
// be wrong; nothing is read past the end.
std::string TakeSized(absl::string_view& text) {
  uint64_t size = 0;
  for (size_t i = 0; i < 8 && i < text.size(); ++i)
    size |= static_cast<uint64_t>(static_cast<uint8_t>(text[i])) << (8 * i);
  text.remove_prefix(std::min<size_t>(8, text.size()));
  std::string value(text.substr(0, size));
  text.remove_prefix(value.size());
  return value;
}

Values Decode(absl::string_view text) {
  Values values;
  while (!text.empty()) {
    std::string name = TakeSized(text);
    values.emplace_back(std::move(name), TakeSized(text));
  }
  return values;
}

std::string Shown(const std::string& value, size_t same) {
  if (value.size() <= kShown) return absl::StrCat("'", value, "'");
  const size_t begin = same > kBefore ? same - kBefore : 0;
  const std::string part = value.substr(std::min(begin, value.size()), kShown);
  return absl::StrCat("'", begin > 0 ? "..." : "", part, begin + part.size() < value.size() ? "..." : "", "'");
}

absl::Status Differ(const std::string& name, int a, const std::string& has, int b, const std::string& other) {
  return absl::FailedPreconditionError(absl::StrCat("the ranks do not agree on ", name, ": rank ", a, " has ", has,
                                                    ", but rank ", b, " has ", other,
                                                    "; start all ranks with the same plan and options"));
}

absl::Status Compare(int a, const Values& first, int b, const Values& second) {
  for (size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i >= second.size() || (i < first.size() && first[i].first < second[i].first)) {
      return Differ(first[i].first, a, Shown(first[i].second, 0), b, "none");
    }
    if (i >= first.size() || second[i].first < first[i].first) {
      return Differ(second[i].first, a, "none", b, Shown(second[i].second, 0));
    }
    const std::string &x = first[i].second, &y = second[i].second;
    if (x == y) continue;
    const auto same = static_cast<size_t>(std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first - x.begin());
    return Differ(first[i].first, a, Shown(x, same), b, Shown(y, same));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AgreeOn(hal::Exchange& members, absl::Span<const std::pair<std::string, std::string>> values) {
  Values sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  std::string own;
  for (const auto& [name, value] : sorted) {
    AppendSized(own, name);
    AppendSized(own, value);
  }
  const auto size = static_cast<size_t>(members.size());
  const auto length = static_cast<int64_t>(own.size());
  std::vector<int64_t> lengths(size);
  const auto gather = [&](const void* from, void* to, size_t count, kernels::DType dtype) {
    return members.Run({.kind = hal::OperationKind::kAllGather, .dtype = dtype}, {{from, to, count}});
  };
  BOWLINE_RETURN_IF_ERROR(gather(&length, lengths.data(), 1, kernels::DType::kI64));
  const auto longest = static_cast<size_t>(*std::max_element(lengths.begin(), lengths.end()));
  own.resize(longest);
  std::string all(size * longest, '\0');
  BOWLINE_RETURN_IF_ERROR(gather(own.data(), all.data(), longest, kernels::DType::kU8));

  const auto values_of = [&](size_t member) {
    return Decode(absl::string_view(all).substr(member * longest, static_cast<size_t>(lengths[member])));
  };
  const Values first = values_of(0);
  for (size_t member = 1; member < size; ++member) {
    BOWLINE_RETURN_IF_ERROR(Compare(0, first, static_cast<int>(member), values_of(member)));
  }
  return absl::OkStatus();
}

}  // namespace bowline
