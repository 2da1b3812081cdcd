#include "cli/flags/noise_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>

#include "planner/command/number_flags.h"

namespace shardwise::cli {
namespace {

constexpr double kLeastHours = 0.001;

}  // namespace

void add_noise_flags(CLI::App& verb, sim::NoiseRules& noise) {
  CLI::Option* trials = add_integer(verb, "--trials", noise.trials, 1, 100'000,
                                    "Simulate this many steps of every rank, with --jitter and "
                                    "other noise [0]")
                            ->excludes(verb.get_option("--import"));
  add_integer(verb, "--seed", noise.seed, 0, std::int64_t{1} << 60, "Seed of the noise [1]")
      ->needs(trials);
  add_number(verb, "--jitter", noise.jitter, 0, 1,
             "Standard deviation of an operation's time, as a share [0]")
      ->type_name("SHARE")
      ->needs(trials);
  CLI::Option* slow =
      add_integer(verb, "--slow-nodes", noise.slow_nodes, 0, 1'000'000, "Nodes with slow GPUs [0]")
          ->needs(trials);
  add_number(verb, "--slow-factor", noise.slow_factor, 1, 1000,
             "Factor by which slow nodes compute longer [1]")
      ->type_name("X")
      ->needs(slow);
  add_integer(verb, "--failed-links", noise.failed.links, 0, 1'000'000,
              "Failed NICs and up-links; the others carry their traffic [0]")
      ->needs(trials);
  add_integer(verb, "--failed-switches", noise.failed.switches, 0, 1'000'000,
              "Failed leaf switches, each with a NIC of up to 32 nodes [0]")
      ->needs(trials);
  CLI::Option* failures =
      add_number(verb, "--mtbf-hours-per-gpu", noise.mtbf_hours_per_gpu, kLeastHours, 1e9,
                 "Mean time between failures of a GPU that stop the job [no failures]")
          ->type_name("HOURS")
          ->needs(trials);
  add_number(verb, "--restart-minutes", noise.restart_minutes, 0, 1e6,
             "Time from a failure to the next step [10]")
      ->type_name("MINUTES")
      ->needs(failures);
}

bool disturbs_steps(const sim::NoiseRules& noise) {
  return noise.jitter > 0 || noise.slow_nodes > 0 || noise.failed.links > 0 ||
         noise.failed.switches > 0;
}

}  // namespace shardwise::cli
