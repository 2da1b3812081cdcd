#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "executor/kernels/products/gemm_library.h"
#include "executor/launch/command.h"
#include "executor/launch/launcher.h"
#include "executor/launch/process_limits.h"
#include "executor/launch/rank_devices.h"
#include "planner/command/command_line.h"
#include "planner/command/command_words.h"
#include "planner/command/unknown_words.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/text/meant_flag.h"
#include "planner/spec/text/nearest.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::exec {
namespace {

constexpr const char* kProgramFooter =
    "shardwise-run plan.json is short for shardwise-run train plan.json.\n"
    "\n"
    "Examples\n"
    "  shardwise-run train plan.json --ranks 4 --steps 20 --data corpus.txt\n"
    "  shardwise-run calibrate --ranks 4 -o laptop.json\n"
    "  shardwise-run verify run1\n"
    "  shardwise-run status\n"
    "\n"
    "Exit codes\n"
    "  0 done   1 verify: damaged, status: a rank is silent   2 bad input or use\n"
    "  3 environment failure";

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  return verbs;
}

/// The command line with the verb that it leaves out.
std::vector<const char*> with_verb(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (words.size() < 2) return words;
  const std::string first = words[1];
  const std::vector<std::string> verbs = verbs_of(app);
  const bool own = first == "-h" || first == "--help" || first == "--version";
  if (!own && std::ranges::find(verbs, first) == verbs.end()) {
    words.insert(words.begin() + 1, "train");
  }
  return words;
}

/// A first word that is no file and nearly a verb: "unknown verb trian (did you mean train?)".
std::string misspelt_verb(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2) return "no verb given (see shardwise-run --help)";
  const std::string first = argv[1];
  const std::vector<std::string> verbs = verbs_of(app);
  std::error_code ignored;
  if (std::ranges::find(verbs, first) != verbs.end() || std::filesystem::exists(first, ignored)) {
    return "";
  }
  const std::optional<std::string> near = nearest(first, verbs);
  if (!near) return "";
  return fmt::format("unknown verb {} (did you mean {}?)", shown(first), *near);
}

/// What the plan decides is a flag of the program that writes it: "--gbs 8" is
/// `shardwise plan --global-batch-size`.
std::string flag_of_plan(const KnownFlags&, std::string_view typed, std::string_view value) {
  static const std::vector<std::string> kJob = {
      "--model",     "--cluster", "--gpus",      "--engine",    "--sequence-length",
      "--precision", "--dropout", "--optimizer", "--attention", "--global-batch-size"};
  const std::vector<std::string> job = meant_flags(typed, kJob);
  const std::string meant = job.empty() ? meant_lock(typed, value) : job.front();
  return meant.empty() ? "" : "shardwise plan " + meant;
}

}  // namespace

int run_command(int argc, const char* const* argv) {
  CLI::App app("Train a plan, measure this machine, verify checkpoints, or ask a live job",
               "shardwise-run");
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", [] {
    return fmt::format("shardwise-run {}\n{}\n{}", SHARDWISE_VERSION,
                       fmt::join(gemm_library().notes(), "\n"), fmt::join(describe_gpus(), "\n"));
  });
  app.require_subcommand(0, 1);  // what follows a verb is the verb's
  app.footer(kProgramFooter);
  app.formatter(help_formatter());  // before the verbs, which take it over
  Verb verb;
  add_train(app, verb, {argv, argv + argc});
  add_calibrate(app, verb);
  add_verify(app, verb);
  add_status(app, verb);
  refuse_empty_values(app);

  // Every process of a job reads the same words: one speaks.
  const Result<Launcher> launcher = find_launcher();
  const bool speaks = !launcher || launcher->rank == 0;
  const auto wrong = [&](const std::string& mistake) {
    if (speaks) fmt::print(stderr, "shardwise-run: {}\n", mistake);
    return kBadInput;
  };
  const std::string misspelt = misspelt_verb(app, argc, argv);
  if (!misspelt.empty()) return wrong(misspelt);
  try {
    const std::vector<const char*> words = with_verb(app, argc, argv);
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;
    app.exit(asked, text, text);
    if (speaks) fmt::print("{}", text.str());
    return kDone;
  } catch (const CLI::ParseError& mistake) {
    // A word that nobody took says more than the flag that is missing for want of it.
    const std::vector<std::string> unknown = unknown_words(app, flag_of_plan);
    if (!unknown.empty()) return wrong(fmt::format("{}", fmt::join(unknown, "\nshardwise-run: ")));
    return wrong(
        fmt::format("{} (see {} --help)", plain_mistake(mistake.what()), spoken_name(app)));
  }
  const Diagnostics problems = check_catalogue();
  if (!problems.empty()) return speaks ? refuse(problems) : kBadInput;
  if (!gemm_library().problem.empty()) return wrong(gemm_library().problem);
  const std::string narrow = narrow_limit();
  if (!narrow.empty()) {
    if (speaks) say({Failure::Kind::broken, narrow});
    return kWorldBroke;
  }
  return verb();
}

}  // namespace shardwise::exec
