#include "executor/launch/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "executor/calibrate/machine.h"
#include "executor/checkpoint/checkpointer.h"
#include "executor/comm/thread_world.h"
#include "executor/comm/watchdog.h"
#include "executor/launch/command.h"
#include "executor/launch/executable.h"
#include "executor/launch/introduction.h"
#include "executor/launch/launcher.h"
#include "executor/launch/progress.h"
#include "executor/launch/resume.h"
#include "executor/launch/run_input.h"
#include "executor/recorder/measured_report.h"
#include "executor/recorder/measured_trace.h"
#include "executor/weights/save_weights.h"
#include "planner/cost/legality.h"
#include "planner/spec/report_json.h"
#ifdef SHARDWISE_WITH_MPI
#include "executor/comm/mpi_world.h"
#include "executor/comm/peer_watch.h"
#endif

namespace shardwise::exec {
namespace {

constexpr std::chrono::seconds kOthersEndThis{5};

Diagnostic wrong_use(const std::string& flag, const std::string& message, const std::string& hint) {
  return {"command line", 0, 0, flag, message, hint};
}

/// What keeps the plan from running, the command line and the launcher included.
Diagnostics problems_of(const Plan& plan, const RunOptions& options, const Launcher& launcher) {
  Diagnostics problems = check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  for (Diagnostic& each : problems) each.file = options.plan;
  if (!problems.empty()) return problems;
  problems = cannot_execute(plan, options.plan);
  const std::int64_t world = plan.layout.world();
  if (launcher.ranks > 1) {
    const std::string started =
        fmt::format("{} started {} processes", name_of(launcher.kind), launcher.ranks);
    if (options.ranks > 0) {
      problems.push_back(wrong_use("--ranks", started, "threads are for a process that is alone"));
    } else if (launcher.kind == Launcher::Kind::torchrun) {
      problems.push_back(
          wrong_use("torchrun", started + ", which have no way to talk",
                    fmt::format("use mpirun -np {}, or --ranks {} alone", world, world)));
    } else if (launcher.ranks != world) {
      problems.push_back(wrong_use(
          name_of(launcher.kind), fmt::format("{}, the plan is for {} ranks", started, world),
          fmt::format("start {}, or make a plan for {}", world, launcher.ranks)));
    }
  } else if (options.ranks > 0 && options.ranks != world) {
    problems.push_back(
        wrong_use("--ranks", fmt::format("the plan is for {} ranks", world),
                  fmt::format("--ranks {}, or a plan for {}", world, options.ranks)));
  }
  const std::pair<const char*, const std::string&> outputs[] = {
      {"--report", options.report}, {"--trace", options.trace}, {"--metrics", options.metrics}};
  for (const auto& [flag, path] : outputs) {
    if (!path.empty()) find_unwritable(flag, path, problems);
  }
  return problems;
}

LayerKernels kernels_of(const Plan& plan) {
  LayerShape shape = layer_shape(plan.model, plan.job, plan.layout);
  shape.gradients = state_types(lowering_context(plan, Granularity::layer, false)).made;
  return {[&plan, shape](const LayerSpec& kind) { return make_layer(plan.model, kind, shape); },
          [&plan, shape](std::byte* tables) { fill_tables(plan.model, shape, tables); }};
}

/// The end of a run that failed: what it says, at once.
void say(const std::string& message) {
  fmt::print(stderr, "shardwise-run: {}\n", message);
  std::fflush(stderr);
}

std::chrono::milliseconds patience_of(const RunOptions& options) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * options.timeout_s));
}

StepRecord record_of(const Trainer& trainer, const StepSpans& step) {
  return {trainer.program(step.program), trainer.items(step.program), step.spans, step.seconds};
}

/// What all ranks of a run train with.
struct Run {
  const Plan& plan;
  const RunOptions& options;
  const RunInput& input;
  const std::optional<SavedCheckpoint>& resumed;
};

