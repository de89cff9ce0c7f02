//===- ParameterList.cpp - The parameters that a family declares
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/hf/ParameterList.h"

#include "absl/strings/str_cat.h"

using namespace bowline::hf;

void ParameterList::enterLayer(int64_t index, absl::string_view keys) {
  layer = index;
  symbolPrefix = absl::StrCat("layers.", index, ".");
  keyPrefix = absl::StrCat(keys, index, ".");
}

void ParameterList::leaveLayers() {
  layer = std::nullopt;
  symbolPrefix = keyPrefix = "";
}

void ParameterList::normal(Role role, absl::string_view symbol, absl::string_view key, std::vector<int64_t> shape,
                           double stddev) {
  add(std::move(role), symbol, key, std::move(shape), {Initial::Kind::Normal, stddev});
}

void ParameterList::normalTransposed(Role role, absl::string_view symbol, absl::string_view key,
                                     std::vector<int64_t> shape, double stddev) {
  normal(std::move(role), symbol, key, std::move(shape), stddev);
  parameters.back().isTransposed = true;
}

void ParameterList::fill(Role role, absl::string_view symbol, absl::string_view key, int64_t size, double value) {
  add(std::move(role), symbol, key, {size}, {Initial::Kind::Fill, value});
}

void ParameterList::add(Role role, absl::string_view symbol, absl::string_view key, std::vector<int64_t> shape,
                        Initial initial) {
  parameters.push_back({absl::StrCat(symbolPrefix, symbol), absl::StrCat(keyPrefix, key), std::move(shape), initial,
                        std::move(role), layer});
}
