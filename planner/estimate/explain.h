#pragma once

#include <span>
#include <vector>

#include "planner/cost/memory/memory.h"
#include "planner/cost/step/step_time.h"
#include "planner/schedule/stages.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/report/report.h"

namespace shardwise {

// Where the formulas of several lines stand.
inline constexpr const char* kComputeSource = "docs/compute.md";
inline constexpr const char* kStepSource = "docs/time.md, Step time";

/// Adds assumptions of the report's numbers that neither the user nor a measurement stated: curves
/// without data, what varies from machine to machine, defaults of the job.
void add_assumptions(StepReport& report, const ModelSpec& model, const ClusterSpec& cluster,
                     const JobSpec& job, const EngineProfile& engine);

/// How tokens are taken to spread over experts, and the bandwidth that hides what is offloaded.
void assume_job(StepReport& report, const ModelSpec& model, const ClusterSpec& cluster,
                const JobSpec& job, const Layout& layout, const StepDetail& detail);

/// Everything the ledgers were made from.
struct PricedMemory {
  const ModelSpec& model;
  const JobSpec& job;
  const EngineProfile& engine;
  const Layout& layout;
  std::span<const LayerMemory> memories;  // by kind
  std::span<const StageLayers> stage_layers;
  const MemoryRules& rules;
  std::int64_t num_microbatches;
};

/// For the worst stage at its fullest: a line for every category that is not zero (the summands it
/// was added up from, their factors, their source), one for what each operation of each kind of
/// layer keeps, one for the sum and one for the upper bound; and what comes on top of the states in
/// every phase, most first. \pre report.verdict is filled
void explain_memory(StepReport& report, const PricedMemory& memory);

/// Everything a step was priced from.
struct PricedStep {
  const ModelSpec& model;
  const ClusterSpec& cluster;
  const JobSpec& job;
  const EngineProfile& engine;
  const Layout& layout;
  std::span<const LayerTime> times;  // by kind
  std::span<const StageLayers> stage_layers;
  const StageTimes& stages;
  const LeafContext& context;
  const StepDetail& detail;
};

/// For every collective of the step, why it is waited for or behind what it hides: "exposed.tp",
/// "exposed.dp.gather_forward" … \pre report.time is filled
void explain_exposed(StepReport& report, const PricedStep& step);

/// How many of report.gemms were measured, and how the longest of them was priced. \pre
/// report.gemms is filled
void explain_gemms(StepReport& report, const GpuSpec& gpu);

/// Explanations of MFU, tokens a second, their cost and their energy: of any prediction of a step,
/// estimated or simulated. \param job of the report's step
std::vector<Explanation> rate_explanations(const StepReport& report, const ClusterSpec& cluster,
                                           const JobSpec& job);

/// A formula with its values and its source for every part of the step that takes time, for every
/// kind of layer on the slowest stage, and for the rates of the report. \pre report is filled
void explain_time(StepReport& report, const PricedStep& step);

}  // namespace shardwise
