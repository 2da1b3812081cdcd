#pragma once

#include <string>
#include <utility>

#include "answers/html/report_page.h"
#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {

/// Llama-3.1-70B on `pp` nodes of DGX H100, a stage on each.
inline Plan pipelined(std::int32_t pp) {
  Plan plan;
  plan.model = *load_model("llama-3.1-70b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), std::int64_t{8} * pp);
  plan.engine = *find_engine("megatron_ddp");
  plan.layout.tp = 8;
  plan.layout.pp = pp;
  plan.job.global_batch_size = 8;
  return plan;
}

/// Plan and step from which a page is made.
struct Made {
  Plan plan;
  Simulation simulation;
  StepReport estimate;

  PageContent content() const {
    PageContent content;
    content.plan = &plan;
    content.simulation = &simulation;
    content.estimate = &estimate;
    content.command = "shardwise report plan.json -o report.html";
    content.version = "1.2.3";
    return content;
  }
  std::string page() const { return report_page(content()); }
  std::string page_with(const StepReport& measured) const {
    PageContent with = content();
    with.measured = &measured;
    return report_page(with);
  }
};

inline Made made_of(Plan plan) {
  Made made;
  made.plan = std::move(plan);
  made.simulation = simulate(made.plan);
  made.estimate = shardwise::estimate(made.plan.model, made.plan.cluster, made.plan.job,
                                      made.plan.engine, made.plan.layout, Detail::explained);
  return made;
}

/// A run that took as long as predicted.
inline StepReport as_measured(StepReport report) {
  report.origin = "measured";
  return report;
}

}  // namespace shardwise::sim
