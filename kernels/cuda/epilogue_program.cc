#include "kernels/cuda/epilogue_program.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/grid.h"

namespace bowline::kernels::cuda {
namespace {

// Rows and columns of a tile, so that all tiles of A and B are as aligned as A and B.
constexpr int64_t kTileUnit = 64;
constexpr int64_t kWidestTile = 8192;
constexpr int64_t kLanes = 32, kSlices = 8;  // of epilogue.cu

Parameter ArgumentOf(int index, int64_t bytes = 0) {
  return Parameter::Argument(U32(index), static_cast<uint64_t>(bytes));
}
// 0 where the product has none.
Parameter AddressOf(int index, int64_t bytes) { return index < 0 ? Parameter::I64(0) : ArgumentOf(index, bytes); }

LibraryProduct WithoutEpilogue(LibraryProduct product) {
  product.epilogue = nullptr;
  product.result_argument = 2;
  product.vector_argument = product.matrix_argument = -1;
  return product;
}

DeviceLaunch OverTile(std::string function, int64_t rows, int64_t columns, std::vector<Parameter> parameters) {
  return {std::move(function),
          {U32(CeilDiv(columns, kBlockThreads)), U32(std::min(rows, kMaxBlocksY)), 1},
          {kBlockThreads, 1, 1},
          0,
          std::move(parameters)};
}

DeviceLaunch Sums(const LibraryProduct& product) {
  const bool of_a = product.epilogue->sums == 'a';
  const int64_t count = of_a ? product.m : product.n;
  const int64_t stride = of_a ? product.a[1] : product.b[2], k_stride = of_a ? product.a[2] : product.b[1];
  const bool along = k_stride == 1;
  DeviceLaunch launch = {absl::StrCat("bowline_operand_sums_", along ? "along_" : "", NameOf(product.operands)),
                         {U32(CeilDiv(count, along ? kSlices : kLanes)), 1, 1},
                         {kLanes, kSlices, 1},
                         along ? 0 : U32(kLanes * kSlices * 4),
                         {ArgumentOf(of_a ? 0 : 1), ArgumentOf(product.vector_argument), Parameter::I64(count),
                          Parameter::I64(product.k), Parameter::I64(stride)}};
  if (!along) launch.parameters.push_back(Parameter::I64(k_stride));
  return launch;
}

// In f32: the product becomes C, where it stays, or to which the bias is added.
EpilogueProgram InPlace(const LibraryProduct& product, size_t scratch_bytes) {
  DeviceLaunch launch = product.epilogue->sums != 0
                            ? Sums(product)
                            : OverTile("bowline_product_bias_f32", product.m, product.n,
                                       {ArgumentOf(product.vector_argument), ArgumentOf(product.result_argument),
                                        Parameter::I64(product.m), Parameter::I64(product.n)});
  return {scratch_bytes,
          {{WithoutEpilogue(product),
            {ArgumentOf(0), ArgumentOf(1), ArgumentOf(product.result_argument)},
            std::move(launch)}}};
}

struct Tile {
  int64_t row, column, rows, columns;
};

EpilogueStep StepOfTile(const LibraryProduct& product, const Tile& tile, uint64_t begin) {
  const auto operand_bytes = static_cast<int64_t>(SizeOf(product.operands)),
             result_bytes = static_cast<int64_t>(SizeOf(product.result));
  const Parameter at = Parameter::Scratch(begin);
  LibraryProduct own = WithoutEpilogue(product);
  own.m = tile.rows;
  own.n = tile.columns;
  own.c = {0, tile.columns, 1};
  own.result = DType::kF32;
  const int64_t inside = (tile.row * product.n + tile.column) * result_bytes;
  const Parameter c = ArgumentOf(product.result_argument, inside), matrix = AddressOf(product.matrix_argument, inside),
                  rows = Parameter::I64(tile.rows), columns = Parameter::I64(tile.columns),
                  leading = Parameter::I64(product.n);
  DeviceLaunch launch = product.epilogue->gradient
                            ? OverTile("bowline_product_gelu_gradient_bf16", tile.rows, tile.columns,
                                       {at, matrix, c, rows, columns, leading})
                            : OverTile("bowline_product_epilogue_bf16", tile.rows, tile.columns,
                                       {at, AddressOf(product.vector_argument, tile.column * result_bytes), c, matrix,
                                        rows, columns, leading, Parameter::I32(product.epilogue->gelu ? 1 : 0)});
  return {std::move(own),
          {ArgumentOf(0, tile.row * product.a[1] * operand_bytes),
           ArgumentOf(1, tile.column * product.b[2] * operand_bytes), at},
          std::move(launch)};
}

}  // namespace

absl::StatusOr<EpilogueProgram> ProgramWithoutLibraryEpilogue(const LibraryProduct& product, size_t scratch_bytes) {
  if (product.result == DType::kF32) return InPlace(product, scratch_bytes);
  if (scratch_bytes < kLeastEpilogueWorkspace) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan gives it ", scratch_bytes, " bytes of workspace, and ", kLeastEpilogueWorkspace,
                     " are needed for a product and its epilogue '", std::string(product.epilogue->name),
                     "' one after another; compile with --disable-step ", std::string(StepOf(*product.epilogue))));
  }
  // The tile gets at most three quarters, the library gets the rest.
  const auto most = static_cast<int64_t>(scratch_bytes / 4 * 3 / sizeof(float));
  const int64_t columns = std::min({product.n, kWidestTile, most / kTileUnit / kTileUnit * kTileUnit});
  const int64_t rows = std::min(product.m, most / columns / kTileUnit * kTileUnit);
  const int64_t tile_bytes = CeilDiv(rows * columns * static_cast<int64_t>(sizeof(float)), 256) * 256;
  const size_t begin = (scratch_bytes - static_cast<size_t>(tile_bytes)) / 256 * 256;
  EpilogueProgram program = {begin, {}};
  for (int64_t row = 0; row < product.m; row += rows) {
    for (int64_t column = 0; column < product.n; column += columns) {
      const Tile tile = {row, column, std::min(rows, product.m - row), std::min(columns, product.n - column)};
      program.steps.push_back(StepOfTile(product, tile, begin));
    }
  }
  return program;
}

}  // namespace bowline::kernels::cuda
