//===- ShardedModel.h - Models that are small, and divide among ranks
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_SHARDING_SHARDEDMODEL_H
#define BOWLINE_TEST_UNIT_SHARDING_SHARDEDMODEL_H

#include "dialects/Graph/HostTensor.h"
#include "frontends/hf/Import.h"
#include "mlir/IR/BuiltinOps.h"
#include "test/Unit/Frontends/HfTestSupport.h"

#include <cmath>
#include <limits>
#include <random>

namespace bowline::test {

struct ModelSizes {
  int64_t vocabulary = 20, intermediate = 20, heads = 4, keyHeads = 4, headDim = 6;
  int64_t layers = 0; // 0: as many as the model has
};

/// One of the models of the tests with other sizes, in microbatches of `batch` sequences of `seq` tokens. Null after a
/// test failure.
inline mlir::OwningOpRef<mlir::ModuleOp> smallModel(mlir::MLIRContext &context, const std::string &name,
                                                    const ModelSizes &sizes, int64_t batch, int64_t seq,
                                                    hf::ImportMode mode = hf::ImportMode::Train) {
  hf::ModelConfig config = hf::test::configOf(name);
  config.hidden = sizes.heads * sizes.headDim, config.heads = sizes.heads, config.kvHeads = sizes.keyHeads;
  config.headDim = sizes.headDim;
  if (sizes.layers > 0)
    config.layers = sizes.layers;
  config.intermediate = sizes.intermediate, config.vocabulary = sizes.vocabulary;
  hf::ImportOptions options;
  options.batch = batch;
  options.seq = seq;
  options.mode = mode;
  absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> module = hf::importModel(context, config, options);
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? std::move(*module) : mlir::OwningOpRef<mlir::ModuleOp>();
}

/// [microbatches, batch, seq], or [batch, seq] for one; as labels some of them do not count.
inline graph::HostTensor randomTokens(std::mt19937 &random, int64_t microbatches, int64_t batch, int64_t seq,
                                      int64_t vocabulary, bool labels) {
  std::vector<int64_t> shape = {batch, seq};
  if (microbatches > 1)
    shape.insert(shape.begin(), microbatches);
  graph::HostTensor tokens(shape);
  for (double &token : tokens.data)
    token = labels && random() % 5 == 0 ? -100.0 : static_cast<double>(random() % vocabulary);
  return tokens;
}

/// The largest difference, relative to the largest element; infinite where one is not a number.
inline double distance(const graph::HostTensor &a, const graph::HostTensor &b) {
  double scale = 1e-30, worst = 0;
  for (auto [x, y] : llvm::zip_equal(a.data, b.data)) {
    scale = std::max(scale, std::abs(x));
    double difference = std::abs(x - y);
    worst = std::max(worst, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
  }
  return worst / scale;
}

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_SHARDING_SHARDEDMODEL_H
