#include <benchmark/benchmark.h>

#include <string>

#include "answers/html/report_page.h"
#include "answers/question_of_plan.h"
#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/simulate.h"

namespace shardwise::sim {
namespace {

/// Llama-3.1-405B on 1,024 H100 in 16 stages.
Plan sixteen_stages() {
  Plan plan;
  plan.model = *load_model("llama-3.1-405b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 1024);
  plan.engine = *find_engine("megatron_ddp");
  plan.layout.tp = 8;
  plan.layout.pp = 16;
  plan.layout.vpp = 4;
  plan.layout.dp_shard = 8;
  plan.layout.zero_stage = 1;
  plan.layout.sequence_parallel = true;
  plan.job.global_batch_size = 1024;
  return plan;
}

std::string page_of(const Plan& plan, const PlanQuestion* question, const PlanAnswer* answer) {
  const StepReport explained =
      estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout, Detail::explained);
  const Simulation made = simulate(plan);
  PageContent content;
  content.plan = &plan;
  content.simulation = &made;
  content.estimate = &explained;
  content.question = question;
  content.answer = answer;
  return report_page(content);
}

/// All that `shardwise report --top 0` does but for reading and writing files.
void page(benchmark::State& state) {
  const Plan plan = sixteen_stages();
  std::size_t bytes = 0;
  for ([[maybe_unused]] const auto _ : state) bytes = page_of(plan, nullptr, nullptr).size();
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(page)->Unit(benchmark::kMillisecond);

/// The ranking of range(0) layouts that the page has besides, and the page with it.
void ranked_page(benchmark::State& state) {
  const Plan plan = sixteen_stages();
  std::size_t bytes = 0;
  for ([[maybe_unused]] const auto _ : state) {
    const PlanQuestion question = question_of(plan, static_cast<std::size_t>(state.range(0)));
    const Result<PlanAnswer> found = answer(question);
    bytes = page_of(plan, &question, &*found).size();
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(ranked_page)->Arg(10)->Arg(40)->Arg(200)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace shardwise::sim