/// Steps to the last, with checkpoints between them.
void train_steps(const Run& run, Trainer& trainer, World& world, const Arena& arena,
                 AbortSignal& abort) {
  const RunOptions& options = run.options;
  const bool speaks = world.rank() == 0;
  std::optional<Progress> progress;
  const Layout& layout = run.plan.layout;
  const std::int64_t batch = run.plan.job.batch_for(layout.dp(), layout.micro_batch_size);
  const std::int64_t steps = options.train.steps;
  if (speaks) progress.emplace(steps, batch * run.plan.job.sequence_length, options.metrics);
  std::optional<Checkpointer> checkpointer;
  if (!options.checkpoint_dir.empty()) {
    checkpointer.emplace(options.checkpoint_dir, options.keep, manifest_of(run.plan, options),
                         world, abort);
  }
  const auto due = [&](std::int64_t done) {
    return done == steps || (options.checkpoint_every > 0 && done % options.checkpoint_every == 0);
  };
  while (trainer.next_step() < steps) {
    const StepResult result = trainer.step(run.input.data);
    if (speaks) progress->step(result);
    if (!checkpointer || !due(trainer.next_step())) continue;
    checkpointer->save(trainer.state(), arena, trainer.next_step(), trainer.next_sequence());
  }
  if (checkpointer) checkpointer->finish();
}

/// This process before its ranks took memory.
struct Start {
  Bytes resident;
  std::int64_t ranks = 1;
  std::int64_t growth() const { return (resident_memory() - resident).value() / ranks; }
};

/// A rank's whole run; rank 0 tells how it goes.
RankRecord train(const Run& run, const Start& start, World& world, Arena& arena,
                 AbortSignal& abort) {
  Trainer trainer(run.plan, world, arena, abort, run.options.train, kernels_of(run.plan));
  if (run.resumed) {
    const Manifest& manifest = run.resumed->manifest();
    load_state(*run.resumed, trainer.state(), arena);
    trainer.resume(manifest.step, manifest.sequence);
  } else if (run.input.weights) {
    trainer.initialise(run.input.weights->source());
  } else {
    trainer.initialise();
  }
  introduce(run.plan, arena, world, world.rank() == 0);
  if (run.resumed && world.rank() == 0) {
    introduce_resumed(run.resumed->manifest(), run.options);
  }
  train_steps(run, trainer, world, arena, abort);
  if (!run.options.save_weights.empty()) {
    save_weights(trainer.state(), arena, run.plan.model, trainer.everyone(),
                 run.options.save_weights, run.options.max_shard_bytes);
  }
  return {world.rank(), record_of(trainer, trainer.first_step()),
          record_of(trainer, trainer.median_step()), arena.bytes(), start.growth()};
}

void write_records(const Plan& plan, const RunOptions& options,
                   const std::vector<RankRecord>& records) {
  if (!options.report.empty()) {
    write_text(options.report, report_json(measured_report(plan, records.front())));
  }
  if (!options.trace.empty()) write_text(options.trace, measured_trace(plan, records));
}

int run_threads(const Run& run) {
  if (run.resumed) {
    const Diagnostics altered = run.resumed->altered(0, 1);
    if (!altered.empty()) return refuse(altered);
  }
  const Plan& plan = run.plan;
  const RunOptions& options = run.options;
  const auto ranks = static_cast<std::size_t>(plan.layout.world());
  const Start start = {resident_memory(), plan.layout.world()};
  std::vector<Arena> arenas(ranks);
  std::vector<RankRecord> records(ranks);
  AbortSignal abort;
  const auto rank_main = [&](World& world) {
    const auto self = static_cast<std::size_t>(world.rank());
    records[self] = train(run, start, world, arenas[self], abort);
  };
  const Watchdog watchdog(abort, patience_of(options), [](const std::string& message) {
    say(message);
    std::_Exit(kWorldBroke);
  });
  run_ranks(static_cast<int>(ranks), abort, rank_main, patience_of(options));
  write_records(plan, options, records);
  return kDone;
}

