// Times each kernel of a plan alone on a device, beside what the device can do: the bandwidth of a large copy, and the
// rate of a large product.
//
// Usage: bowline-card-bench PLAN DRIVER BESIDE COPY_BYTES PRODUCT SECONDS JSON
//
//   DRIVER      as in bowline run
//   BESIDE      another choice of the driver, whose products are timed too: with tune=1 the library's fastest; or ''
//   COPY_BYTES  bytes of the copy. Launches of a kernel go through at least as many bytes before they come to the same
//               ones again, up to 32 sets of arguments, so that no cache holds them
//   PRODUCT     m, n and k of the product, in bf16
//   SECONDS     for each kernel, at most; three measurements are always taken
//   JSON        the file for the results
//
// A measurement is as many launches as take a millisecond (at most 200), between two events of the stream; what is
// printed is the median and half the distance of the quartiles. Where a launch takes less than the host needs to issue
// one, that is what is measured. Inputs are random numbers; row numbers are below the number of rows. The device says
// its own name.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/atomic_file.h"
#include "runtime/drivers/builtin_drivers.h"
#include "runtime/executor/binder.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"
#include "types/half.h"

namespace bowline {
namespace {

struct Options {
  std::string plan, driver, beside, json;
  size_t copy_bytes = 0;
  int64_t product = 0;
  double seconds = 0;
};

// Seconds of one launch.
struct Times {
  double median = 0, spread = 0;  // half the distance of the quartiles
  size_t measurements = 0;
};

using Memory = std::vector<std::unique_ptr<hal::Allocation>>;

// A device with a stream, and the clock of both.
class Bench {
 public:
  static absl::StatusOr<std::unique_ptr<Bench>> Open(const std::string& driver, int threads) {
    BOWLINE_ASSIGN_OR_RETURN(hal::DriverChoice choice, hal::ParseDriverChoice(driver));
    hal::DeviceOptions options;
    options.threads = threads;
    options.settings = std::move(choice.settings);
    auto bench = std::make_unique<Bench>();
    BOWLINE_ASSIGN_OR_RETURN(bench->device_, AllDrivers("").CreateDevice(choice.name, options));
    BOWLINE_ASSIGN_OR_RETURN(bench->stream_, bench->device_->CreateStream());
    BOWLINE_ASSIGN_OR_RETURN(bench->begin_, bench->device_->CreateEvent(hal::EventMode::kTimed));
    BOWLINE_ASSIGN_OR_RETURN(bench->end_, bench->device_->CreateEvent(hal::EventMode::kTimed));
    return bench;
  }

  hal::Device& device() { return *device_; }
  hal::Stream& stream() { return *stream_; }

  // `issue(i)` issues the launch number i.
  absl::StatusOr<Times> Measure(double seconds, absl::FunctionRef<absl::Status(size_t)> issue) {
    size_t next = 0;
    const auto run = [&](size_t launches) -> absl::StatusOr<double> {
      BOWLINE_RETURN_IF_ERROR(stream_->Record(*begin_));
      for (size_t i = 0; i < launches; ++i) BOWLINE_RETURN_IF_ERROR(issue(next++));
      BOWLINE_RETURN_IF_ERROR(stream_->Record(*end_));
      BOWLINE_RETURN_IF_ERROR(stream_->Synchronize());
      BOWLINE_ASSIGN_OR_RETURN(const int64_t from, begin_->Time());
      BOWLINE_ASSIGN_OR_RETURN(const int64_t to, end_->Time());
      return std::max(1e-9, static_cast<double>(to - from) * 1e-9) / static_cast<double>(launches);
    };
    // The first run loads code and touches memory.
    BOWLINE_RETURN_IF_ERROR(run(1).status());
    BOWLINE_ASSIGN_OR_RETURN(const double one, run(1));
    const size_t launches = static_cast<size_t>(std::clamp(std::ceil(1e-3 / one), 1.0, 200.0));
    std::vector<double> all;
    double spent = 0;
    while (all.size() < 3 || (all.size() < 31 && spent < seconds)) {
      BOWLINE_ASSIGN_OR_RETURN(all.emplace_back(), run(launches));
      spent += all.back() * static_cast<double>(launches);
    }
    std::sort(all.begin(), all.end());
    return Times{all[all.size() / 2], (all[all.size() * 3 / 4] - all[all.size() / 4]) / 2, all.size()};
  }

