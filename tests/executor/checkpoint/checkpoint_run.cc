#include "tests/executor/checkpoint/checkpoint_run.h"

#include <fmt/format.h>

#include <optional>

#include "executor/checkpoint/checkpoint_folder.h"
#include "executor/checkpoint/checkpointer.h"
#include "executor/checkpoint/saved_checkpoint.h"
#include "executor/comm/thread_world.h"
#include "executor/device/cpu/cpu_device.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec::test {
namespace {

Manifest about(const Plan& plan) {
  Manifest manifest;
  manifest.model = plan.model.name;
  manifest.plan_digest = digest(plan);
  manifest.engine = plan.engine.name;
  manifest.tensors = saved_tensors(plan);
  return manifest;
}

}  // namespace

std::vector<double> train_from(const Plan& plan, const std::filesystem::path& folder,
                               std::int64_t begin, std::int64_t end, std::int64_t keep,
                               std::string_view run, Device& device) {
  std::optional<SavedCheckpoint> saved;
  if (begin > 0) {
    Result<SavedCheckpoint> opened = SavedCheckpoint::open(folder / complete_name(begin));
    if (!opened) throw IoError(to_string(opened.problems()));
    Diagnostics problems = opened->altered(0, 1);
    if (problems.empty()) problems = opened->differences(about(plan).tensors);
    if (!problems.empty()) throw IoError(to_string(problems));
    saved.emplace(*std::move(opened));
  }
  const TokenSequences data = laptop_text(plan);
  TrainOptions options;
  options.optimizer.peak_learning_rate = 0.01;
  std::vector<double> losses;
  AbortSignal abort;
  std::vector<Arena> arenas(static_cast<std::size_t>(plan.layout.world()));
  const auto rank_main = [&](World& world) {
    Arena& arena = arenas[static_cast<std::size_t>(world.rank())];
    Trainer trainer(plan, world, device, arena, abort, options, stand_in_kernels(plan));
    trainer.initialise();
    if (saved) {
      load_state(*saved, trainer.state(), arena, device);
      trainer.resume(saved->manifest().step, saved->manifest().sequence);
    }
    Manifest manifest = about(plan);
    manifest.run = run;
    Checkpointer checkpointer(folder, keep, manifest, world, abort);
    while (trainer.next_step() < end) {
      const double loss = trainer.step(data).loss;
      checkpointer.save(trainer.state(), arena, device, trainer.next_step(),
                        trainer.next_sequence());
      if (world.rank() == 0) losses.push_back(loss);
    }
    checkpointer.finish();
  };
  run_ranks(static_cast<int>(plan.layout.world()), abort, rank_main, std::chrono::seconds(60));
  return losses;
}

std::vector<double> train_from(const Plan& plan, const std::filesystem::path& folder,
                               std::int64_t begin, std::int64_t end, std::int64_t keep,
                               std::string_view run) {
  CpuDevice device;
  return train_from(plan, folder, begin, end, keep, run, device);
}

Layout layout_of(int zero_stage, int dp_shard, int dp_replicate) {
  Layout layout;
  layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  layout.dp_shard = dp_shard;
  layout.dp_replicate = dp_replicate;
  return layout;
}

}  // namespace shardwise::exec::test
