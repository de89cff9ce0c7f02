#include "runtime/train/data/dataset_group.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bowline {
namespace {

absl::Status CheckWeight(absl::string_view text, double weight) {
  constexpr double kMost = 1e12;
  if (weight > 0 && weight <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the weight '", text,
                   "' of data is not a number above 0, up to 1e12; leave out a file that is not "
                   "to be drawn from"));
}

// Takes the weight off the front of WEIGHT:PATH; 0 when there is none.
absl::StatusOr<double> ConsumeWeight(std::string* path) {
  const size_t colon = path->find(':');
  double weight = 0;
  const absl::string_view front = absl::string_view(*path).substr(0, colon);
  if (colon == std::string::npos || !absl::SimpleAtod(front, &weight)) return 0;
  BOWLINE_RETURN_IF_ERROR(CheckWeight(front, weight));
  path->erase(0, colon + 1);
  return weight;
}

absl::Status CheckAlike(absl::Span<const DataFile> files) {
  const auto has_weight = [](const DataFile& file) { return file.weight > 0; };
  const auto other = std::find_if(files.begin(), files.end(),
                                  [&](const DataFile& file) { return has_weight(file) != has_weight(files.front()); });
  if (other == files.end()) return absl::OkStatus();
  const DataFile& bare = has_weight(*other) ? files.front() : *other;
  return absl::InvalidArgumentError(absl::StrCat("the data file '", bare.path,
                                                 "' has no weight, but others have one; "
                                                 "give all files a weight, as 0.7:",
                                                 bare.path, ", or none"));
}

}  // namespace

absl::StatusOr<std::vector<DataFile>> ParseDataFiles(absl::Span<const std::string> arguments) {
  std::vector<DataFile> files;
  for (const std::string& argument : arguments) {
    double number = 0;
    if (absl::SimpleAtod(argument, &number)) {
      return absl::InvalidArgumentError(absl::StrCat("'", argument,
                                                     "' is a weight without a data file; give both as one, ", argument,
                                                     ":FILE, or ./", argument, " if a file has this name"));
    }
    DataFile file{argument, 0};
    BOWLINE_ASSIGN_OR_RETURN(file.weight, ConsumeWeight(&file.path));
    if (file.path.empty()) return absl::InvalidArgumentError("the name of a data file is empty; give its path");
    files.push_back(std::move(file));
  }
  BOWLINE_RETURN_IF_ERROR(CheckAlike(files));
  return files;
}

absl::StatusOr<std::unique_ptr<TokenDataset>> OpenDataFiles(absl::Span<const DataFile> files, DatasetOptions options) {
  if (files.size() == 1) return OpenTokenDataset(files.front().path, options);
  std::vector<DatasetGroup::Member> members;
  for (const DataFile& file : files) {
    BOWLINE_ASSIGN_OR_RETURN(std::unique_ptr<TokenDataset> dataset, OpenTokenDataset(file.path, options));
    members.push_back({std::move(dataset), file.weight});
  }
  return std::make_unique<DatasetGroup>(std::move(members));
}

DatasetGroup::DatasetGroup(std::vector<Member> members) : members_(std::move(members)) {
  for (const Member& member : members_) first_.push_back(first_.back() + member.dataset->size());
  path_ = absl::StrJoin(members_, ", ",
                        [](std::string* out, const Member& member) { absl::StrAppend(out, member.dataset->path()); });
}

int64_t DatasetGroup::max_possible_id() const {
  int64_t most = 0;
  for (const Member& member : members_) most = std::max(most, member.dataset->max_possible_id());
  return most;
}

bool DatasetGroup::MayBeOutside() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.dataset->MayBeOutside(); });
}

std::string DatasetGroup::description() const {
  return absl::StrJoin(members_, ", ", [](std::string* out, const Member& member) {
    absl::StrAppend(out, member.dataset->description());
  });
}

absl::Status DatasetGroup::Read(int64_t begin, int64_t count, int32_t* out) const {
  if (begin < 0 || count < 0 || begin > size() || count > size() - begin) {
    return absl::OutOfRangeError(absl::StrCat("'", path_, "': tokens [", begin, ", ", begin, " + ", count,
                                              ") are not inside the files' ", size(), " tokens"));
  }
  for (size_t i = 0; i < members_.size() && count > 0; ++i) {
    if (begin >= first_[i + 1]) continue;
    const int64_t here = std::min(count, first_[i + 1] - begin);
    BOWLINE_RETURN_IF_ERROR(members_[i].dataset->Read(begin - first_[i], here, out));
    begin += here;
    count -= here;
    out += here;
  }
  return absl::OkStatus();
}

absl::Status DatasetGroup::CheckIndex() const {
  for (const Member& member : members_) BOWLINE_RETURN_IF_ERROR(member.dataset->CheckIndex());
  return absl::OkStatus();
}

std::vector<DatasetPart> DatasetGroup::Parts() const {
  std::vector<DatasetPart> parts;
  for (const Member& member : members_) parts.push_back({member.dataset.get(), member.weight});
  return parts;
}

}  // namespace bowline
