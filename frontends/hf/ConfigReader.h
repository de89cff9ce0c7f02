//===- ConfigReader.h - Typed access to a config.json that forgets no key
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_FRONTENDS_HF_CONFIGREADER_H
#define BOWLINE_FRONTENDS_HF_CONFIGREADER_H

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace bowline::hf {

/// Largest sizes: far above every published model, and such that sizes multiply without overflow.
inline constexpr int64_t kMaxVocabulary = int64_t{1} << 28;
inline constexpr int64_t kMaxWidth = int64_t{1} << 24;
inline constexpr int64_t kMaxHeads = int64_t{1} << 16;
inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxPositions = int64_t{1} << 30;

/// A key that decides the computation of a model.
struct FunctionKey {
  std::optional<nlohmann::json> absent; // the value that an absent key means, where there is one
  bool nullIsValue = false;             // null is a value, and not the same as an absent key
};

/// Reads values out of one JSON object and remembers which keys were asked for. The first error stays and later reads
/// return defaults, so that a parser is a list of reads with one check at its end. A key whose value is null counts as
/// absent, as it does for the library that writes these files.
class ConfigReader {
public:
  /// `object` must outlive the reader. `where` opens every message: "'dir/config.json'" or "...: rope_parameters".
  ConfigReader(const nlohmann::json &object, std::string where) : object(object), where(std::move(where)) {}

  const absl::Status &status() const { return error; }
  /// The words that open every message.
  const std::string &place() const { return where; }

  /// True if the key is there with a value other than null.
  bool has(absl::string_view key) const;
  /// True if the key is there and null, for the few keys whose null is a value and not the default.
  bool isNull(absl::string_view key) const;

  /// An integer in [0, limit].
  int64_t nonNegativeIntegerOr(absl::string_view key, int64_t limit, int64_t fallback);

  /// An integer in [1, limit]; without a fallback the key is required.
  int64_t positiveInteger(absl::string_view key, int64_t limit);
  int64_t positiveIntegerOr(absl::string_view key, int64_t limit, int64_t fallback);

  /// The same where null is a value, which gives 0, and not the default.
  int64_t positiveIntegerOrNull(absl::string_view key, int64_t limit, int64_t fallback);

  /// A finite number greater than zero.
  double positiveNumberOr(absl::string_view key, double fallback);
  /// A finite number of at least zero.
  double nonNegativeNumberOr(absl::string_view key, double fallback);

  bool booleanOr(absl::string_view key, bool fallback);

  /// A string; `choices` are the supported values. Returns the index of the one found.
  size_t choice(absl::string_view key, absl::Span<const absl::string_view> choices);
  size_t choiceOr(absl::string_view key, absl::Span<const absl::string_view> choices, size_t fallback);

  /// Fails unless the key is absent, null or equal to one of `supported` (JSON texts, as in `false` or `"default"`).
  void require(absl::string_view key, absl::Span<const absl::string_view> supported);

  /// The value if it is there and not null. The key counts as read.
  const nlohmann::json *take(absl::string_view key);

  /// The value if it is there and not null, of a key that has no effect on the computation.
  const nlohmann::json *find(absl::string_view key) const;

  /// Counts the key as read, whatever its value.
  void ignore(absl::string_view key) { read.insert(std::string(key)); }

  /// Fails with "<where>: <key> = <value> <problem>".
  void fail(absl::string_view key, absl::string_view problem);
  void fail(absl::Status status);

  /// Says that weights which are said to have another value of this key compute the same: a bound, an initial value.
  void isNoPartOfFunction(absl::string_view key) { function.erase(std::string(key)); }

  /// Keys that no method has read, in order.
  std::vector<std::string> unread() const;

  /// The key that was looked for and is not there whose name is a few letters from \p key; empty without one.
  std::string nearestAbsent(absl::string_view key) const;

  /// Keys whose values were taken and decide the computation.
  const std::map<std::string, FunctionKey> &ofFunction() const { return function; }

private:
  int64_t integer(absl::string_view key, const nlohmann::json &value, int64_t limit, int64_t least = 1);
  double number(absl::string_view key, double fallback, bool zeroAllowed);
  /// Counts the key as read, and takes it as one of the function that means `fallback` where it is absent.
  const nlohmann::json *takeOr(absl::string_view key, nlohmann::json fallback);
  void failMissing(absl::string_view key, absl::string_view expected);

  const nlohmann::json &object;
  std::string where;
  std::set<std::string, std::less<>> read;
  std::map<std::string, FunctionKey> function;
  absl::Status error;
};

} // namespace bowline::hf

#endif // BOWLINE_FRONTENDS_HF_CONFIGREADER_H
