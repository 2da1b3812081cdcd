// Random command lines, each held to what must be true of every answer. The same seed asks the same
// questions. ctest asks 300; `random_commands --trials 10000 --seed 7` is the long campaign. With
// --address-space, questions that take much memory are asked where there is little.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/cli/random_commands/invariants.h"
#include "tests/cli/random_commands/question.h"

namespace shardwise::cli {
namespace {

using nlohmann::json;

/// What a trial did; `problems` are printed with the commands that show them.
struct Trial {
  int commands = 0;
  bool legal = false;
  std::vector<std::string> problems;
};

/// Runs commands of one trial and collects what is wrong.
class Questioner {
 public:
  /// The report that a command printed, or nothing when it refused or broke.
  json ask(const std::vector<std::string>& command) {
    ++trial_.commands;
    const Outcome outcome = shardwise(command);
    blame(command, outcome_violations(outcome));
    if (outcome.exit_code != 0 && outcome.exit_code != 1) return nullptr;
    json answer = json::parse(outcome.out, nullptr, false);
    if (!answer.is_discarded()) return answer;
    blame(command, {"standard output is no JSON: " + outcome.out.substr(0, 200)});
    return nullptr;
  }

  void blame(const std::vector<std::string>& command, const Violations& violations) {
    for (const std::string& violation : violations) {
      trial_.problems.push_back(
          fmt::format("{}\n    shardwise {}", violation, fmt::join(command, " ")));
    }
  }

  Trial& trial() { return trial_; }

 private:
  Trial trial_;
};

/// Every field of a layout as locks of a search, but for buckets of the engine's own size: in a
/// plan they are 0, which typed is Megatron's bucket for each tensor.
std::vector<std::string> locks_of(const json& layout) {
  std::vector<std::string> locks;
  for (const auto& [field, value] : layout.items()) {
    if (field == "ddp_bucket_size" && value == 0) continue;
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (field == "order")
      text = fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), "-"));
    locks.push_back(fmt::format("--lock={}={}", field, text));
  }
  return locks;
}

Trial run_trial(const Catalogue& catalogue, std::uint64_t seed) {
  Questioner questioner;
  const Question question = draw_question(catalogue, seed);
  const auto estimate = question.command("estimate", {"--json"});
  const json estimated = questioner.ask(estimate);
  if (!estimated.is_object()) return questioner.trial();
  questioner.trial().legal = true;
  questioner.blame(estimate, report_violations(estimated));

  const bool by_kernel = seed % 3 == 0;
  const auto simulate = question.command(
      "simulate",
      {"--json", "--ignore-memory", by_kernel ? "--granularity=kernel" : "--granularity=layer"});
  const json simulated = questioner.ask(simulate);
  if (simulated.is_object()) {
    questioner.blame(simulate, report_violations(simulated));
    questioner.blame(simulate, simulation_violations(estimated, simulated, by_kernel));
  }

  if (question.layout.contains("zero-stage") && question.layout.at("zero-stage") != "3") {
    Question sharded = question;
    sharded.layout["zero-stage"] =
        std::to_string(estimated.at("layout").at("zero_stage").get<int>() + 1);
    const auto command = sharded.command("estimate", {"--json"});
    const json higher = questioner.ask(command);
    if (higher.is_object()) {
      questioner.blame(command, report_violations(higher));
      questioner.blame(command, sharding_violations(estimated, higher));
    }
  }

  Question doubled = question;
  doubled.job["global-batch-size"] =
      std::to_string(2 * std::stoll(question.job.at("global-batch-size")));
  const auto larger = doubled.command("estimate", {"--json"});
  const json twice = questioner.ask(larger);
  if (twice.is_object()) questioner.blame(larger, batch_violations(estimated, twice));

  Question open = question;
  open.layout.clear();
  std::vector<std::string> more = locks_of(estimated.at("layout"));
  more.insert(more.end(), {"--space=full", "--threads=1", "--json"});
  const auto plan = open.command("plan", more);
  const json found = questioner.ask(plan);
  if (found.is_object()) questioner.blame(plan, search_violations(estimated, found));
  return questioner.trial();
}

