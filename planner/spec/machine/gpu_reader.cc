#include "planner/spec/machine/gpu_reader.h"

#include <fmt/format.h>

#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/gpu_curves.h"

namespace shardwise {
namespace {

// Wide enough for any accelerator to come, narrow enough to catch a slip of the unit.
constexpr double kLeastTflops = 1e-6;
constexpr double kMostTflops = 1e6;
constexpr double kMostGpuWatts = 1e5;
constexpr std::int64_t kMostSms = 100'000;
constexpr std::int64_t kMostHbmBytes = std::int64_t{1} << 44;  // 16 TiB

void read_peaks(ObjectReader& gpu, GpuSpec& spec) {
  const JsonValue* value = gpu.object("peak_tflops");
  if (value == nullptr) return;
  ObjectReader reader = gpu.nested("peak_tflops", *value);
  for (const DType dtype : kAllDTypes) {
    if (!reader.has(name_of(dtype))) continue;
    const double tflops = reader.number(name_of(dtype), kLeastTflops, kMostTflops);
    spec.peaks.emplace_back(dtype, FlopsPerSecond(tflops * 1e12));
  }
  reader.reject_unknown();
  if (spec.peaks.empty() && reader.ok()) {
    gpu.fail("peak_tflops", "names no dtype", "for example {\"bf16\": 989.4}");
  }
}

bool is_date(const std::string& text) {
  if (text.size() != 7 && text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 4 || i == 7;
    if (dash ? text[i] != '-' : (text[i] < '0' || text[i] > '9')) return false;
  }
  return true;
}

void read_price(ObjectReader& gpu, GpuSpec& spec) {
  if (!gpu.has("price_per_gpu_hour_usd")) return;
  spec.price_per_hour = gpu.number("price_per_gpu_hour_usd", 0, kMostDollarsPerGpuHour);
  spec.price_date = gpu.string("price_date");
  if (!spec.price_date.empty() && !is_date(spec.price_date)) {
    gpu.fail("price_date", "is not a date", "write 2025-06 or 2025-06-30");
  }
}

/// Every figure of the file is named in "sources" with the place where it was published.
void read_gpu_sources(ObjectReader& gpu, GpuSpec& spec) {
  const JsonValue* value = gpu.object("sources");
  if (value == nullptr) return;
  ObjectReader reader = gpu.nested("sources", *value);
  const auto source_of = [&](std::string_view figure) {
    std::string source = reader.string(figure);
    if (reader.has(figure) && source.empty()) reader.fail(figure, "names no source");
    return source;
  };
  for (const std::string_view figure : {"sm_count", "hbm_bytes", "memory_bandwidth_gb_per_s",
                                        "peak_tflops", "tdp_watts", "launch_latency_us"}) {
    spec.sources.push_back(fmt::format("{}: {}", figure, source_of(figure)));
  }
  if (spec.price_per_hour) spec.price_source = source_of("price_per_gpu_hour_usd");
  reader.reject_unknown();
}

}  // namespace

Result<GpuSpec> gpu_from_json(const JsonValue& root, const std::string& file,
                              const std::string& path) {
  Diagnostics problems;
  ObjectReader reader(root, file, path, problems);
  GpuSpec spec;
  reader.require_schema("shardwise.gpu/1");
  spec.name = reader.string("name");
  spec.label = reader.string("label");
  spec.vendor = reader.string("vendor");
  spec.architecture = reader.string("architecture");
  spec.sm_count = static_cast<int>(reader.integer("sm_count", 1, kMostSms));
  spec.cores_per_rank = reader.number_or("cores_per_rank", 0, 0, kMostSms);
  spec.hbm_bytes = Bytes(reader.integer("hbm_bytes", 1, kMostHbmBytes));
  spec.memory_bandwidth =
      BytesPerSecond(reader.number("memory_bandwidth_gb_per_s", kLeastGbPerS, kMostGbPerS) * 1e9);
  read_peaks(reader, spec);
  spec.tdp_watts = reader.number("tdp_watts", 0, kMostGpuWatts);
  spec.launch_latency = Seconds(reader.number("launch_latency_us", 0, kMostLatencyUs) * 1e-6);
  read_price(reader, spec);
  read_gpu_sources(reader, spec);
  read_curves(reader, spec);
  reader.reject_unknown();
  if (!problems.empty()) return problems;
  return spec;
}

Result<GpuSpec> read_gpu(const std::filesystem::path& path) {
  const Result<JsonValue> json = read_json(path);
  if (!json) return json.problems();
  return gpu_from_json(*json, path.string());
}

Result<GpuSpec> find_gpu(const std::string& name_or_path) {
  const Result<CatalogueFile> file = find_in_catalogue("gpus", name_or_path);
  if (!file) return file.problems();
  return read_gpu(file->path);
}

}  // namespace shardwise
