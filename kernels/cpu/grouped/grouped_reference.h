#ifndef BOWLINE_KERNELS_CPU_GROUPED_GROUPED_REFERENCE_H_
#define BOWLINE_KERNELS_CPU_GROUPED_GROUPED_REFERENCE_H_

// References of the kernels of this folder, in f64 and in the plainest way, for offsets that ascend within the rows.
// Written from the definitions, sharing no code with the fast versions.

#include <cstdint>
#include <vector>

namespace bowline::kernels::reference {

struct GroupedSize {
  int64_t rows, k, n, groups;
};

// rows [rows, k], matrices [groups, k, n] or, transposed, [groups, n, k].
std::vector<double> GroupedMatmul(const GroupedSize& size, bool transposed, const std::vector<double>& rows,
                                  const std::vector<double>& matrices, const std::vector<int32_t>& offsets);
// lhs [rows, k], rhs [rows, n].
std::vector<double> GroupedOuter(const GroupedSize& size, const std::vector<double>& lhs,
                                 const std::vector<double>& rhs, const std::vector<int32_t>& offsets);

}  // namespace bowline::kernels::reference

#endif  // BOWLINE_KERNELS_CPU_GROUPED_GROUPED_REFERENCE_H_