 private:
  std::unique_ptr<hal::Device> device_;
  std::unique_ptr<hal::Stream> stream_;
  std::unique_ptr<hal::Event> begin_, end_;
};

// Random values of a usual size, or whole numbers below `limit`, from a block that is repeated.
absl::Status Fill(hal::Allocation& memory, size_t bytes, fbs::DType dtype, int64_t limit, std::mt19937& random) {
  const size_t size = ElementSize(dtype);
  std::vector<uint8_t> block(std::min(bytes, size_t{1} << 20) / size * size, 0);
  for (size_t i = 0; i < block.size(); i += size) {
    const float real = (static_cast<float>(random() % 2001) - 1000) * 2e-5f;
    const int64_t whole = static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
    const auto put = [&](auto value) { std::memcpy(block.data() + i, &value, sizeof(value)); };
    if (dtype == fbs::DType::F32) put(real);
    if (dtype == fbs::DType::F64) put(static_cast<double>(real));
    if (dtype == fbs::DType::BF16) put(F32ToBf16(real));
    if (dtype == fbs::DType::F16) put(F32ToF16(real));
    if (dtype == fbs::DType::I64) put(whole);
    if (dtype == fbs::DType::I32) put(static_cast<int32_t>(whole));
  }
  for (size_t at = 0; at < bytes && !block.empty(); at += block.size()) {
    BOWLINE_RETURN_IF_ERROR(memory.Write(at, {block.data(), std::min(block.size(), bytes - at)}));
  }
  return absl::OkStatus();
}

size_t BytesOf(const fbs::Argument& argument) {
  size_t bytes = ElementSize(argument.dtype());
  for (uint32_t d = 0; d < SizeOf(argument.shape()); ++d) bytes *= static_cast<size_t>(argument.shape()->Get(d));
  return bytes;
}

// Whole numbers that a kernel reads are below this.
int64_t LimitOf(const fbs::Kernel& kernel, uint32_t argument) {
  // All rows are there.
  if (kernel.valid_rows() != nullptr && kernel.valid_rows()->count() == argument) return INT32_MAX;
  const absl::string_view name = TextOf(kernel.name());
  const uint32_t last = SizeOf(kernel.arguments()) - 1;
  // The table whose rows are looked up, or added to. It is the largest argument.
  if (name == "gather_rows" || name == "scatter_add_rows") {
    int64_t rows = 1;
    size_t most = 0;
    for (uint32_t i = 0; i <= last; ++i) {
      const fbs::Argument& table = *kernel.arguments()->Get(i);
      const bool is_table = name == "gather_rows" ? i == 0 : table.access() == fbs::Access::ReadWrite;
      if (is_table && SizeOf(table.shape()) > 0 && BytesOf(table) > most) {
        most = BytesOf(table);
        rows = table.shape()->Get(0);
      }
    }
    return rows;
  }
  return 1;
}

// The name, and the extents of a product.
std::string Describe(const fbs::Kernel& kernel) {
  std::string text(TextOf(kernel.name()));
  if (text != "matmul") return text;
  for (const char* extent : {"batch", "m", "n", "k"}) {
    for (const fbs::Attribute* attribute : *kernel.attributes()) {
      if (TextOf(attribute->name()) != extent || SizeOf(attribute->ints()) != 1) continue;
      absl::StrAppend(&text, extent == absl::string_view("batch") ? " " : "x", attribute->ints()->Get(0));
    }
  }
  return text;
}

// The system's description of NVIDIA's driver; empty on machines without the driver.
std::string DriverVersion() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  return line;
}

// A kernel with sets of arguments, each with memory of its own.
class Candidate {
 public:
  absl::Status Prepare(hal::Device& device, const BoundPlan& bound, const fbs::Plan& plan, uint32_t index,
                       bool has_scratch, size_t least_bytes) {
    const fbs::Kernel& kernel = *plan.kernels()->Get(index);
    launchable_ = bound.launchables[index].get();
    geometry_ = &bound.geometries[index];
    const uint32_t count = SizeOf(kernel.arguments());
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; ++i) bytes += BytesOf(*kernel.arguments()->Get(i));
    const size_t sets = std::clamp<size_t>(least_bytes / std::max<size_t>(bytes, 1) + 1, 1, 32);
    std::mt19937 random(1);
    for (size_t set = 0; set < sets; ++set) {
      std::vector<hal::DeviceAddress> addresses;
      for (uint32_t i = 0; i < count; ++i) {
        const fbs::Argument& argument = *kernel.arguments()->Get(i);
        const size_t own = BytesOf(argument);
        BOWLINE_ASSIGN_OR_RETURN(memory_.emplace_back(), device.Allocate(std::max<size_t>(own, 1)));
        if (argument.access() != fbs::Access::Write) {
          BOWLINE_RETURN_IF_ERROR(Fill(*memory_.back(), own, argument.dtype(), LimitOf(kernel, i), random));
        }
        addresses.push_back(memory_.back()->address());
      }
      scratch_.push_back(has_scratch ? addresses.back() : 0);
      if (has_scratch) addresses.pop_back();
      sets_.push_back(std::move(addresses));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Times> Measure(Bench& bench, double seconds) const {
    return bench.Measure(seconds, [&](size_t i) {
      i %= sets_.size();
      return bench.stream().Launch(*launchable_, *geometry_, sets_[i], scratch_[i]);
    });
  }

 private:
  const hal::Launchable* launchable_ = nullptr;
  const hal::Geometry* geometry_ = nullptr;
  Memory memory_;
  std::vector<std::vector<hal::DeviceAddress>> sets_;
  std::vector<hal::DeviceAddress> scratch_;
};

// Bytes that a large copy within the device reads and writes in a second.
absl::StatusOr<Times> MeasureCopy(Bench& bench, const Options& options) {
  BOWLINE_ASSIGN_OR_RETURN(const auto from, bench.device().Allocate(options.copy_bytes));
  BOWLINE_ASSIGN_OR_RETURN(const auto to, bench.device().Allocate(options.copy_bytes));
  std::mt19937 random(1);
  BOWLINE_RETURN_IF_ERROR(Fill(*from, options.copy_bytes, fbs::DType::BF16, 1, random));
  return bench.Measure(options.seconds,
                       [&](size_t) { return bench.stream().Copy(to->address(), from->address(), options.copy_bytes); });
}

absl::StatusOr<Times> MeasureProduct(Bench& bench, const Options& options) {
  const int64_t n = options.product;
  kernels::Signature signature;
  signature.kernel = "matmul";
  const auto add = [&](const char* name, std::vector<int64_t> ints) {
    signature.attributes.push_back({name, std::move(ints), {}, {}});
  };
  for (const char* extent : {"m", "n", "k"}) add(extent, {n});
  for (const char* flag : {"accumulate", "b_packed"}) add(flag, {0});
  for (const char* strides : {"a_strides", "b_strides", "c_strides"}) add(strides, {0, n, 1});
  add("batch", {1});
  for (const auto access : {kernels::Access::kRead, kernels::Access::kRead, kernels::Access::kWrite}) {
    signature.arguments.push_back({access, ElementType::kBF16, {n, n}});
  }
  BOWLINE_ASSIGN_OR_RETURN(const auto launchable, bench.device().CreateKernel(signature));
  Memory memory;
  std::vector<hal::DeviceAddress> arguments;
  std::mt19937 random(1);
  const size_t bytes = static_cast<size_t>(n * n) * 2;
  for (size_t i = 0; i < 3; ++i) {
    BOWLINE_ASSIGN_OR_RETURN(memory.emplace_back(), bench.device().Allocate(bytes));
    BOWLINE_RETURN_IF_ERROR(Fill(*memory.back(), bytes, fbs::DType::BF16, 1, random));
    arguments.push_back(memory.back()->address());
  }
  BOWLINE_ASSIGN_OR_RETURN(memory.emplace_back(),
                           bench.device().Allocate(std::max<size_t>(launchable->ScratchBytes(), 1)));
  const hal::Geometry geometry;
  return bench.Measure(options.seconds, [&](size_t) {
    return bench.stream().Launch(*launchable, geometry, arguments,
                                 launchable->ScratchBytes() ? memory.back()->address() : 0);
  });
}

// The launches of each kernel in one run of each entry, those of a training step, and whether they have scratch.
struct Uses {
  uint64_t launches = 0, step_launches = 0;
  bool has_scratch = false;
};
std::map<uint32_t, Uses> UsesOf(const fbs::Plan& plan) {
  std::map<uint32_t, Uses> uses;
  for (const fbs::Entry* entry : *plan.entries()) {
    const fbs::Program& program = *plan.programs()->Get(entry->program());
    for (uint32_t c = 0; c < SizeOf(program.timeline()); ++c) {
      const fbs::Segment& segment = *program.segments()->Get(program.timeline()->Get(c)->segment());
      for (uint32_t i = 0; i < SizeOf(segment.commands()); ++i) {
        const fbs::Launch* launch = segment.commands()->Get(i)->body_as_Launch();
        if (launch == nullptr) continue;
        ++uses[launch->kernel()].launches;
        uses[launch->kernel()].step_launches += entry->kind() == fbs::EntryKind::TrainStep ? 1 : 0;
        uses[launch->kernel()].has_scratch = HasScratchOperand(plan, *launch);
      }
    }
  }
  return uses;
}

absl::Status Run(const Options& options) {
  BOWLINE_ASSIGN_OR_RETURN(const LoadedPlan loaded, LoadedPlan::FromFile(options.plan));
  const fbs::Plan& plan = loaded.plan();
  BOWLINE_RETURN_IF_ERROR(RequireCode(plan));
  if (RankCount(plan) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("'", options.plan, "' is for several ranks; compile it for one"));
  }
  const int threads = static_cast<int>(plan.target()->threads());
  std::vector<std::unique_ptr<Bench>> benches;
  std::vector<BoundPlan> bound;
  for (const std::string& driver : {options.driver, options.beside}) {
    if (driver.empty()) continue;
    BOWLINE_ASSIGN_OR_RETURN(benches.emplace_back(), Bench::Open(driver, threads));
    hal::Device& device = benches.back()->device();
    BOWLINE_RETURN_IF_ERROR(device.CheckTarget(
        {plan.target()->device()->str(), plan.target()->arch()->str(), plan.target()->cpu()->str()}));
    // Its commands are not issued, so that it needs no arena.
    BOWLINE_ASSIGN_OR_RETURN(
        bound.emplace_back(),
        Binder(plan, device, ArenaAddresses{}, nullptr, LinkTable{}, hal::StreamMode::kInline).Bind());
  }
  Bench& bench = *benches[0];

