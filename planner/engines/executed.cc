#include "planner/engines/executed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "planner/spec/plan/names.h"
#include "planner/spec/plan/schedule_facts.h"

namespace shardwise {

std::span<const ExecutedField> executed_fields() {
  static constexpr std::string_view kAxes = "data parallelism and pipelines are";
  static constexpr std::array<ExecutedField, 6> kFields = {{
      {"tp", "1", kAxes, false},
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

std::vector<NoPipeline> no_pipeline(const ClusterSpec& cluster, const EngineProfile& engine) {
  std::vector<NoPipeline> reasons;
  if (!executor_trains_on(cluster)) {
    reasons.push_back({"on GPUs", "pipelines are on clusters of CPUs"});
  }
  if (!executes_pipelines(engine)) {
    reasons.push_back(
        {fmt::format("of engine {}", engine.name), "pipelines are of engine shardwise"});
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
  const auto hold = [&](std::string_view key, std::vector<std::string_view> values) {
    const bool locked =
        std::ranges::any_of(locks, [&](const auto& lock) { return lock.first == key; });
    const bool wide = std::ranges::find(opened, key) != opened.end();
    if (!locked && !wide) held.push_back({key, std::move(values)});
  };
  for (const ExecutedField& field : executed_fields()) hold(field.key, {field.value});
  if (!no_pipeline(cluster, engine).empty()) {
    hold("pp", {"1"});
    hold("vpp", {"1"});
    return held;
  }
  std::vector<std::string_view> schedules;
  for (const PipelineSchedule each : executed_schedules()) schedules.push_back(name_of(each));
  hold("schedule", std::move(schedules));
  return held;
}

}  // namespace shardwise