#ifdef SHARDWISE_WITH_MPI
/// Compares checksums, every process those of its share; who finds something says so.
bool altered_for_any(const SavedCheckpoint& saved, World& world) {
  constexpr int kChecks = 103;  // number of the group
  const auto ranks = static_cast<std::size_t>(world.size());
  const Diagnostics altered = saved.altered(static_cast<std::size_t>(world.rank()), ranks);
  if (!altered.empty()) refuse(altered);
  std::vector<std::int64_t> everyone(ranks);
  std::iota(everyone.begin(), everyone.end(), std::int64_t{0});
  const std::byte found = altered.empty() ? std::byte{0} : std::byte{1};
  std::vector<std::byte> all(ranks);
  world.group(everyone, kChecks)->exchange({&found, 1}, all);
  return std::ranges::find(all, std::byte{1}) != all.end();
}

/// As one process of a job. A failure ends the others too.
int run_process(const Run& run) {
  const Plan& plan = run.plan;
  const RunOptions& options = run.options;
  MpiJob job;
  if (job.size() != plan.layout.world()) {
    if (job.rank() == 0) {
      fmt::print(stderr, "shardwise-run: MPI joined {} of {} processes\n", job.size(),
                 plan.layout.world());
    }
    return kWorldBroke;
  }
  const Start start = {resident_memory(), 1};
  AbortSignal abort;
  const Watchdog watchdog(abort, patience_of(options), [&job](const std::string& message) {
    say(message);
    job.end_all(kWorldBroke);
  });
  try {
    Arena arena;
    const std::unique_ptr<World> world = job.world(abort, options.timeout_s);
    if (run.resumed && altered_for_any(*run.resumed, *world)) return kBadInput;
    std::optional<PeerWatch> peers;
    peers.emplace(*world, abort);
    const std::vector<RankRecord> records = {train(run, start, *world, arena, abort)};
    peers.reset();
    if (job.rank() == 0) write_records(plan, options, records);
  } catch (const std::exception& broken) {
    // Who failed, elsewhere, says why and ends this process too.
    const bool elsewhere = dynamic_cast<const Aborted*>(&broken) != nullptr && !abort.raised();
    if (elsewhere) std::this_thread::sleep_for(kOthersEndThis);
    say(abort.raised() ? abort.message() : broken.what());
    // Each process knows what its own rank does; the one that hangs says so a little later.
    if (abort.hung()) std::this_thread::sleep_for(std::chrono::seconds(2));
    job.end_all(kWorldBroke);
  }
  return kDone;
}
#endif

}  // namespace

int run(const RunOptions& asked) {
  RunOptions options = asked;
  const Launcher launcher = find_launcher([](const char* name) { return std::getenv(name); });
  const Result<Plan> plan = read_plan(options.plan);
  if (!plan) return refuse(plan.problems());
  const Diagnostics problems = problems_of(*plan, options, launcher);
  if (!problems.empty()) return refuse(problems);
  const Result<std::optional<SavedCheckpoint>> resumed = find_resumed(*plan, options);
  if (!resumed) return refuse(resumed.problems());
  const Result<RunInput> input = read_input(*plan, options);
  if (!input) return refuse(input.problems());
  const Diagnostics unwritable = prepare_checkpoints(options);
  if (!unwritable.empty()) return refuse(unwritable);
  const Run run = {*plan, options, *input, *resumed};
  if (launcher.ranks == 1) return run_threads(run);
#ifdef SHARDWISE_WITH_MPI
  return run_process(run);
#else
  return refuse({wrong_use(name_of(launcher.kind), "this shardwise-run was built without MPI",
                           "install libopenmpi-dev and build again, or use --ranks")});
#endif
}

}  // namespace shardwise::exec
