#include "executor/launch/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "executor/calibrate/machine.h"
#include "executor/checkpoint/checkpointer.h"
#include "executor/comm/thread_world.h"
#include "executor/comm/watchdog.h"
#include "executor/engine/meetings.h"
#include "executor/engine/rank_place.h"
#include "executor/engine/replica_check.h"
#include "executor/kernels/products/gemm.h"
#include "executor/kernels/products/gemm_library.h"
#include "executor/launch/command.h"
#include "executor/launch/executable.h"
#include "executor/launch/introduction.h"
#include "executor/launch/launcher.h"
#include "executor/launch/local_ranks.h"
#include "executor/launch/process.h"
#include "executor/launch/progress.h"
#include "executor/launch/rank_devices.h"
#include "executor/launch/rank_processors.h"
#include "executor/launch/resume.h"
#include "executor/launch/run_checks.h"
#include "executor/launch/run_input.h"
#include "executor/launch/together.h"
#include "executor/recorder/gather_records.h"
#include "executor/recorder/measured_report.h"
#include "executor/recorder/measured_trace.h"
#include "executor/recorder/trainer_record.h"
#include "executor/status/live_job.h"
#include "executor/status/rank_phase.h"
#include "executor/weights/save_weights.h"
#include "planner/files/atomic_file_set.h"
#include "planner/files/output_place.h"
#include "planner/legality/legality.h"
#include "planner/spec/report/report_json.h"

namespace shardwise::exec {
namespace {

LayerKernels layer_kernels_of(const Plan& plan, std::int64_t rank) {
  LayerShape shape = layer_shape(plan.model, plan.job, plan.layout);
  shape.tp_rank = place_of(plan.layout, rank).tp_rank;
  shape.gradients = state_types(lowering_context(plan, Granularity::layer, false)).made;
  return {[&plan, shape](const LayerSpec& kind) { return make_layer(plan.model, kind, shape); },
          [&plan, shape](std::byte* tables, const Issue& to) {
            fill_tables(plan.model, shape, tables, to);
          }};
}

std::chrono::milliseconds patience_of(const RunOptions& options) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * options.timeout_s));
}

/// What all ranks of a run train with.
struct Run {
  const Plan& plan;
  const RunOptions& options;
  const RunInput& input;
  const std::optional<Resumed>& resumed;
  const RunFolder& folder;
  const RankDevices& devices;
};

std::int64_t steps_to_go(const Run& run) {
  const std::int64_t done = run.resumed ? run.resumed->saved.manifest().step : 0;
  return std::max<std::int64_t>(0, run.options.train.steps - done);
}

/// Steps to the last, with checkpoints between them.
void train_steps(const Run& run, Trainer& trainer, World& world, Device& device, const Arena& arena,
                 AbortSignal& abort, RankPhase& phase) {
  const RunOptions& options = run.options;
  const bool speaks = world.rank() == 0;
  std::optional<Progress> progress;
  const Layout& layout = run.plan.layout;
  const std::int64_t batch = run.plan.job.batch_for(layout.dp(), layout.micro_batch_size);
  const std::int64_t steps = options.train.steps;
  if (speaks) {
    progress.emplace(steps, batch * run.plan.job.sequence_length, options.metrics,
                     trainer.next_step(), run.devices.timings_note());
  }
  std::optional<Checkpointer> checkpointer;
  if (!options.checkpoint_dir.empty()) {
    checkpointer.emplace(options.checkpoint_dir, options.keep,
                         manifest_of(run.plan, options, run.input.identity, run.folder.run()),
                         world, abort);
  }
  std::optional<ReplicaCheck> replicas;
  if (options.compare_replicas > 0) {
    replicas.emplace(trainer, layout, world, device, arena, abort);
  }
  while (trainer.next_step() < steps) {
    const std::int64_t done = trainer.next_step() + 1;
    const bool last = done == steps;
    const std::int64_t every = options.checkpoint_every;
    const bool saves = checkpointer && (last || (every > 0 && done % every == 0));
    const bool compares = replicas && (saves || last || done % options.compare_replicas == 0);
    if (compares) replicas->before_step();
    phase.begin_step(trainer.next_step());
    const StepResult result = trainer.step(run.input.data);
    if (compares) {
      phase.begin(Phase::comparing_replicas);
      replicas->after_step(done);
    }
    double held_s = 0;
    if (saves) {
      phase.begin(Phase::saving_checkpoint);
      const std::int64_t begin = now_ns();
      checkpointer->save(trainer.state(), arena, device, done, trainer.next_sequence());
      held_s = static_cast<double>(now_ns() - begin) * 1e-9;
    }
    if (speaks) progress->step(result, held_s);
  }
  if (checkpointer) {
    phase.begin(Phase::saving_checkpoint);
    checkpointer->finish();
  }
}

