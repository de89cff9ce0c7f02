//===- Registration.cpp - Dialects and passes of every compiler tool
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Support/Registration.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphDialect.h"
#include "dialects/Plan/PlanDialect.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Fusion/Passes.h"
#include "passes/Hoisting/Passes.h"
#include "passes/Import/Passes.h"
#include "passes/Local/Passes.h"
#include "passes/Memory/Passes.h"
#include "passes/Overlap/Passes.h"
#include "passes/Scheduling/Passes.h"
#include "passes/Sharding/Passes.h"
#include "passes/Strategy/Passes.h"
#include "passes/Training/Passes.h"

void bowline::registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::math::MathDialect,
                  mlir::tensor::TensorDialect>();
  registry.insert<dist::DistDialect, graph::GraphDialect, plan::PlanDialect, stage::StageDialect>();
  graph::registerElementwiseModels(registry);
}

void bowline::registerAllPasses() {
  mlir::registerTransformsPasses();
  registerStrategyPasses();
  registerImportPasses();
  registerTrainingPasses();
  registerShardingPasses();
  registerLocalPasses();
  registerFusionPasses();
  registerSchedulingPasses();
  registerHoistingPasses();
  registerOverlapPasses();
  registerMemoryPasses();
}
