#include "cli/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/completion.h"
#include "cli/configurations.h"
#include "cli/flags/limits.h"
#include "cli/questions.h"
#include "cli/unknown_words.h"
#include "planner/command/command_line.h"
#include "planner/command/command_words.h"
#include "planner/command/unknown_words.h"
#include "planner/files/process_memory.h"
#include "planner/files/process_time.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::cli {
namespace {

constexpr const char* kExamples =
    "Examples\n"
    "  shardwise estimate --model llama-3.1-8b --cluster dgx-h100 \\\n"
    "      --zero-stage 3 --engine fsdp2\n"
    "  shardwise plan --model llama-3.1-70b --cluster dgx-h100 --gpus 64 -o plan.json\n"
    "\n"
    "Exit codes\n"
    "  0 done   1 nothing fits   2 bad input or use   3 environment failure";

/// One line on stderr for each; the code that a wrong command line ends with.
ExitCode refuse(const std::vector<std::string>& mistakes) {
  for (const std::string& mistake : mistakes) fmt::print(stderr, "shardwise: {}\n", mistake);
  return ExitCode::bad_input;
}

/// "shardwise help plan" as "shardwise plan --help"; the words of a framework's command guarded.
std::vector<std::string> words_of(int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (words.size() < 2) return words;
  if (words[1] == "help") {
    words.erase(words.begin() + 1);
    words.emplace_back("--help");
  }
  guard_command(words);
  return words;
}

}  // namespace

void add_verbs(CLI::App& app, Run& run) {
  add_fits(app, run);
  add_estimate(app, run);
  add_plan(app, run);
  add_simulate(app, run);
  add_run(app, run);
  add_measure(app, run);
  add_view(app, run);
  add_compare(app, run);
  add_report(app, run);
  add_export(app, run);
  add_import(app, run);
  add_check(app, run);
  add_score(app, run);
  add_fit(app, run);
  add_size(app, run);
  add_mfu(app, run);
  add_list(app, run);
  add_documents(app, run);
  add_limits(app);
}

ExitCode run_command(int argc, const char* const* argv) {
  CLI::App app("Does it fit, how long does a step take, and why", "shardwise");
  app.set_version_flag("--version", std::string("shardwise ") + SHARDWISE_VERSION);
  app.set_help_flag("-h,--help", "Print this help");
  app.footer(kExamples);
  app.formatter(help_formatter());  // before the verbs, which take it over

  Run run;
  add_verbs(app, run);
  refuse_empty_values(app);

  if (argc > 2 && argv[1] == std::string_view(kCompleteVerb)) {
    for (const Candidate& each : candidates(app, {argv + 2, argv + argc})) {
      fmt::print("{}\t{}\n", each.word, each.meaning);
    }
    return ExitCode::done;
  }

  if (argc < 2) {
    fmt::print("{}", questions_text());
    return ExitCode::done;
  }

  // Only the command itself: the verbs, added above, refuse what they do not know.
  app.allow_extras();
  try {
    const std::vector<std::string> words = words_of(argc, argv);
    std::vector<const char*> pointers;
    for (const std::string& each : words) pointers.push_back(each.c_str());
    app.parse(static_cast<int>(pointers.size()), pointers.data());
    if (run) {
      // What CLI11 hands back to the command: words behind a verb's files and "--".
      if (const auto left = app.remaining(); !left.empty()) {
        return refuse({fmt::format("{} behind -- belongs to nothing (see {} --help)",
                                   shown(unguarded(left.front())), spoken_name(app))});
      }
      const Result<std::optional<Limits>> limits = asked_limits(app);
      const Diagnostics problems = limits ? check_catalogue() : limits.problems();
      if (!problems.empty()) {
        fmt::print(stderr, "{}", to_string(problems));
        return ExitCode::bad_input;
      }
      std::optional<BoundedTime> time;
      std::optional<BoundedMemory> memory;
      if (*limits) {
        time.emplace((*limits)->time, "shardwise", kTimeLimitFlag);
        memory.emplace((*limits)->memory, kMemoryLimitFlag);
      }
      return run();
    }
    return refuse({missing_verb(app)});
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;
    app.exit(asked, text, text);
    fmt::print("{}", text.str());
    return ExitCode::done;
  } catch (const CLI::ParseError& wrong) {
    // A word that nobody took says more than the flag that is missing for want of it.
    const std::vector<std::string> unknown = unknown_words(app);
    if (!unknown.empty()) return refuse(unknown);
    return refuse(
        {fmt::format("{} (see {} --help)", plain_mistake(wrong.what()), spoken_name(app))});
  }
}

}  // namespace shardwise::cli
