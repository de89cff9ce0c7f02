//===- ConfigReader.cpp - Typed access to a config.json that forgets no key
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/ConfigReader.h"

#include "absl/strings/str_join.h"
#include "runtime/base/edit_distance.h"

#include <algorithm>
#include <cmath>

using namespace bowline;
using namespace bowline::hf;
using nlohmann::json;

/// The value as JSON, short enough for a message; never throws, whatever bytes the strings hold.
static std::string printed(const json &value) {
  constexpr size_t kLongest = 120;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  if (text.size() > kLongest)
    text = text.substr(0, kLongest) + "...";
  return text;
}

/// "a", "a or b", "a, b or c".
static std::string alternatives(absl::Span<const absl::string_view> names) {
  if (names.size() < 2)
    return absl::StrJoin(names, "");
  return absl::StrCat(absl::StrJoin(names.subspan(0, names.size() - 1), ", "), " or ", names.back());
}

bool ConfigReader::has(absl::string_view key) const {
  auto found = object.find(std::string(key));
  return found != object.end() && !found->is_null();
}

bool ConfigReader::isNull(absl::string_view key) const {
  auto found = object.find(std::string(key));
  return found != object.end() && found->is_null();
}

const json *ConfigReader::find(absl::string_view key) const {
  return has(key) ? &*object.find(std::string(key)) : nullptr;
}

const json *ConfigReader::take(absl::string_view key) {
  ignore(key);
  function.try_emplace(std::string(key));
  return find(key);
}

const json *ConfigReader::takeOr(absl::string_view key, json fallback) {
  const json *value = take(key);
  function[std::string(key)].absent = std::move(fallback);
  return value;
}

void ConfigReader::fail(absl::Status status) {
  if (error.ok())
    error = std::move(status);
}

void ConfigReader::fail(absl::string_view key, absl::string_view problem) {
  auto found = object.find(std::string(key));
  std::string value = found == object.end() ? "nothing" : printed(*found);
  fail(absl::InvalidArgumentError(absl::StrCat(where, ": \"", key, "\" = ", value, " ", problem)));
}

void ConfigReader::failMissing(absl::string_view key, absl::string_view expected) {
  fail(absl::InvalidArgumentError(absl::StrCat(where, ": the key \"", key, "\" is missing; it should be ", expected)));
}

int64_t ConfigReader::integer(absl::string_view key, const json &value, int64_t limit, int64_t least) {
  // The library keeps integers beyond 63 bits as unsigned and beyond 64 as floating point; both are too large.
  bool fits = value.is_number_integer() &&
              (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(limit));
  if (fits && value.get<int64_t>() >= least && value.get<int64_t>() <= limit)
    return value.get<int64_t>();
  fail(key, absl::StrCat("is not supported; it should be an integer from ", least, " to ", limit));
  return least;
}

int64_t ConfigReader::nonNegativeIntegerOr(absl::string_view key, int64_t limit, int64_t fallback) {
  const json *value = takeOr(key, fallback);
  return value ? integer(key, *value, limit, /*least=*/0) : fallback;
}

int64_t ConfigReader::positiveInteger(absl::string_view key, int64_t limit) {
  if (const json *value = take(key))
    return integer(key, *value, limit);
  failMissing(key, absl::StrCat("an integer from 1 to ", limit));
  return 1;
}

int64_t ConfigReader::positiveIntegerOr(absl::string_view key, int64_t limit, int64_t fallback) {
  const json *value = takeOr(key, fallback);
  return value ? integer(key, *value, limit) : fallback;
}

int64_t ConfigReader::positiveIntegerOrNull(absl::string_view key, int64_t limit, int64_t fallback) {
  int64_t value = positiveIntegerOr(key, limit, isNull(key) ? 0 : fallback);
  function[std::string(key)] = {json(fallback), /*nullIsValue=*/true};
  return value;
}

double ConfigReader::number(absl::string_view key, double fallback, bool zeroAllowed) {
  const json *value = takeOr(key, fallback);
  if (!value)
    return fallback;
  double number = value->is_number() ? value->get<double>() : std::nan("");
  if (std::isfinite(number) && (number > 0 || (zeroAllowed && number == 0)))
    return number;
  fail(key, zeroAllowed ? "is not supported; it should be a number of at least 0"
                        : "is not supported; it should be a number greater than 0");
  return fallback;
}

double ConfigReader::positiveNumberOr(absl::string_view key, double fallback) {
  return number(key, fallback, /*zeroAllowed=*/false);
}

double ConfigReader::nonNegativeNumberOr(absl::string_view key, double fallback) {
  return number(key, fallback, /*zeroAllowed=*/true);
}

bool ConfigReader::booleanOr(absl::string_view key, bool fallback) {
  const json *value = takeOr(key, fallback);
  if (!value)
    return fallback;
  if (value->is_boolean())
    return value->get<bool>();
  fail(key, "is not supported; it should be true or false");
  return fallback;
}

size_t ConfigReader::choice(absl::string_view key, absl::Span<const absl::string_view> choices) {
  if (!has(key)) {
    ignore(key);
    failMissing(key, alternatives(choices));
    return 0;
  }
  size_t found = choiceOr(key, choices, 0);
  function[std::string(key)].absent.reset();
  return found;
}

size_t ConfigReader::choiceOr(absl::string_view key, absl::Span<const absl::string_view> choices, size_t fallback) {
  const json *value = takeOr(key, std::string(choices[fallback]));
  if (!value)
    return fallback;
  if (value->is_string()) {
    auto found = std::find(choices.begin(), choices.end(), value->get_ref<const std::string &>());
    if (found != choices.end())
      return static_cast<size_t>(found - choices.begin());
  }
  fail(key, absl::StrCat("is not supported; use ", alternatives(choices)));
  return fallback;
}

void ConfigReader::require(absl::string_view key, absl::Span<const absl::string_view> supported) {
  const json *value = take(key);
  // Compared as JSON, so that 1 and 1.0 are the same.
  if (!value || std::any_of(supported.begin(), supported.end(), [&](absl::string_view text) {
        return *value == json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
      }))
    return;
  fail(key, absl::StrCat("changes the mathematics in a way that is not supported; the only supported value",
                         supported.size() == 1 ? " is " : "s are ", alternatives(supported)));
}

std::string ConfigReader::nearestAbsent(absl::string_view key) const {
  constexpr size_t kMostEdits = 2;
  std::vector<std::string> absent;
  for (const std::string &known : read)
    if (!object.contains(known))
      absent.push_back(known);
  const std::string name(key);
  const auto nearest = FindNearest(name, absent);
  return nearest != absent.end() && EditDistance(name, *nearest) <= kMostEdits ? *nearest : "";
}

std::vector<std::string> ConfigReader::unread() const {
  std::vector<std::string> keys;
  for (const auto &[key, value] : object.items())
    if (!read.count(key))
      keys.push_back(key);
  return keys;
}
