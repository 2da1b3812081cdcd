#include "cli/noise_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>

#include "planner/spec/number_flags.h"

namespace shardwise::cli {
namespace {

constexpr double kLeastHours = 0.001;

}  // namespace

void add_noise_flags(CLI::App& verb, sim::NoiseRules& noise) {
  CLI::Option* trials = add_integer(verb, "--trials", noise.trials, 1, 100'000,
                                    "Simulate every rank so often with noise (none)")
                            ->excludes(verb.get_option("--import"));
  add_integer(verb, "--seed", noise.seed, 0, std::int64_t{1} << 60, "Of the noise (1)")
      ->needs(trials);
  add_number(verb, "--jitter", noise.jitter, 0, 1, "Relative deviation of every operation (0)")
      ->type_name("SHARE")
      ->needs(trials);
  CLI::Option* slow = add_integer(verb, "--slow-nodes", noise.slow_nodes, 0, 1'000'000,
                                  "Nodes that compute longer (0)")
                          ->needs(trials);
  add_number(verb, "--slow-factor", noise.slow_factor, 1, 1000, "By so many times (1)")
      ->type_name("X")
      ->needs(slow);
  add_integer(verb, "--failed-links", noise.failed.links, 0, 1'000'000,
              "NICs and up-links that are gone, their traffic on the others (0)")
      ->needs(trials);
  add_integer(verb, "--failed-switches", noise.failed.switches, 0, 1'000'000,
              "Leaf switches that are gone, each with a NIC of up to 32 nodes (0)")
      ->needs(trials);
  CLI::Option* failures =
      add_number(verb, "--mtbf-hours-per-gpu", noise.mtbf_hours_per_gpu, kLeastHours, 1e9,
                 "Mean time between failures that stop the job (none)")
          ->type_name("HOURS")
          ->needs(trials);
  add_number(verb, "--restart-minutes", noise.restart_minutes, 0, 1e6,
             "From a failure to a step (10)")
      ->type_name("MINUTES")
      ->needs(failures);
}

Diagnostics noise_problems(const sim::NoiseRules& noise, const Plan& plan) {
  Diagnostics problems;
  if (noise.slow_nodes > 0 && noise.slow_factor <= 1) {
    problems.push_back({"command line", 0, 0, "--slow-nodes",
                        "computing 1 times longer is not slow",
                        "say by how much: --slow-factor, over 1"});
  }
  const std::int64_t each = plan.cluster.gpus_per_node;
  const std::int64_t nodes = (plan.layout.world() + each - 1) / each;
  if (noise.slow_nodes > nodes) {
    problems.push_back({"command line", 0, 0, "--slow-nodes",
                        fmt::format("{} slow nodes of {}", noise.slow_nodes, nodes), ""});
  }
  return problems;
}

}  // namespace shardwise::cli
