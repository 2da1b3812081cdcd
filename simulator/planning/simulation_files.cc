#include "simulator/planning/simulation_files.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "planner/files/atomic_file_set.h"
#include "planner/model/parameter_words.h"
#include "planner/spec/report_json.h"
#include "simulator/chakra.h"
#include "simulator/timeline_svg.h"
#include "simulator/trace.h"

namespace shardwise::sim {
namespace {

void add_chakra(AtomicFileSet& files, const std::string& folder, const Plan& plan,
                const Simulation& made) {
  files.add_folder(folder);
  ChakraTraces traces(plan, made);
  for (std::int64_t rank = 0; rank < plan.layout.world(); ++rank) {
    files.add(fmt::format("{}/step.{}.et", folder, rank), traces.of_rank(rank));
  }
  files.add(folder + "/comm_groups.json", traces.groups());
}

}  // namespace

void write_simulation(const SimulationFiles& to, const Plan& plan, const Simulation& made) {
  AtomicFileSet files;
  if (!to.report.empty()) {
    files.add(to.report, report_json(made.report, reported_parameters(plan.model)));
  }
  if (!to.trace.empty()) {
    std::string trace;
    write_trace(plan, made, kMostTracedRanks, [&trace](std::string_view text) { trace += text; });
    files.add(to.trace, trace);
  }
  if (!to.svg.empty()) files.add(to.svg, timeline_svg(plan, made));
  if (!to.chakra.empty()) add_chakra(files, to.chakra, plan, made);
  files.keep();
}

}  // namespace shardwise::sim
