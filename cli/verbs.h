#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace shardwise::cli {

/// Exit code of the process.
enum class ExitCode : int {
  done = 0,
  nothing_fits = 1,  // or a comparison exceeds its tolerance
  bad_input = 2,     // a file or the command line; everything wrong with it has been printed
  world_broke = 3,   // a full disk, an unreadable file
};

/// The verb that was chosen, ready to run.
using Run = std::function<ExitCode()>;

/// Each function adds one verb to the command, in a file of its own (cli/verbs/estimate.cc): its
/// flags, its help with an example, and a callback that sets `run`. The verb starts after the whole
/// command line has been read. It prints problems itself and returns bad_input; what the world
/// breaks it throws, main catches.
///
///     CLI::App* verb = app.add_subcommand("estimate", "Memory and step time of one layout");
///     auto flags = std::make_shared<EstimateFlags>();
///     verb->add_option("--model", flags->model, "Catalogue name or config.json")->required();
///     verb->footer("Example\n  shardwise estimate --model gpt2 --cluster laptop");
///     verb->callback([&run, flags] { run = [flags] { return estimate(*flags); }; });
///
/// To add a verb: declare it here, call it in add_verbs (command.cc), name its file in
/// CMakeLists.txt.
void add_check(CLI::App& app, Run& run);
void add_compare(CLI::App& app, Run& run);
void add_documents(CLI::App& app, Run& run);  // completion and man
void add_estimate(CLI::App& app, Run& run);
void add_export(CLI::App& app, Run& run);
void add_fit(CLI::App& app, Run& run);
void add_fits(CLI::App& app, Run& run);
void add_import(CLI::App& app, Run& run);
void add_list(CLI::App& app, Run& run);
void add_measure(CLI::App& app, Run& run);
void add_mfu(CLI::App& app, Run& run);
void add_plan(CLI::App& app, Run& run);
void add_report(CLI::App& app, Run& run);
void add_run(CLI::App& app, Run& run);
void add_score(CLI::App& app, Run& run);
void add_simulate(CLI::App& app, Run& run);
void add_size(CLI::App& app, Run& run);
void add_view(CLI::App& app, Run& run);

/// All of them, in the order of the help. The one list of verbs: tests walk it too.
void add_verbs(CLI::App& app, Run& run);

}  // namespace shardwise::cli