/// This process before its ranks took memory.
struct Start {
  Bytes resident;
  std::int64_t ranks = 1;
  std::int64_t growth() const { return (resident_memory() - resident).value() / ranks; }
};

/// Bytes of a GPU's memory that are not free; 0 on the CPU.
std::int64_t used_of(const Run& run, const Device& device) {
  if (!run.devices.on_gpus()) return 0;
  const DeviceFacts facts = device.facts();
  return facts.total_bytes - facts.free_bytes;
}

/// Of a run whose steps an earlier process has trained all: what cannot be known any more.
void tell_unmeasured(const RunOptions& options) {
  for (const auto& [flag, path] :
       {std::pair("--report", options.report), std::pair("--trace", options.trace)}) {
    if (path.empty()) continue;
    fmt::print(stderr,
               "shardwise-run: {} {} is not written: no step was run, so none was measured\n", flag,
               path);
  }
}

/// A rank's whole run; rank 0 tells how it goes.
/// \param stages  gets records_of_stages() where there are several; may be null
RankRecord train(const Run& run, const Start& start, World& world, Device& device, Arena& arena,
                 AbortSignal& abort, RankPhase& phase, std::vector<RankRecord>* stages = nullptr) {
  phase.begin(Phase::initialising);
  if (world.rank() == 0) {
    introduce_devices(run.devices.notes());
    if (!run.devices.on_gpus()) introduce_devices(gemm_library().notes());
  }
  DeviceUse used;
  used.at_start = used_of(run, device);
  Trainer trainer(run.plan, world, device, arena, abort, run.options.train,
                  layer_kernels_of(run.plan, world.rank()));
  if (run.resumed) {
    const Manifest& manifest = run.resumed->saved.manifest();
    load_state(run.resumed->saved, trainer.state(), arena, device);
    trainer.resume(manifest.step, manifest.sequence);
  } else if (run.input.weights) {
    trainer.initialise(run.input.weights->source());
  } else {
    trainer.initialise();
  }
  introduce(run.plan, arena, world, world.rank() == 0);
  if (world.rank() == 0) introduce_steps(trainer.how_it_runs(), world.size(), trainer.traits());
  if (run.resumed && world.rank() == 0) {
    introduce_resumed(run.resumed->saved.manifest(), run.options);
    if (run.resumed->finished) tell_unmeasured(run.options);
  }
  train_steps(run, trainer, world, device, arena, abort, phase);
  used.at_end = used_of(run, device);
  if (!run.options.save_weights.empty()) {
    phase.begin(Phase::saving_weights);
    save_weights(
        trainer.state(), arena, device, run.plan, trainer.everyone(),
        {run.options.save_weights, run.options.weights_dtype, run.options.max_shard_size.value()});
  }
  if (run.resumed && run.resumed->finished) return {};
  phase.begin(Phase::gathering_records);
  const StepSpans& median = trainer.median_step();
  if (stages != nullptr && run.plan.layout.pp > 1) {
    *stages = records_of_stages(trainer, run.plan.layout, trainer.first_step(), median);
  }
  return {world.rank(),
          record_of(trainer, trainer.first_step()),
          record_of(trainer, median),
          trainer.unrecorded_seconds(),
          arena.bytes(),
          start.growth(),
          this_clock(),
          used};
}

