// Parts of tensors against their definition, carried out step by step on arrays of element numbers.

#include "runtime/train/tensors/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "test/Support/test_seed.h"

namespace bowline {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPadding = -1;

// A dense array of element numbers of the whole tensor.
struct Array {
  std::vector<int64_t> shape;
  std::vector<int64_t> data;
};

int64_t Product(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// Pads dimension `d` to a multiple of `parts` and takes the part at `place`.
Array Cut(const Array& whole, size_t d, int64_t parts, int64_t place) {
  const int64_t local = (whole.shape[d] + parts - 1) / parts;
  Array part = {whole.shape, {}};
  part.shape[d] = local;
  part.data.resize(static_cast<size_t>(Product(part.shape)));
  int64_t inner = 1;
  for (size_t i = d + 1; i < whole.shape.size(); ++i) inner *= whole.shape[i];
  for (int64_t i = 0; i < static_cast<int64_t>(part.data.size()); ++i) {
    const int64_t outer = i / (inner * local), along = i / inner % local + place * local;
    part.data[i] = along < whole.shape[d] ? whole.data[(outer * whole.shape[d] + along) * inner + i % inner] : kPadding;
  }
  return part;
}

struct Example {
  RankMesh mesh;
  std::vector<int64_t> shape;
  Sharding sharding;
};

int64_t PlaceOf(const RankMesh& mesh, const std::vector<uint32_t>& axes, int64_t rank) {
  std::vector<int64_t> coordinates(mesh.axes.size());
  for (size_t i = mesh.axes.size(); i-- > 0;) {
    coordinates[i] = rank % mesh.axes[i].size;
    rank /= mesh.axes[i].size;
  }
  int64_t place = 0;
  for (const uint32_t axis : axes) place = place * mesh.axes[axis].size + coordinates[axis];
  return place;
}

int64_t SizeOf(const RankMesh& mesh, const std::vector<uint32_t>& axes) {
  int64_t size = 1;
  for (const uint32_t axis : axes) size *= mesh.axes[axis].size;
  return size;
}

// The memory of a rank.
std::vector<int64_t> MemoryOf(const Example& e, int64_t rank) {
  Array part = {e.sharding.view.empty() ? e.shape : e.sharding.view, {}};
  part.data.resize(static_cast<size_t>(Product(part.shape)));
  std::iota(part.data.begin(), part.data.end(), 0);
  for (size_t d = 0; d < e.sharding.dim_shardings.size(); ++d) {
    part =
        Cut(part, d, SizeOf(e.mesh, e.sharding.dim_shardings[d]), PlaceOf(e.mesh, e.sharding.dim_shardings[d], rank));
  }
  part.shape = {static_cast<int64_t>(part.data.size())};
  return Cut(part, 0, SizeOf(e.mesh, e.sharding.flat), PlaceOf(e.mesh, e.sharding.flat, rank)).data;
}

class RandomExamples {
 public:
  Example Draw() {
    Example e;
    const size_t axes = Below(5);
    for (size_t i = 0; i < axes; ++i) {
      e.mesh.axes.push_back({"a" + std::to_string(i), 1 + static_cast<uint32_t>(Below(4))});
    }
    if (axes > 0 && Below(3) == 0) e.mesh.role_axis = static_cast<int>(Below(axes));
    const size_t dimensions = Below(4);
    for (size_t i = 0; i < dimensions; ++i) e.shape.push_back(Below(20) == 0 ? 0 : 1 + static_cast<int64_t>(Below(9)));
    if (Below(3) == 0) e.sharding.view = ViewOf(Product(e.shape));
    const size_t cuts = e.sharding.view.empty() ? dimensions : e.sharding.view.size();
    e.sharding.dim_shardings.resize(cuts);
    // Axes in random order, each to a dimension, to the flat ones, or to nothing.
    std::vector<uint32_t> order(axes);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (const uint32_t axis : order) {
      if (static_cast<int>(axis) == e.mesh.role_axis) continue;
      const size_t choice = Below(cuts + 3);
      if (choice < cuts) e.sharding.dim_shardings[choice].push_back(axis);
      if (choice == cuts) e.sharding.flat.push_back(axis);
    }
    if (e.mesh.role_axis >= 0) e.sharding.role = static_cast<uint32_t>(Below(e.mesh.axes[e.mesh.role_axis].size));
    return e;
  }

 private:
  size_t Below(size_t limit) { return random_() % limit; }

  // Another shape with as many elements.
  std::vector<int64_t> ViewOf(int64_t elements) {
    std::vector<int64_t> view;
    for (int64_t factor = 2; factor <= elements; ++factor) {
      while (elements % factor == 0 && Below(2) == 0) {
        view.push_back(factor);
        elements /= factor;
      }
    }
    view.push_back(elements);
    std::shuffle(view.begin(), view.end(), random_);
    return view;
  }

  std::mt19937 random_{TestSeed()};
};

std::string Describe(const Example& e) {
  std::string text = "mesh";
  for (const auto& axis : e.mesh.axes) text += " " + std::to_string(axis.size);
  text += ", role axis " + std::to_string(e.mesh.role_axis) + ", shape " + testing::PrintToString(e.shape);
  text += ", view " + testing::PrintToString(e.sharding.view) + ", cuts " +
          testing::PrintToString(e.sharding.dim_shardings);
  return text + ", flat " + testing::PrintToString(e.sharding.flat);
}

TEST(ShardingTest, PartsAreThoseOfTheDefinition) {
  RandomExamples examples;
  for (int example = 0; example < 3000; ++example) {
    const Example e = examples.Draw();
    SCOPED_TRACE(Describe(e));
    const auto tensor = ShardedTensor::Create(e.mesh, e.shape, e.sharding);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    const TensorDivision &memory = tensor->memory(), &storage = tensor->storage();
    ASSERT_EQ(memory.elements(), Product(e.shape));
    std::vector<int> stored(static_cast<size_t>(Product(e.shape)));  // how often
    for (int64_t rank = 0; rank < e.mesh.ranks(); ++rank) {
      const std::vector<int64_t> expected = MemoryOf(e, rank);
      ASSERT_EQ(memory.memory_elements(), static_cast<int64_t>(expected.size()));
      // In memory.
      std::vector<int64_t> actual(expected.size(), kPadding);
      int64_t elements = 0;
      ASSERT_TRUE(memory
                      .ForEachRun(tensor->MemoryPlace(rank),
                                  [&](const TensorDivision::Run& run) {
                                    EXPECT_GT(run.count, 0);
                                    elements += run.count;
                                    for (int64_t i = 0; i < run.count; ++i) actual.at(run.local + i) = run.global + i;
                                    return absl::OkStatus();
                                  })
                      .ok());
      ASSERT_EQ(actual, expected) << "rank " << rank;
      ASSERT_EQ(elements, memory.StoredElements(tensor->MemoryPlace(rank)));
      // On disk.
      if (!tensor->HasRole(rank)) continue;
      const int64_t place = tensor->StoragePlace(rank);
      ASSERT_EQ(tensor->RankAt(place), rank);
      int64_t offset = 0;
      ASSERT_TRUE(storage
                      .ForEachRun(place,
                                  [&](const TensorDivision::Run& run) {
                                    for (int64_t i = 0; i < run.count; ++i, ++offset) {
                                      EXPECT_EQ(expected.at(run.local + i), run.global + i);
                                      ++stored.at(run.global + i);
                                      const auto found = storage.Locate(run.global + i);
                                      EXPECT_EQ(found.place, place);
                                      EXPECT_EQ(found.offset, offset);
                                      EXPECT_EQ(found.count, run.count - i);
                                    }
                                    return absl::OkStatus();
                                  })
                      .ok());
      ASSERT_EQ(offset, storage.StoredElements(place));
      ASSERT_EQ(Product(storage.StoredShape(place)), offset);
    }
    ASSERT_THAT(stored, testing::Each(1));
  }
}

TEST(ShardingTest, WhatDoesNotFitIsAnError) {
  const RankMesh mesh = {{{"pp", 2}, {"dp", 3}, {"tp", 4}}, 0};
  const auto error = [&](const std::vector<int64_t>& shape, const Sharding& sharding) {
    return std::string(ShardedTensor::Create(mesh, shape, sharding).status().message());
  };
  EXPECT_THAT(error({8, 8}, {.dim_shardings = {{1}}}), HasSubstr("not sharded by dimension"));
  EXPECT_THAT(error({8, 8}, {.dim_shardings = {{1}, {1}}}), HasSubstr("axis 'dp' divides it twice"));
  EXPECT_THAT(error({8, 8}, {.dim_shardings = {{1}, {}}, .flat = {1}}), HasSubstr("axis 'dp' divides it twice"));
  EXPECT_THAT(error({8, 8}, {.dim_shardings = {{0}, {}}}), HasSubstr("divides no tensor"));
  EXPECT_THAT(error({8, 8}, {.dim_shardings = {{3}, {}}}), HasSubstr("divides no tensor"));
  EXPECT_THAT(error({8, 8}, {.role = 2}), HasSubstr("no role 2"));
  EXPECT_THAT(error({8, 8}, {.view = {8, 9}}), HasSubstr("other elements"));
  EXPECT_THAT(error({-8, -8}, {}), HasSubstr("negative"));
  EXPECT_THAT(error({int64_t{1} << 40, int64_t{1} << 40}, {}), HasSubstr("too many elements"));
  EXPECT_THAT(error({0, int64_t{1} << 40, int64_t{1} << 40}, {}), HasSubstr("too many elements"));
}

}  // namespace
}  // namespace bowline