/// One large question where memory is little: an answer, a refusal, or the limit that it met, of
/// memory or of time.
Trial run_bounded_trial(const Catalogue& catalogue, std::uint64_t seed) {
  Questioner questioner;
  Question question = draw_question(catalogue, seed);
  if (seed % 3 == 0) question.job["sequence-length"] = "128";
  if (seed % 5 == 0) question.job["kernels"] = "eager";
  if (seed % 7 == 0) question.layout["micro-batch-size"] = "1";
  std::vector<std::string> command;
  if (seed % 4 == 0) {
    question.layout.clear();
    command = question.command("plan", {"--space=full", "--json"});
  } else if (seed % 4 == 1) {
    command = question.command(
        "simulate", {"--json", "--ignore-memory", "--granularity=kernel", "--trials=20"});
  } else if (seed % 4 == 2) {
    command = question.command("simulate", {"--json", "--ignore-memory", "--all-ranks"});
  } else {
    question.layout.erase("zero-stage");
    command = question.command("estimate", {"--json", "--explain"});
  }
  const Outcome outcome = shardwise(command);
  ++questioner.trial().commands;
  questioner.trial().legal = outcome.exit_code != 2;
  Outcome judged = outcome;
  const auto says = [&](const char* text) { return outcome.err.find(text) != std::string::npos; };
  const bool named =
      says("--memory-limit allows") || says("--time-limit allows") || says("ulimit -v");
  if (outcome.exit_code == 3 && named) judged.exit_code = 1;
  questioner.blame(command, outcome_violations(judged));
  return questioner.trial();
}

/// A command that takes more processor time than any of these questions needs is ended.
void limit_commands() {
  constexpr rlim_t kSeconds = 120;
  const rlimit limit{kSeconds, kSeconds};
  if (setrlimit(RLIMIT_CPU, &limit) != 0)
    fmt::print("commands run without a limit of their time\n");
}

/// As ulimit -v has it: this program and the commands.
void limit_address_space(std::int64_t gib) {
  const auto bytes = static_cast<rlim_t>(gib) << 30;
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) throw std::runtime_error("no limit of address space");
}

int run(std::int64_t trials, std::uint64_t seed, std::int64_t jobs, std::int64_t address_space) {
  const Catalogue catalogue = known_catalogue();
  limit_commands();
  if (address_space > 0) limit_address_space(address_space);
  std::atomic<std::int64_t> next = 0;
  std::mutex printing;
  std::int64_t commands = 0;
  std::int64_t legal = 0;
  std::int64_t failed = 0;
  const auto work = [&] {
    for (std::int64_t i = next++; i < trials; i = next++) {
      Trial trial;
      const std::uint64_t own = seed + static_cast<std::uint64_t>(i);
      try {
        trial = address_space > 0 ? run_bounded_trial(catalogue, own) : run_trial(catalogue, own);
      } catch (const std::exception& problem) {
        trial.problems.push_back(fmt::format("an answer that cannot be read: {}", problem.what()));
      }
      const std::lock_guard lock(printing);
      commands += trial.commands;
      legal += trial.legal ? 1 : 0;
      failed += trial.problems.empty() ? 0 : 1;
      for (const std::string& problem : trial.problems) fmt::print("seed {}: {}\n", own, problem);
      std::fflush(stdout);
    }
  };
  std::vector<std::thread> threads;
  for (std::int64_t i = 0; i < jobs; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  fmt::print(
      "{} questions from seed {}, {} of them legal, {} commands: {} questions with problems\n",
      trials, seed, legal, commands, failed);
  // A campaign that is refused everywhere would show nothing.
  if (legal * 4 < trials) {
    fmt::print("fewer than a quarter of the questions are legal\n");
    return 1;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace shardwise::cli

int main(int argc, char** argv) {
  CLI::App app("Asks random questions about layouts and checks what must hold of every answer");
  std::int64_t trials = 300;
  std::uint64_t seed = 1;
  std::int64_t jobs = std::max(1U, std::thread::hardware_concurrency());
  app.add_option("--trials", trials, "Questions [300]");
  app.add_option("--seed", seed, "Seed of the first question; each next one has the next [1]");
  app.add_option("--jobs", jobs, "Questions at once [all cores]");
  std::int64_t address_space = 0;
  app.add_option("--address-space", address_space, "GiB that a command may have; 0: no limit [0]");
  CLI11_PARSE(app, argc, argv);
  return shardwise::cli::run(trials, seed, jobs, address_space);
}
