#include "simulator/comparison/kind_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "planner/spec/json/json_writer.h"
#include "simulator/comparison/compare_runs.h"
#include "simulator/comparison/predicted_work.h"
#include "simulator/traces/traced_gpu.h"

namespace shardwise::sim {
namespace {

using Kinds = std::map<std::pair<WorkKind, StepPhase>, ComparedKind>;

bool tells_phases(const StepProfile& profile) {
  return std::any_of(profile.kinds.begin(), profile.kinds.end(),
                     [](const KindTime& time) { return time.phase != StepPhase::unknown; });
}

void add(Kinds& kinds, const KindTime& time, bool by_phase, bool predicted) {
  const StepPhase phase = by_phase ? time.phase : StepPhase::unknown;
  ComparedKind& row = kinds[{time.kind, phase}];
  row.kind = time.kind;
  row.phase = phase;
  std::optional<KindTime>& side = predicted ? row.predicted : row.measured;
  if (!side) side = KindTime{time.kind, phase, 0, {}, {}};
  side->count += time.count;
  side->time += time.time;
  side->exposed += time.exposed;
}

void write_profile(JsonWriter& json, const char* key, const StepProfile& profile) {
  json.begin_object(key);
  json.member("step_s", profile.length.value());
  json.member("computing_s", profile.computing.value());
  json.member("communicating_s", profile.communicating.value());
  json.member("exposed_s", profile.exposed.value());
  json.member("idle_s", profile.idle.value());
  json.member("overlap", profile.overlap());
  json.end_object();
}

void write_side(JsonWriter& json, const char* key, const std::optional<KindTime>& time) {
  if (!time) {
    json.null_member(key);
    return;
  }
  json.begin_object(key);
  json.member("count", time->count);
  json.member("time_s", time->time.value());
  json.member("exposed_s", time->exposed.value());
  json.end_object();
}

void write_steps(JsonWriter& json, const TracedRun& run) {
  json.begin_array("steps");
  if (run.ours()) {
    for (const OperationStep& step : run.operations) {
      json.begin_object();
      json.member("step_s", step.length.value());
      json.end_object();
    }
  } else {
    for (const ProfiledStep& step : run.profiled.steps) {
      json.begin_object();
      json.member("name", step.name);
      write_profile(json, "times", step.profile);
      json.end_object();
    }
  }
  json.end_array();
}

}  // namespace

StepComparison compare_steps(const StepProfile& measured, const StepProfile& predicted) {
  StepComparison made;
  made.measured = measured;
  made.predicted = predicted;
  made.by_phase = tells_phases(measured) || measured.kinds.empty();
  Kinds kinds;
  for (const KindTime& time : measured.kinds) add(kinds, time, made.by_phase, false);
  for (const KindTime& time : predicted.kinds) add(kinds, time, made.by_phase, true);
  for (const auto& [key, row] : kinds) made.kinds.push_back(row);
  std::stable_sort(made.kinds.begin(), made.kinds.end(),
                   [](const ComparedKind& a, const ComparedKind& b) {
                     return std::abs(a.difference().value()) > std::abs(b.difference().value());
                   });
  return made;
}

TraceComparison compare_trace(const TracedRun& run, const Plan& plan,
                              const Simulation& simulation) {
  TraceComparison made;
  made.stage = slowest_stage(simulation);
  if (run.ours()) {
    const OperationStep& step = run.median_operations();
    const TracedProfile traced = traced_profile(step, simulation, made.stage);
    made.step = compare_steps(traced.profile, predicted_profile(simulation, made.stage));
    made.unknown = traced.unknown;
    made.operations = compare(report_of(run), simulation.report).operations;
    made.joined = static_cast<std::size_t>(
        std::count_if(made.operations.begin(), made.operations.end(),
                      [](const ComparedTime& row) { return row.in_first && row.in_second; }));
    made.same_plan =
        run.head.plan_digest.empty() || run.head.plan_digest == simulation.report.plan_digest;
    return made;
  }
  if (is_other_gpu(run.head.device, plan.cluster.gpu)) made.other_gpu = plan.cluster.gpu.label;
  if (run.head.rank >= 0 && run.head.rank < plan.layout.world()) {
    made.stage = stage_of_rank(plan.layout, run.head.rank);
  }
  made.step =
      compare_steps(run.profiled.median().profile, profiled_prediction(simulation, made.stage));
  return made;
}

std::string comparison_json(const TracedRun& run, const TraceComparison& comparison) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.import/1");
  json.member("recorded_by", run.ours() ? "shardwise" : "profiler");
  json.member("origin", run.ours() ? run.head.origin : "measured");
  json.member("rank", run.head.rank);
  json.member("world_size", run.head.world_size);
  json.member("stage", static_cast<std::int64_t>(comparison.stage));
  write_steps(json, run);
  write_profile(json, "measured", comparison.step.measured);
  write_profile(json, "predicted", comparison.step.predicted);
  json.begin_array("kinds");
  for (const ComparedKind& row : comparison.step.kinds) {
    json.begin_object();
    json.member("kind", name_of(row.kind));
    json.member("phase", name_of(row.phase));
    write_side(json, "measured", row.measured);
    write_side(json, "predicted", row.predicted);
    json.member("difference_s", row.difference().value());
    json.end_object();
  }
  json.end_array();
  json.begin_array("operations");
  for (const ComparedTime& row : comparison.operations)
    write_row(json, row, "measured_s", "predicted_s");
  json.end_array();
  json.begin_array("kernels");
  if (!run.ours()) {
    for (const KernelTime& kernel : run.profiled.kernels) {
      json.begin_object();
      json.member("name", kernel.name);
      json.member("kind", name_of(kernel.kind));
      json.member("count", kernel.count);
      json.member("time_s", kernel.time.value());
      json.end_object();
    }
  }
  json.end_array();
  if (!run.ours()) {
    json.member("device", run.head.device);
    json.member("same_gpu", comparison.other_gpu.empty());
    json.member("has_backward", run.profiled.has_backward);
    json.member("overlapping_events", run.profiled.overlapping);
    json.member("longest_overlap_s", run.profiled.longest_overlap.value());
  }
  json.begin_array("not_read");
  for (const auto& [category, count] : run.not_read) {
    json.begin_object();
    json.member("category", category);
    json.member("events", count);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.text();
}

}  // namespace shardwise::sim
