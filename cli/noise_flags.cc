#include "cli/noise_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>

namespace shardwise::cli {
namespace {

constexpr double kLeastHours = 0.001;

}  // namespace

void add_noise_flags(CLI::App& verb, sim::NoiseRules& noise) {
  CLI::Option* trials =
      verb.add_option("--trials", noise.trials, "Simulate every rank so often with noise (none)")
          ->check(CLI::Range(1, 100'000))
          ->type_name("N")
          ->excludes(verb.get_option("--import"));
  verb.add_option("--seed", noise.seed, "Of the noise (1)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 60))
      ->type_name("N")
      ->needs(trials);
  verb.add_option("--jitter", noise.jitter, "Relative deviation of every operation (0)")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("SHARE")
      ->needs(trials);
  CLI::Option* slow =
      verb.add_option("--slow-nodes", noise.slow_nodes, "Nodes that compute longer (0)")
          ->check(CLI::Range(0, 1'000'000))
          ->type_name("N")
          ->needs(trials);
  verb.add_option("--slow-factor", noise.slow_factor, "By so many times (1)")
      ->check(CLI::Range(1.0, 1000.0))
      ->type_name("X")
      ->needs(slow);
  verb.add_option("--failed-links", noise.failed.links,
                  "NICs and up-links that are gone, their traffic on the others (0)")
      ->check(CLI::Range(0, 1'000'000))
      ->type_name("N")
      ->needs(trials);
  verb.add_option("--failed-switches", noise.failed.switches,
                  "Leaf switches that are gone, each with a NIC of up to 32 nodes (0)")
      ->check(CLI::Range(0, 1'000'000))
      ->type_name("N")
      ->needs(trials);
  CLI::Option* failures = verb.add_option("--mtbf-hours-per-gpu", noise.mtbf_hours_per_gpu,
                                          "Mean time between failures that stop the job (none)")
                              ->check(CLI::Range(kLeastHours, 1e9))
                              ->type_name("HOURS")
                              ->needs(trials);
  verb.add_option("--restart-minutes", noise.restart_minutes, "From a failure to a step (10)")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("MINUTES")
      ->needs(failures);
}

Diagnostics noise_problems(const sim::NoiseRules& noise, const Plan& plan) {
  Diagnostics problems;
  const auto finite = [&problems](const char* flag, double value) {
    if (std::isfinite(value)) return;
    problems.push_back({"command line", 0, 0, flag, fmt::format("{} is not a number", value), ""});
  };
  finite("--jitter", noise.jitter);
  finite("--slow-factor", noise.slow_factor);
  finite("--mtbf-hours-per-gpu", noise.mtbf_hours_per_gpu);
  finite("--restart-minutes", noise.restart_minutes);
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
