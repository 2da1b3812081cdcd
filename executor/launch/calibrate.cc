#include "executor/launch/calibrate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "executor/calibrate/fit_machine.h"
#include "executor/comm/thread_world.h"
#include "executor/kernels/products/gemm.h"
#include "executor/kernels/products/gemm_library.h"
#include "executor/launch/command.h"
#include "executor/launch/launcher.h"
#include "executor/launch/process.h"
#include "executor/launch/rank_processors.h"
#include "executor/launch/together.h"
#include "executor/status/live_job.h"
#include "executor/status/rank_phase.h"
#include "planner/command/number_flags.h"
#include "planner/files/atomic_file_set.h"
#include "planner/files/output_place.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/machine/cluster_writer.h"
#include "planner/spec/text/error.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"

namespace shardwise::exec {
namespace {

constexpr const char* kCalibrateFooter =
    "Measure with as many ranks as the runs to predict: ranks share the processors.\n"
    "\n"
    "Examples\n"
    "  shardwise-run calibrate --ranks 4 -o laptop.json\n"
    "  mpirun -np 4 shardwise-run calibrate -o laptop-mpi.json\n"
    "  shardwise plan --cluster laptop.json --model gpt2 --engine shardwise \\\n"
    "      --precision fp32 -o plan.json\n"
    "\n"
    "Exit codes\n"
    "  0 done   2 bad input or use   3 environment failure";

JobFacts calibration() { return {"calibrate", "", "", 0}; }

/// Bytes that a rank needs to measure, with room to spare.
constexpr std::int64_t kRankBytes = std::int64_t{400} << 20;

/// One line that says what is being timed, on a terminal; elsewhere a line a tenth.
class Line {
 public:
  void tell(const std::string& what, double done) {
    const int percent = static_cast<int>(100 * done);
    if (isatty(STDERR_FILENO) != 0) {
      fmt::print(stderr, "\r\x1b[K{:3} %  {}", percent, what);
      open_ = true;
    } else if (percent / 10 > last_) {
      last_ = percent / 10;
      fmt::print(stderr, "{:3} %  {}\n", percent, what);
    }
    std::fflush(stderr);
  }
  void end() const {
    if (open_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  bool open_ = false;
  int last_ = -1;
};

Measurements measure_rank(World& world, int threads, const Machine& machine) {
  Workers workers(threads);
  Line line;
  const bool speaks = world.rank() == 0;
  Measurements measured =
      measure(world, workers, machine.cores, [&](const std::string& what, double done) {
        if (speaks) line.tell(what, done);
      });
  line.end();
  return measured;
}

void print_residuals(const FittedMachine& fitted) {
  Table table({{"curve", Align::left},
               {"points"},
               {"best rate per rank"},
               {"median error"},
               {"95th percentile"}});
  for (const Residual& each : fitted.residuals) {
    table.row({each.curve, format_count(each.points), each.rate, format_percent(each.median_error),
               format_percent(each.p95_error)});
  }
  fmt::print("{}", table.text(isatty(STDOUT_FILENO) != 0));
}

void write_fitted(const CalibrateOptions& options, const FittedMachine& fitted) {
  JsonWriter json;
  json.begin_object();
  write_cluster(json, fitted.cluster);
  json.end_object();
  write_file(options.output, json.text());
}

void finish(const CalibrateOptions& options, const Machine& machine, const RanksOnMachine& ranks,
            const Measurements& measured) {
  const std::string name =
      options.name.empty() ? std::filesystem::path(options.output).stem().string() : options.name;
  const FittedMachine fitted = fit_machine(name, machine, ranks, measured);
  print_residuals(fitted);
  fmt::print("latency of an operation that waits for another stream: {}\n",
             format_seconds(measured.operation));
  write_fitted(options, fitted);
  fmt::print("{}: {}\n", options.output, fitted.cluster.label);
}

void introduce(const Machine& machine, const RanksOnMachine& ranks) {
  fmt::print("{}, {}, {} cores, {}: {} ranks ({}) of {} threads compute at once\n", machine.host,
             machine.processor, machine.cores, format_bytes(machine.memory), ranks.ranks,
             ranks.communicator, ranks.threads);
  for (const std::string& note : gemm_library().notes()) fmt::print("{}\n", note);
  if (machine.load > 0.3 * machine.cores) {
    fmt::print(
        "{:.1f} processes ran on average over the last minute; they slow what is measured now\n",
        machine.load);
  }
  std::fflush(stdout);
}

Diagnostics problems_of(const CalibrateOptions& options, const Launcher& launcher, int ranks,
                        const Machine& machine) {
  Diagnostics problems;
  const auto wrong = [&](const char* flag, std::string message, std::string hint) {
    problems.push_back(wrong_use(flag, std::move(message), std::move(hint)));
  };
  if (launcher.ranks > 1 && options.ranks > 0) {
    wrong("--ranks", fmt::format("{} started {} processes", name_of(launcher.kind), launcher.ranks),
          "leave --ranks out; it starts threads in a single process");
  }
  const std::int64_t needed = kRankBytes * ranks;
  if (needed > machine.memory.value()) {
    wrong("--ranks",
          fmt::format("{} ranks need {} to measure, the machine has {}", ranks,
                      format_bytes(Bytes(needed)), format_bytes(machine.memory)),
          fmt::format("at most {}", machine.memory.value() / kRankBytes));
  }
  find_unwritable("--output", options.output, problems);
  const std::vector<NamedFile> files = {{"--output", options.output}};
  const Diagnostics shared = check_outputs(files, {});
  problems.insert(problems.end(), shared.begin(), shared.end());
  if (problems.empty()) reserve_standard_output(files);
  return problems;
}

int calibrate_threads(const CalibrateOptions& options, const Machine& machine,
                      const RanksOnMachine& ranks) {
  reserve_gemm_buffers(std::int64_t{options.threads} * ranks.ranks);
  introduce(machine, ranks);
  AbortSignal abort;
  const LiveJob live(calibration(), abort);
  Measurements measured;
  const std::vector<int> processors = own_processors();
  const auto rank_main = [&](World& world) {
    const StayOn place(processors_of_rank(processors, world.rank(), world.size()));
    const RankPhase phase(abort, world.rank(), Phase::calibrating);
    Measurements own = measure_rank(world, options.threads, machine);
    if (world.rank() == 0) measured = std::move(own);
  };
  run_ranks(ranks.ranks, abort, rank_main,
            std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * options.timeout_s)));
  finish(options, machine, ranks, measured);
  return kDone;
}

/// One process of a job's.
int calibrate_as_rank(const CalibrateOptions& options, Machine machine, const RanksOnMachine& ranks,
                      const Diagnostics& problems, World& world) {
  const Diagnostics all = Together(world).gather(problems);
  if (!all.empty()) return world.rank() == 0 ? refuse(all) : kBadInput;
  reserve_gemm_buffers(options.threads);
  machine.cores = cores_of_all(world);
  if (world.rank() == 0) introduce(machine, ranks);
  const Measurements measured = measure_rank(world, options.threads, machine);
  if (world.rank() == 0) finish(options, machine, ranks, measured);
  return kDone;
}

}  // namespace

void add_calibrate(CLI::App& app, Verb& verb) {
  CLI::App* const added =
      app.add_subcommand("calibrate", "Measure this machine and write it as a cluster file");
  auto options = std::make_shared<CalibrateOptions>();
  added->footer(kCalibrateFooter);
  added->add_option("-o,--output", options->output, "Cluster file to write")
      ->type_name("FILE")
      ->required();
  added->add_option("--name", options->name, "Name of the cluster [name of the file]")
      ->type_name("NAME");
  add_integer(*added, "--ranks", options->ranks, 1, 1024,
              "Ranks that compute at once, as threads [1]");
  add_integer(*added, "--threads", options->threads, 1, 1024, "Compute threads per rank [1]");
  add_number(*added, "--timeout", options->timeout_s, 0.001, 1e6,
             "Longest wait of a rank for another, in seconds [600]")
      ->type_name("SECONDS");
  added->callback([&verb, options] { verb = [options] { return calibrate(*options); }; });
}

int calibrate(const CalibrateOptions& options) {
  const Result<Launcher> launched = find_launcher();
  if (!launched) return refuse(launched.problems());
  const Launcher& launcher = *launched;
  Machine machine = this_machine();
  machine.products = gemm_library().label();
  const bool alone = launcher.ranks == 1;
  const RanksOnMachine ranks = {alone ? std::max(1, options.ranks) : launcher.ranks,
                                options.threads, launcher.communicator()};
  const Diagnostics problems = problems_of(options, launcher, ranks.ranks, machine);
  if (!alone) {
    const auto rank_main = [&](World& world, AbortSignal& abort) {
      const RankPhase phase(abort, world.rank(), Phase::calibrating);
      return calibrate_as_rank(options, machine, ranks, problems, world);
    };
    return run_process(launcher, options.timeout_s, calibration(), rank_main);
  }
  if (!problems.empty()) return refuse(problems);
  return calibrate_threads(options, machine, ranks);
}

}  // namespace shardwise::exec
