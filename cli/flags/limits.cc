#include "cli/flags/limits.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "planner/files/process_memory.h"
#include "planner/files/process_time.h"
#include "planner/question/flags.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::cli {
namespace {

/// Verbs that answer nothing, or start another program, which has limits of its own.
constexpr std::array<std::string_view, 5> kWithout = {"run", "view", "list", "completion", "man"};

/// "90s", "10 min", "2h"; a number alone counts seconds. Nothing where it is none of these.
std::optional<Seconds> parse_time(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
      {{"ms", 1e-3}, {"min", 60}, {"s", 1}, {"h", 3600}}};
  double each = 1;
  for (const auto& [unit, seconds] : kUnits) {
    if (!text.ends_with(unit)) continue;
    each = seconds;
    text.remove_suffix(unit.size());
    if (text.ends_with(' ')) text.remove_suffix(1);
    break;
  }
  const std::optional<double> number = parse_number(text);
  if (!number) return std::nullopt;
  return Seconds(*number * each);
}

}  // namespace

void add_limits(CLI::App& app) {
  for (CLI::App* const verb : app.get_subcommands({})) {
    if (std::ranges::find(kWithout, verb->get_name()) != kWithout.end()) continue;
    const bool trains = verb->get_name() == "measure";
    verb->add_option_function<std::string>(
            kMemoryLimitFlag, [](const std::string&) {},
            trains ? "Memory of this machine for search and predictions, not the training [a "
                     "quarter of it]"
                   : "Memory of this machine that may be taken [a quarter of it]")
        ->type_name("SIZE");
    verb->add_option_function<std::string>(
            kTimeLimitFlag, [](const std::string&) {},
            fmt::format("How long {} may compute, 90s or 2h [{:.0f} min]",
                        trains ? "search and predictions, not the training," : "this",
                        kUsualTimeLimit.value() / 60))
        ->type_name("TIME");
  }
}

Result<std::optional<Limits>> asked_limits(const CLI::App& app) {
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  const auto flag = [&](const char* name) {
    return verbs.empty() ? nullptr : verbs.front()->get_option_no_throw(name);
  };
  const CLI::Option* const memory = flag(kMemoryLimitFlag);
  const CLI::Option* const time = flag(kTimeLimitFlag);
  if (memory == nullptr || time == nullptr) return std::optional<Limits>();
  Limits limits{usual_memory_limit(), kUsualTimeLimit};
  Diagnostics problems;
  if (memory->count() > 0) {
    const std::string problem =
        read_size(memory->as<std::string>(), 1_GiB, 1_MiB, kMostMemoryLimit, limits.memory);
    if (!problem.empty()) {
      problems.push_back(wrong_flag(kMemoryLimitFlag, problem, "a number alone counts GiB"));
    }
  }
  if (time->count() > 0) {
    const auto text = time->as<std::string>();
    const std::optional<Seconds> asked = parse_time(text);
    if (asked && *asked >= Seconds(0.1) && *asked <= kMostTimeLimit) {
      limits.time = *asked;
    } else {
      problems.push_back(wrong_flag(
          kTimeLimitFlag,
          fmt::format("{} is not a time from {} to {}, such as 90s, 10min or 2h", shown(text),
                      format_seconds(Seconds(0.1)), format_seconds(kMostTimeLimit)),
          "a number alone counts seconds"));
    }
  }
  if (!problems.empty()) return problems;
  return std::optional(limits);
}

}  // namespace shardwise::cli
