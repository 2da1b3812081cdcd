#include "executor/launch/introduction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "planner/cost/layer/operation_memory.h"
#include "planner/estimate/estimate.h"
#include "planner/spec/plan/mesh.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/text/format.h"

namespace shardwise::exec {
namespace {

constexpr std::size_t kNameBytes = 64;
constexpr int kMostShown = 16;

std::vector<std::string> host_names(World& world) {
  std::array<char, kNameBytes> own{};
  gethostname(own.data(), own.size() - 1);
  std::vector<char> all(kNameBytes * static_cast<std::size_t>(world.size()));
  world.control_group(all_ranks(world), Control::hosts)
      ->all_gather_bytes(std::as_bytes(std::span<const char>(own)),
                         std::as_writable_bytes(std::span<char>(all)));
  std::vector<std::string> names;
  for (std::size_t at = 0; at < all.size(); at += kNameBytes) names.emplace_back(&all[at]);
  return names;
}

}  // namespace

void announce(const Plan& plan, std::int64_t steps) {
  const Layout& layout = plan.layout;
  const std::string stages =
      layout.pp > 1 ? fmt::format(", pp {} by {}", layout.pp, name_of(layout.schedule)) : "";
  fmt::print("{}, {} parameters, {} ZeRO-{}, dp_shard {}, dp_replicate {}{}\n", plan.model.name,
             format_count(plan.model.parameter_count()), plan.engine.name, layout.zero_stage,
             layout.dp_shard, layout.dp_replicate, stages);
  const std::int64_t batch = plan.job.batch_for(layout.dp(), layout.micro_batch_size);
  const Seconds step = evaluate(plan.model, plan.cluster, plan.job, plan.engine, layout).step_time;
  fmt::print("{} tokens a step, predicted {} a step on {}; {} for {} step{}\n",
             format_count(batch * plan.job.sequence_length), format_seconds(step),
             plan.cluster.name, format_seconds(step * static_cast<double>(steps)),
             format_count(steps), steps == 1 ? "" : "s");
  std::fflush(stdout);
}

void introduce(const Plan& plan, const Arena& arena, World& world, bool speaks) {
  const std::vector<std::string> hosts = host_names(world);
  if (!speaks) return;
  const Layout& layout = plan.layout;
  for (int rank = 0; rank < world.size() && rank < kMostShown; ++rank) {
    fmt::print("rank {} on {}, shards with {}", rank, hosts[static_cast<std::size_t>(rank)],
               fmt::join(group_ranks(layout, GroupKind::dp_shard_cp, rank), " "));
    if (layout.dp_replicate > 1) {
      fmt::print(", replicas {}",
                 fmt::join(group_ranks(layout, GroupKind::dp_replicate, rank), " "));
    }
    if (layout.pp > 1) {
      fmt::print(", stages {}", fmt::join(group_ranks(layout, GroupKind::pp, rank), " "));
    }
    fmt::print("\n");
  }
  if (world.size() > kMostShown) fmt::print("… {} ranks\n", world.size());
  fmt::print("memory per rank {}, peak in use {}\n", format_bytes(Bytes(arena.bytes())),
             format_bytes(Bytes(arena.layout(1).live_bytes)));
  if (kernels_of(plan.job, plan.engine) != Kernels::planned) {
    fmt::print("note: the run uses our kernels; plan with --kernels planned to compare\n");
  }
  std::fflush(stdout);
}

void introduce_devices(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) fmt::print("{}\n", note);
  std::fflush(stdout);
}

void introduce_steps(const std::string& how_they_run, std::int64_t ranks,
                     const CommunicatorTraits& traits) {
  if (!how_they_run.empty()) fmt::print("{}\n", how_they_run);
  if (ranks > 1 && !traits.sums_in_rank_order) {
    fmt::print(
        "sums over ranks are not in rank order: losses differ from CPUs' in the last bits\n");
  }
  std::fflush(stdout);
}

}  // namespace shardwise::exec
