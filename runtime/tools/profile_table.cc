#include "runtime/tools/profile_table.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_format.h"

namespace bowline {

std::string ProfileTable(absl::Span<const ProfileRow> rows) {
  std::map<std::string, ProfileRow> by_name;
  double total = 0;
  for (const ProfileRow& row : rows) {
    ProfileRow& sum = by_name[row.name];
    sum.name = row.name;
    sum.launches += row.launches;
    sum.seconds += row.seconds;
    sum.flops += row.flops;
    sum.bytes_moved += row.bytes_moved;
    total += row.seconds;
  }
  std::vector<ProfileRow> sorted;
  for (auto& [name, row] : by_name) sorted.push_back(std::move(row));
  std::sort(sorted.begin(), sorted.end(), [](const ProfileRow& a, const ProfileRow& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.name < b.name;
  });
  size_t width = 6;
  for (const ProfileRow& row : sorted) width = std::max(width, row.name.size());
  const auto padded = [&](const std::string& name) { return name + std::string(width - name.size(), ' '); };
  std::string table =
      absl::StrFormat("%s %10s %10s %6s %9s %9s\n", padded("kernel"), "launches", "ms", "%", "GFLOP/s", "GB/s");
  for (const ProfileRow& row : sorted) {
    absl::StrAppendFormat(&table, "%s %10d %10.2f %5.1f%% %9.2f %9.2f\n", padded(row.name), row.launches,
                          row.seconds * 1e3, total > 0 ? 100 * row.seconds / total : 0.0,
                          row.seconds > 0 ? row.flops / row.seconds * 1e-9 : 0.0,
                          row.seconds > 0 ? row.bytes_moved / row.seconds * 1e-9 : 0.0);
  }
  absl::StrAppendFormat(&table, "%s %10s %10.2f\n", padded("all"), "", total * 1e3);
  return table;
}

}  // namespace bowline
