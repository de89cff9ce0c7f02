#ifndef BOWLINE_KERNELS_CPU_GROUPED_GROUPED_REFERENCE_H_
#define BOWLINE_KERNELS_CPU_GROUPED_GROUPED_REFERENCE_H_

// Reference implementations of this folder's kernels, in f64 and in the plainest way, for offsets that ascend and are
// at most the number of rows. They follow the definitions and share no code with the fast kernels.

#include <cstdint>
#include <vector>

namespace bowline::kernels::reference {

struct GroupedSize {
  int64_t rows, k, n, groups;
};

// Returns [rows, n]. rows [rows, k], matrices [groups, k, n] or, if `transposed`, [groups, n, k].
std::vector<double> GroupedMatmul(const GroupedSize& size, bool transposed, const std::vector<double>& rows,
                                  const std::vector<double>& matrices, const std::vector<int32_t>& offsets);
// Returns [groups, k, n]. lhs [rows, k], rhs [rows, n].
std::vector<double> GroupedOuter(const GroupedSize& size, const std::vector<double>& lhs,
                                 const std::vector<double>& rhs, const std::vector<int32_t>& offsets);

}  // namespace bowline::kernels::reference

#endif  // BOWLINE_KERNELS_CPU_GROUPED_GROUPED_REFERENCE_H_
