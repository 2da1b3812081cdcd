#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {

/// A Llama of two small blocks on the laptop's cluster.
Plan tiny_plan(const std::string& engine, int zero_stage, int dp_shard,
               std::int64_t num_microbatches);

/// A text of the repository to train on.
inline constexpr const char* kTrainingText = "docs/memory.md";

/// Folder of one test, removed with it.
class Scratch : public shardwise::test::Scratch {
 public:
  /// Writes a plan.json. \returns its path
  std::string write(const Plan& plan, const std::string& name = "plan.json") const;
};

/// How ranks of a run are started: in one process, by mpirun, by a script with the variables that
/// torchrun sets, or as processes by shardwise-run itself.
enum class Started { threads, mpi, sockets, local };
/// For names of tests: "Mpi".
std::string name_of(Started started);
/// Those that this build has of processes.
std::vector<Started> ways_of_processes();
/// Program and arguments that start shardwise-run with these arguments as so many ranks.
std::pair<std::string, std::vector<std::string>> command_of(
    Started started, int ranks, const std::vector<std::string>& arguments);

/// The losses of a metrics file, as it spells them.
std::vector<std::string> losses_of(const std::string& metrics);
/// The numbers of a key of it, by step.
std::vector<double> numbers_of(const std::string& metrics, const std::string& key);

}  // namespace shardwise::exec::test
