#include "cli/memory_limit.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "planner/files/process_memory.h"
#include "planner/question/flags.h"
#include "planner/spec/text/number.h"

namespace shardwise::cli {
namespace {

/// Verbs that answer nothing, or start another program, which has limits of its own.
constexpr std::array<std::string_view, 5> kWithout = {"run", "view", "list", "completion", "man"};

}  // namespace

void add_memory_limits(CLI::App& app) {
  for (CLI::App* const verb : app.get_subcommands({})) {
    if (std::ranges::find(kWithout, verb->get_name()) != kWithout.end()) continue;
    verb->add_option_function<std::string>(
            kMemoryLimitFlag, [](const std::string&) {},
            "Memory of this machine that may be taken [a quarter of it]")
        ->type_name("SIZE");
  }
}

Result<std::optional<Bytes>> asked_memory_limit(const CLI::App& app) {
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  const CLI::Option* const flag =
      verbs.empty() ? nullptr : verbs.front()->get_option_no_throw(kMemoryLimitFlag);
  if (flag == nullptr) return std::optional<Bytes>();
  if (flag->count() == 0) return std::optional(usual_memory_limit());
  Bytes limit{0};
  const std::string problem =
      read_size(flag->as<std::string>(), 1_GiB, 1_MiB, kMostMemoryLimit, limit);
  if (!problem.empty()) {
    return wrong_flag(kMemoryLimitFlag, problem, "a number alone counts GiB");
  }
  return std::optional(limit);
}

}  // namespace shardwise::cli
