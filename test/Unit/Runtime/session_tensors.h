#ifndef BOWLINE_TEST_UNIT_RUNTIME_SESSION_TENSORS_H_
#define BOWLINE_TEST_UNIT_RUNTIME_SESSION_TENSORS_H_

#include <gtest/gtest.h>

#include <vector>

#include "runtime/executor/session.h"

namespace bowline::testing {

inline TensorRef Found(const absl::StatusOr<TensorRef>& tensor) {
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return tensor.ok() ? *tensor : TensorRef();
}

// All elements of a tensor; test failures where there is no such tensor, or it cannot be read or written.
template <typename T>
std::vector<T> ReadTensor(const Session& session, const absl::StatusOr<TensorRef>& tensor) {
  const TensorRef found = Found(tensor);
  std::vector<T> elements(found.bytes / sizeof(T));
  const absl::Status read = session.ReadAll(found, absl::MakeSpan(elements));
  EXPECT_TRUE(read.ok()) << read;
  return elements;
}

template <typename T>
void WriteTensor(Session& session, const absl::StatusOr<TensorRef>& tensor, const std::vector<T>& elements) {
  const TensorRef found = Found(tensor);
  EXPECT_EQ(found.bytes, elements.size() * sizeof(T));
  const absl::Status written = session.WriteAll<T>(found, elements);
  EXPECT_TRUE(written.ok()) << written;
}

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_RUNTIME_SESSION_TENSORS_H_
