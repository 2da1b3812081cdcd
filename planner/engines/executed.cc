#include "planner/engines/executed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "planner/spec/plan/names.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {
namespace {

/// Of an axis that the executor has on CPUs, by the rules of our own engine.
std::vector<NoDegree> axis_of_cpus(const ClusterSpec& cluster, const EngineProfile& engine,
                                   const char* path, std::int64_t degree, const char* axis_is) {
  std::vector<NoDegree> reasons;
  if (!executor_trains_on(cluster)) {
    reasons.push_back(
        {path, fmt::format("{} on GPUs", degree), fmt::format("{} on clusters of CPUs", axis_is)});
  }
  if (!executes_pipelines(engine)) {
    reasons.push_back({path, fmt::format("{} of engine {}", degree, engine.name),
                       fmt::format("{} of engine shardwise", axis_is)});
  }
  return reasons;
}

}  // namespace

std::span<const ExecutedField> executed_fields() {
  static constexpr std::string_view kAxes = "data, tensor and pipeline parallelism are";
  static constexpr std::array<ExecutedField, 5> kFields = {{
      {"cp", "1", kAxes},
      {"ep", "1", kAxes},
      {"offload_optimizer", "false", "false is"},
      {"offload_activations", "false", "false is"},
      {"recompute_interval", "1", "1 is"},
  }};
  return kFields;
}

std::span<const PipelineSchedule> executed_schedules() {
  static constexpr std::array<PipelineSchedule, 3> kSchedules = {
      PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::looped_bfs};
  return kSchedules;
}

bool executes_schedule(const Layout& layout) {
  return std::ranges::find(executed_schedules(), layout.schedule) != executed_schedules().end();
}

bool executes_pipelines(const EngineProfile& engine) { return plans_buffers(engine); }

std::vector<NoDegree> no_pipeline(const ClusterSpec& cluster, const EngineProfile& engine,
                                  std::int64_t pp) {
  return axis_of_cpus(cluster, engine, "/layout/pp", pp, "pipelines are");
}

std::vector<NoDegree> no_tensor_parallelism(const ClusterSpec& cluster, const EngineProfile& engine,
                                            std::int64_t tp) {
  if (tp == 1) return {};
  std::vector<NoDegree> reasons =
      axis_of_cpus(cluster, engine, "/layout/tp", tp, "tensor parallelism is");
  if (engine.vocabulary_multiple != 1) {
    reasons.push_back({"/engine/vocabulary_multiple",
                       fmt::format("{} with tp {}", engine.vocabulary_multiple, tp), "1 is"});
  }
  return reasons;
}

std::span<const std::string_view> executed_engines() {
  static constexpr std::array<std::string_view, 5> kEngines = {"shardwise", "megatron_ddp",
                                                               "megatron_fsdp", "fsdp2", "fsdp1"};
  return kEngines;
}

bool executor_trains_on(const ClusterSpec& cluster) { return cluster.gpu.vendor == "cpu"; }

std::vector<HeldField> held_to_executed(
    const ClusterSpec& cluster, const EngineProfile& engine,
    const std::vector<std::pair<std::string, std::string>>& locks,
    const std::vector<std::string>& opened) {
  std::vector<HeldField> held;
  const auto hold = [&](std::string_view key, std::vector<std::string> values) {
    const bool locked =
        std::ranges::any_of(locks, [&](const auto& lock) { return lock.first == key; });
    const bool wide = std::ranges::find(opened, key) != opened.end();
    if (!locked && !wide) held.push_back({key, std::move(values)});
  };
  for (const ExecutedField& field : executed_fields()) hold(field.key, {std::string(field.value)});
  constexpr std::int64_t kSeveral = 2;
  if (!no_tensor_parallelism(cluster, engine, kSeveral).empty()) {
    hold("tp", {"1"});
  } else {  // without it is usual too
    hold("sequence_parallel", {"true", "false"});
  }
  if (!no_pipeline(cluster, engine, kSeveral).empty()) {
    hold("pp", {"1"});
    hold("vpp", {"1"});
    return held;
  }
  std::vector<std::string> schedules;
  for (const PipelineSchedule each : executed_schedules()) schedules.emplace_back(name_of(each));
  hold("schedule", std::move(schedules));
  return held;
}

}  // namespace shardwise
