#include <array>
#include <string>

#include "tests/simulator/drawn_layouts.h"

namespace shardwise::sim {
namespace {

struct Job {
  const char* name;
  void (*change)(Plan&);
};
// Little compute beside the same traffic, much of it, other dtypes and other operations.
constexpr std::array<Job, 8> kJobs = {{
    {"short sequences", [](Plan& plan) { plan.job.sequence_length = 512; }},
    {"short sequences, many micro-batches",
     [](Plan& plan) {
       plan.job.sequence_length = 512;
       plan.job.global_batch_size = 256;
     }},
    {"long sequences", [](Plan& plan) { plan.job.sequence_length = 16384; }},
    {"fp32", [](Plan& plan) { plan.job.precision = DType::fp32; }},
    {"fp8, gathered so",
     [](Plan& plan) {
       plan.job.precision = DType::fp8;
       plan.job.fp8_parameter_gather = true;
     }},
    {"hidden exchange of experts", [](Plan& plan) { plan.job.expert_overlap = true; }},
    {"loss per token", [](Plan& plan) { plan.job.calculate_per_token_loss = true; }},
    {"sums in fp32", [](Plan& plan) { plan.job.reduce_scatter_with_fp32_accumulation = true; }},
}};

// Under every engine, whatever the job asks of it, on one stage and in pipelines.
TEST(SimulatedLayouts, AreNearTheClosedFormUnderOtherJobs) {
  std::uint32_t seed = 20261126;
  Apart apart;
  for (const Job& job : kJobs) {
    SCOPED_TRACE(job.name);
    const int before = apart.drawn();
    for (const bool experts : {false, true}) {
      for (const std::string& engine : engine_names()) {
        Plan plan = experts ? mixture_example(engine, 16) : example(engine, 16);
        job.change(plan);
        draw(plan, 500, ++seed, [&](const Plan& drawn) {
          const Layout& layout = drawn.layout;
          if (layout.pp > 1 || !layout.overlap_grad_reduce || !layout.overlap_param_gather) return;
          if (is_itself(drawn)) apart.expect_near(drawn);
        });
        const auto as_drawn = [](Layout&) {};
        draw_pipelines(
            plan, 2, ++seed, as_drawn, [&](const Plan& drawn) { apart.expect_near(drawn); },
            100'000);
      }
    }
    EXPECT_GT(apart.drawn(), before + 5);
  }
  apart.record();
  EXPECT_GT(apart.near(), apart.drawn() * 9 / 10);
}

}  // namespace
}  // namespace shardwise::sim
