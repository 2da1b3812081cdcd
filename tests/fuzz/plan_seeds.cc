// Writes plans as the planner writes them today into the folder it is given: a seed corpus that
// never falls behind the format.

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/plan.h"

namespace shardwise {
namespace {

/// The first layout of eight GPUs that the engine of `plan` can run.
std::optional<Layout> legal_layout(const Plan& plan) {
  for (const std::int8_t zero_stage : {std::int8_t{3}, std::int8_t{1}, std::int8_t{0}}) {
    for (const int tp : {2, 1}) {
      Layout layout;
      layout.zero_stage = zero_stage;
      layout.tp = tp;
      layout.sequence_parallel = tp > 1;
      layout.dp_shard = 8 / tp;
      if (is_legal(plan.model, plan.cluster, plan.job, plan.engine, layout)) return layout;
    }
  }
  return std::nullopt;
}

int write_plans(const std::filesystem::path& folder) {
  const Result<ClusterSpec> cluster = find_cluster("dgx-h100");
  for (const char* name : {"gpt2-tiny", "llama-3.1-8b", "deepseek-v2-lite"}) {
    const Result<ModelSpec> model = load_model(name);
    if (!model || !cluster) return 1;
    for (const std::string& engine : engine_names()) {
      Plan plan{*model, *cluster, {}, *find_engine(engine), {}};
      if (model->tie_word_embeddings && !plan.engine.tied_head) continue;
      plan.job.global_batch_size = 64;
      const std::optional<Layout> layout = legal_layout(plan);
      if (!layout) {
        fmt::print(stderr, "{} has no legal layout for {} here\n", engine, name);
        return 1;
      }
      plan.layout = *layout;
      std::ofstream(folder / fmt::format("{}_{}.json", name, engine)) << to_json(plan);
    }
  }
  return 0;
}

}  // namespace
}  // namespace shardwise

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::filesystem::remove_all(argv[1]);
  std::filesystem::create_directories(argv[1]);
  return shardwise::write_plans(argv[1]);
}
