#include "cli/simulate_files.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/write_file.h"
#include "planner/spec/error.h"
#include "planner/spec/report_json.h"
#include "simulator/chakra.h"
#include "simulator/timeline_svg.h"
#include "simulator/trace.h"

namespace shardwise::cli {
namespace {

constexpr std::size_t kMostTracedRanks = 64;

void write_chakra(const std::string& folder, const Plan& plan, const sim::Simulation& made) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw IoError(fmt::format("{}: cannot be made: {}", folder, error.message()));
  sim::ChakraTraces traces(plan, made);
  for (std::int64_t rank = 0; rank < plan.layout.world(); ++rank) {
    write_file(fmt::format("{}/step.{}.et", folder, rank), traces.of_rank(rank));
  }
  write_file(folder + "/comm_groups.json", traces.groups());
}

}  // namespace

void write_simulation(const SimulateFlags& flags, const Plan& plan, const sim::Simulation& made) {
  if (!flags.output.empty()) write_file(flags.output, report_json(made.report));
  if (!flags.trace.empty()) {
    std::string trace;
    sim::write_trace(plan, made, kMostTracedRanks,
                     [&trace](std::string_view text) { trace += text; });
    write_file(flags.trace, trace);
  }
  if (!flags.svg.empty()) write_file(flags.svg, sim::timeline_svg(plan, made));
  if (!flags.chakra.empty()) write_chakra(flags.chakra, plan, made);
}

}  // namespace shardwise::cli
