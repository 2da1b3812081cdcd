#include "planner/spec/machine/gpu_writer.h"

#include "planner/spec/json/in_units.h"
#include "planner/spec/machine/gpu_curves.h"

namespace shardwise {

void write_sources(JsonWriter& json, const std::vector<std::string>& sources) {
  for (const std::string& source : sources) {
    const std::size_t colon = source.find(": ");
    if (colon != std::string::npos) json.member(source.substr(0, colon), source.substr(colon + 2));
  }
}

void write_gpu(JsonWriter& json, const GpuSpec& gpu) {
  json.member("schema", "shardwise.gpu/1");
  json.member("name", gpu.name);
  json.member("label", gpu.label);
  json.member("vendor", gpu.vendor);
  json.member("architecture", gpu.architecture);
  json.member("sm_count", gpu.sm_count);
  if (gpu.cores_per_rank > 0) json.member("cores_per_rank", gpu.cores_per_rank);
  json.member("hbm_bytes", gpu.hbm_bytes.value());
  json.member("memory_bandwidth_gb_per_s", in_units(gpu.memory_bandwidth.value(), 1e9));
  json.begin_object("peak_tflops");
  for (const auto& [dtype, rate] : gpu.peaks) {
    json.member(name_of(dtype), in_units(rate.value(), 1e12));
  }
  json.end_object();
  json.member("tdp_watts", gpu.tdp_watts);
  json.member("launch_latency_us", in_units(gpu.launch_latency.value(), 1e-6));
  if (gpu.price_per_hour) {
    json.member("price_per_gpu_hour_usd", *gpu.price_per_hour);
    json.member("price_date", gpu.price_date);
  }
  json.begin_object("sources");
  write_sources(json, gpu.sources);
  if (gpu.price_per_hour) json.member("price_per_gpu_hour_usd", gpu.price_source);
  json.end_object();
  write_curves(json, gpu);
}

}  // namespace shardwise
