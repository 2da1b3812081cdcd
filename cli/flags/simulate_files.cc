#include "cli/flags/simulate_files.h"

#include <fmt/format.h>

#include <string>

#include "planner/files/atomic_file_set.h"
#include "planner/model/parameter_words.h"
#include "planner/spec/report/report_json.h"
#include "simulator/drawing/timeline_svg.h"
#include "simulator/traces/chakra.h"
#include "simulator/traces/trace.h"

namespace shardwise::cli {
namespace {

void add_chakra(AtomicFileSet& files, const std::string& folder, const Plan& plan,
                const sim::Simulation& made) {
  files.add_folder(folder);
  sim::ChakraTraces traces(plan, made);
  for (std::int64_t rank = 0; rank < plan.layout.world(); ++rank) {
    files.add(fmt::format("{}/step.{}.et", folder, rank), traces.of_rank(rank));
  }
  files.add(folder + "/comm_groups.json", traces.groups());
}

}  // namespace

void write_simulation(const SimulateFlags& flags, const Plan& plan, const sim::Simulation& made) {
  AtomicFileSet files;
  if (!flags.output.empty())
    files.add(flags.output, report_json(made.report, reported_parameters(plan.model)));
  if (!flags.trace.empty()) files.add(flags.trace, sim::trace_text(plan, made));
  if (!flags.svg.empty()) files.add(flags.svg, sim::timeline_svg(plan, made));
  if (!flags.chakra.empty()) add_chakra(files, flags.chakra, plan, made);
  files.keep();
}

}  // namespace shardwise::cli
