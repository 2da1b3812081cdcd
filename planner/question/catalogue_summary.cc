#include "planner/question/catalogue_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "planner/engines/engines.h"
#include "planner/engines/executed.h"
#include "planner/estimate/gpu_hour_price.h"
#include "planner/model/hf_config.h"
#include "planner/model/parameter_counts.h"
#include "planner/model/parameter_words.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/machine/collective_reader.h"
#include "planner/spec/machine/gpu_reader.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

/// The entries of one kind that can be read. `summary` is of the name and what was read.
template <class Summary, class Read, class Make>
std::vector<Summary> summaries(const char* kind, const Read& read, const Make& make) {
  std::vector<Summary> found;
  for (const std::string& name : catalogue_names(kind)) {
    const auto entry = read(name);
    if (entry) found.push_back(make(name, *entry));
  }
  return found;
}

}  // namespace

std::vector<ModelSummary> model_summaries() {
  return summaries<ModelSummary>(
      "models", load_model, [](const std::string& name, const ModelSpec& model) {
        const ParameterCounts counts = count_parameters(model);
        return ModelSummary{name, model.model_type, counts.main_model(), counts.active};
      });
}

std::vector<ClusterSummary> cluster_summaries() {
  return summaries<ClusterSummary>(
      "clusters", find_cluster, [](const std::string& name, const ClusterSpec& cluster) {
        return ClusterSummary{name, cluster.label, cluster.gpu.name, cluster.gpus_per_node,
                              gpu_hour_price(cluster)};
      });
}

std::vector<GpuSummary> gpu_summaries() {
  return summaries<GpuSummary>("gpus", find_gpu, [](const std::string& name, const GpuSpec& gpu) {
    return GpuSummary{name, gpu.label, gpu.hbm_bytes, gpu.peak(DType::bf16)};
  });
}

std::vector<CollectivesSummary> collectives_summaries() {
  return summaries<CollectivesSummary>(
      "collectives", find_collectives, [](const std::string& name, const CollectiveCurve& curve) {
        return CollectivesSummary{name, curve.fit.measured, curve.fit.fitted_on};
      });
}

std::vector<EngineSummary> engine_summaries() {
  std::vector<EngineSummary> found;
  for (const std::string& name : engine_names()) {
    EngineSummary& each = found.emplace_back();
    each.engine = find_engine(name);
    if (each.engine->tensor_parallel) each.axes.emplace_back("tp");
    if (each.engine->context_parallel) each.axes.emplace_back("cp");
    if (each.engine->pipeline) each.axes.emplace_back("pp");
    if (each.engine->expert_parallel) each.axes.emplace_back("ep");
    each.executed = std::ranges::find(executed_engines(), name) != executed_engines().end();
  }
  return found;
}

std::string line_of(const ModelSummary& model) {
  return fmt::format("{}, {}", parameters_words({model.parameters, model.active}), model.family);
}

std::string line_of(const ClusterSummary& cluster) {
  std::string line =
      fmt::format("{} x {} a node", format_count(cluster.gpus_per_node), cluster.gpu);
  if (cluster.dollars_per_gpu_hour) {
    line += fmt::format(", {} a GPU-hour", format_dollars(*cluster.dollars_per_gpu_hour));
  }
  return cluster.label.empty() ? line : line + ", " + cluster.label;
}

std::string line_of(const GpuSummary& gpu) {
  std::string line = format_bytes(gpu.memory);
  if (gpu.bf16_peak.value() > 0) {
    line += fmt::format(", {} in bf16", format_flops_rate(gpu.bf16_peak));
  }
  return gpu.label.empty() ? line : line + ", " + gpu.label;
}

std::string line_of(const EngineSummary& engine) {
  const std::string zero = fmt::format("ZeRO {}", fmt::join(engine.engine->zero_stages, " "));
  return engine.axes.empty() ? zero : fmt::format("{}, {}", zero, fmt::join(engine.axes, " "));
}

}  // namespace shardwise