void write_records(const Run& run, const std::vector<RankRecord>& records) {
  const RunOptions& options = run.options;
  const std::string& note = run.devices.timings_note();
  if (!options.report.empty()) {
    StepReport report = measured_report(run.plan, records);
    if (!note.empty()) {
      const bool shared = run.devices.on_gpus();
      report.assumptions.push_back({shared ? "device.shared" : "device.cpu", note,
                                    shared ? "--share-gpu" : "the start of the run"});
    }
    if (!run.devices.on_gpus()) {
      report.assumptions.push_back({"kernels.products",
                                    fmt::format("{}", fmt::join(gemm_library().notes(), "; ")),
                                    "the library and the processor's cpuid"});
    }
    write_file(options.report, report_json(report));
  }
  if (!options.trace.empty()) write_file(options.trace, measured_trace(run.plan, records, note));
}

int run_threads(const Run& run, AbortSignal& abort, const RankPhases& phases) {
  const RunOptions& options = run.options;
  const auto ranks = static_cast<std::size_t>(run.plan.layout.world());
  const Start start = {resident_memory(), run.plan.layout.world()};
  std::vector<std::unique_ptr<Device>> devices(ranks);
  std::vector<Arena> arenas(ranks);
  std::vector<RankRecord> records(ranks);
  announce(run.plan, steps_to_go(run));
  reserve_gemm_buffers(std::int64_t{options.train.threads} * run.plan.layout.world());
  const std::vector<int> processors = own_processors();
  const auto rank_main = [&](World& world) {
    const auto self = static_cast<std::size_t>(world.rank());
    const StayOn own(processors_of_rank(processors, world.rank(), world.size()));
    devices[self] = run.devices.device(world.rank());
    records[self] = train(run, start, world, *devices[self], arenas[self], abort, *phases[self]);
  };
  const Watchdog watchdog(abort, patience_of(options), [](const std::string& message) {
    say({Failure::Kind::broken, message});
    std::_Exit(kWorldBroke);
  });
  run_ranks(static_cast<int>(ranks), abort, rank_main, patience_of(options));
  if (!run.resumed || !run.resumed->finished) write_records(run, records);
  return kDone;
}

/// What a run needs, read and checked.
struct Prepared {
  Plan plan;
  RunFolder folder;
  std::optional<Resumed> resumed;
  RunInput input;
  RankDevices devices;
};

/// Ranks of several plans would each run their own.
Diagnostics other_plan(const Plan& plan, const std::string& path, const Together& together) {
  if (together.ranks() == 1) return {};
  const std::string own = digest(plan);
  if (together.from_first(own) == own) return {};
  return {{path, 0, 0, "", fmt::format("rank {} has another plan than rank 0", together.rank()),
           "start every rank with the same plan.json"}};
}

/// The plan, which is that of all ranks, where outputs can be written.
Result<Plan> prepare_plan(const Result<Plan>& plan, const RunOptions& options,
                          const Together& together) {
  Diagnostics problems = together.gather(plan ? problems_of_outputs(options) : plan.problems());
  if (problems.empty()) problems = together.gather(other_plan(*plan, options.plan, together));
  if (!problems.empty()) return problems;
  return plan;
}

/// The data and weights, which are those that the run before had.
Result<RunInput> prepare_input(const Plan& plan, const RunOptions& options,
                               const std::optional<Resumed>& resumed, const Together& together) {
  Result<RunInput> input = read_input(plan, options, resumed.has_value());
  Diagnostics problems;
  if (!input) {
    problems = input.problems();
  } else if (resumed) {
    problems = other_data(resumed->saved.manifest(), input->identity, options);
  }
  problems = together.gather(problems);
  if (!problems.empty()) return problems;
  return input;
}

