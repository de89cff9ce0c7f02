#include "kernels/registry/valid_rows.h"

#include <map>
#include <utility>

namespace bowline::kernels {

const ValidRows* FindValidRows(std::string_view kernel, bool leaves_rows_out) {
  static const auto* all = new std::map<std::pair<std::string_view, bool>, ValidRows>{
      {{"gather_rows", true}, {2, {1, 3}}},                      // ids, out
      {{"grouped_matmul", false}, {2, {0}, /*zeros=*/{3}}},      // rows, out
      {{"grouped_matmul", true}, {2, {0, 3}}},                   // rows, out
      {{"grouped_outer", false}, {2, {0, 1}}},                   // lhs, rhs
      {{"scatter_add_rows", true}, {2, {0, 1}, /*zeros=*/{0}}},  // updates, ids
  };
  const auto found = all->find({kernel, leaves_rows_out});
  return found == all->end() ? nullptr : &found->second;
}

}  // namespace bowline::kernels