  BOWLINE_ASSIGN_OR_RETURN(const Times copy, MeasureCopy(bench, options));
  const double copy_rate = 2 * static_cast<double>(options.copy_bytes) / copy.median;
  // The better one of the drivers' choices.
  double product_rate = 0;
  for (const auto& each : benches) {
    BOWLINE_ASSIGN_OR_RETURN(const Times product, MeasureProduct(*each, options));
    product_rate = std::max(product_rate, 2 * std::pow(static_cast<double>(options.product), 3) / product.median);
  }
  nlohmann::ordered_json json;
  json["device"] = bench.device().Description();
  json["driver_version"] = DriverVersion();
  json["plan"] = options.plan;
  json["copy"] = {{"bytes", options.copy_bytes}, {"gb_per_s", copy_rate * 1e-9}, {"spread", copy.spread / copy.median}};
  json["product"] = {{"m_n_k", options.product}, {"tflop_per_s", product_rate * 1e-12}};
  absl::PrintF(
      "device   %s\ncopy     %.1f GB/s, read and written, of %d bytes\nproduct  %.2f TFLOP/s, bf16, %d cubed\n\n",
      bench.device().Description(), copy_rate * 1e-9, options.copy_bytes, product_rate * 1e-12, options.product);

  std::vector<nlohmann::ordered_json> rows;
  for (const auto& [index, use] : UsesOf(plan)) {
    const fbs::Kernel& kernel = *plan.kernels()->Get(index);
    nlohmann::ordered_json row;
    row["kernel"] = Describe(kernel);
    row["generated"] = kernel.origin() == fbs::KernelOrigin::Generated;
    row["launches"] = use.launches;
    row["step_launches"] = use.step_launches;
    row["bytes"] = kernel.bytes_moved();
    row["flops"] = kernel.flops();
    const bool is_product = absl::StrContains(TextOf(kernel.name()), "matmul");
    for (size_t b = 0; b < (is_product ? benches.size() : 1); ++b) {
      Candidate candidate;
      absl::Status status =
          candidate.Prepare(benches[b]->device(), bound[b], plan, index, use.has_scratch, options.copy_bytes);
      absl::StatusOr<Times> times = status.ok() ? candidate.Measure(*benches[b], options.seconds) : status;
      if (!times.ok()) return Annotate(times.status(), absl::StrCat("kernel ", Quoted(kernel.name())));
      if (b > 0) {
        row["beside_us"] = times->median * 1e6;
        row["share_of_beside"] = times->median * 1e6 / row["us"].get<double>();
        continue;
      }
      row["us"] = times->median * 1e6;
      row["spread_us"] = times->spread * 1e6;
      row["measurements"] = times->measurements;
      row["gb_per_s"] = kernel.bytes_moved() / times->median * 1e-9;
      row["tflop_per_s"] = kernel.flops() / times->median * 1e-12;
      row["share_of_copy"] = kernel.bytes_moved() / times->median / copy_rate;
      row["share_of_product"] = kernel.flops() / times->median / product_rate;
    }
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    const auto total = [](const auto& row) {
      return row["launches"].template get<double>() * row["us"].template get<double>();
    };
    return total(a) > total(b);
  });
  absl::PrintF("%-44s %8s %10s %9s %9s %6s %9s %8s %7s\n", "kernel", "launches", "us", "+-", "GB/s", "copy", "TFLOP/s",
               "product", "beside");
  for (const auto& row : rows) {
    const auto number = [&](const char* key) { return row[key].get<double>(); };
    absl::PrintF("%-44s %8d %10.2f %9.2f %9.1f %5.0f%% %9.2f %7.0f%% %7s\n",
                 row["kernel"].get<std::string>().substr(0, 44), row["launches"].get<uint64_t>(), number("us"),
                 number("spread_us"), number("gb_per_s"), 100 * number("share_of_copy"), number("tflop_per_s"),
                 100 * number("share_of_product"),
                 row.contains("beside_us") ? absl::StrFormat("%.0f%%", 100 * number("share_of_beside")) : "");
  }
  json["kernels"] = rows;
  BOWLINE_ASSIGN_OR_RETURN(auto file, AtomicFile::Create(options.json));
  BOWLINE_RETURN_IF_ERROR(file.Append(json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"));
  BOWLINE_RETURN_IF_ERROR(file.Commit());
  // A stand-in for a card says so in its name.
  absl::PrintF(
      "\nmedians; +- is half the distance of the quartiles; copy and product are shares of the first lines, beside is "
      "a\n"
      "product's time on %s as a share of its own. Times are those of %s.\n",
      options.beside.empty() ? "nothing" : options.beside, bench.device().Description());
  return absl::OkStatus();
}

}  // namespace
}  // namespace bowline

int main(int argc, char** argv) {
  bowline::Options options;
  if (argc != 8 || !absl::SimpleAtoi(argv[4], &options.copy_bytes) || options.copy_bytes == 0 ||
      !absl::SimpleAtoi(argv[5], &options.product) || options.product < 1 || options.product > (1 << 16) ||
      !absl::SimpleAtod(argv[6], &options.seconds)) {
    std::fprintf(stderr, "usage: bowline-card-bench PLAN DRIVER BESIDE COPY_BYTES PRODUCT SECONDS JSON\n");
    return 1;
  }
  options.plan = argv[1];
  options.driver = argv[2];
  options.beside = argv[3];
  options.json = argv[7];
  const absl::Status status = bowline::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bowline-card-bench: error: %s\n", std::string(status.message()).c_str());
  return 1;
}