/// Processes of a job prepare it together: the problems of one are those of all.
/// \param world  null where the process is alone
Result<Prepared> prepare(const Result<Plan>& plan, RunOptions& options, const Together& together,
                         World* world) {
  Result<Plan> checked = prepare_plan(plan, options, together);
  if (!checked) return checked.problems();
  // Rank 0 writes what all of them record.
  const bool records = !options.report.empty() || !options.trace.empty();
  options.train.records = together.from_first(records ? "yes" : "no") == "yes";
  Result<RankDevices> devices = RankDevices::open(*checked, options.device, world);
  if (!devices) {
    Diagnostics problems = devices.problems();
    for (Diagnostic& each : problems) {
      if (each.file == "plan") each.file = options.plan;
    }
    return problems;
  }
  Result<RunFolder> folder = RunFolder::enter(options, together);
  if (!folder) return folder.problems();
  Result<std::optional<Resumed>> resumed = find_resumed(*checked, options, together);
  if (!resumed) return resumed.problems();
  Result<RunInput> input = prepare_input(*checked, options, *resumed, together);
  if (!input) return input.problems();
  const Diagnostics claimed = folder->claim(options, *resumed, together);
  if (!claimed.empty()) return claimed;
  return Prepared{*std::move(checked), *std::move(folder), *std::move(resumed), *std::move(input),
                  *std::move(devices)};
}

/// One process of a job's. A problem of any of them ends all.
int run_as_rank(const Result<Plan>& plan, RunOptions options, World& world, AbortSignal& abort) {
  RankPhase phase(abort, world.rank(), Phase::preparing, options.train.steps);
  const Result<Prepared> prepared = prepare(plan, options, Together(world), &world);
  if (!prepared) return world.rank() == 0 ? refuse(prepared.problems()) : kBadInput;
  const Run run = {prepared->plan,    options,          prepared->input,
                   prepared->resumed, prepared->folder, prepared->devices};
  const Start start = {resident_memory(), 1};
  if (world.rank() == 0) announce(run.plan, steps_to_go(run));
  reserve_gemm_buffers(options.train.threads);
  const std::unique_ptr<Device> device = run.devices.device(world.rank());
  Arena arena;
  std::vector<RankRecord> stages;
  RankRecord own =
      train(run, start, world, *device, arena, abort, phase, world.rank() == 0 ? &stages : nullptr);
  if (run.resumed && run.resumed->finished) return kDone;
  ProgramsOf programs_of;
  if (!stages.empty()) {
    programs_of = [&](int rank) {
      return stages[static_cast<std::size_t>(stage_of(run.plan.layout, rank))];
    };
  }
  const GatheredRecords gathered = gather_records(world, std::move(own), programs_of);
  for (const std::string& line : gathered.left_out) fmt::print(stderr, "shardwise-run: {}\n", line);
  if (world.rank() == 0) write_records(run, gathered.ranks);
  return kDone;
}

}  // namespace

int run(const RunOptions& asked) {
  RunOptions options = asked;
  options.train.tell = [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  };
  const Result<Launcher> launched = find_launcher();
  if (!launched) return refuse(launched.problems());
  const Launcher& launcher = *launched;
  options.device.restart = launcher.restart;
  options.device.gpus.timeout_s = options.timeout_s;
  const Result<Plan> plan =
      read_plan(options.plan, [](const Plan& each) { return problems_of(each); });
  if (plan) {
    const Diagnostics problems = problems_of_ranks(*plan, options, launcher);
    if (!problems.empty()) return refuse_alone(launcher, problems);
  }
  if (launcher.ranks == 1 && plan && are_processes(*plan, options)) {
    return run_local_ranks(options.command, static_cast<int>(plan->layout.world()));
  }
  const JobFacts facts = {"train", options.plan, options.checkpoint_dir, 0};
  if (launcher.ranks > 1) {
    const auto rank_main = [&](World& world, AbortSignal& abort) {
      std::optional<StayOn> own;
      if (launcher.kind == Launcher::Kind::local) {
        own.emplace(processors_of_rank(own_processors(), launcher.rank, launcher.ranks));
      }
      return run_as_rank(plan, options, world, abort);
    };
    return run_process(launcher, options.timeout_s, facts, rank_main);
  }
  if (!plan) return refuse(prepare(plan, options, Together(), nullptr).problems());
  AbortSignal abort;
  const RankPhases phases =
      phases_of_ranks(abort, plan->layout.world(), Phase::preparing, options.train.steps);
  const LiveJob live(facts, abort);
  const Result<Prepared> prepared = prepare(plan, options, Together(), nullptr);
  if (!prepared) return refuse(prepared.problems());
  return run_threads({prepared->plan, options, prepared->input, prepared->resumed, prepared->folder,
                      prepared->devices},
                     abort, phases);
}

}  // namespace shardwise::exec
