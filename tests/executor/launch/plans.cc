#include "tests/executor/launch/plans.h"

#include <cstdlib>
#include <fstream>

#include "planner/engines/engines.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/support/command.h"
#include "tests/support/models.h"

namespace shardwise::exec::test {

Plan tiny_plan(const std::string& engine, int zero_stage, int dp_shard,
               std::int64_t num_microbatches) {
  Plan plan;
  plan.model = shardwise::test::llama(2, 32, 88, 4, 2, 256);
  plan.model.model_type = "llama";
  plan.engine = *find_engine(engine);
  plan.layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  plan.layout.dp_shard = dp_shard;
  plan.cluster = *with_gpus(*find_cluster("laptop"), dp_shard);
  plan.job.precision = DType::fp32;
  plan.job.loss = LossKernel::chunked;
  plan.job.sequence_length = 32;
  plan.job.global_batch_size = dp_shard * num_microbatches;
  return plan;
}

std::string Scratch::write(const Plan& plan, const std::string& name) const {
  return write_bytes(name, to_json(plan));
}

std::string name_of(Started started) {
  switch (started) {
    case Started::threads:
      return "Threads";
    case Started::mpi:
      return "Mpi";
    case Started::sockets:
      return "Sockets";
    case Started::local:
      break;
  }
  return "Local";
}

std::vector<Started> ways_of_processes() {
#ifdef SHARDWISE_WITH_MPI
  return {Started::mpi, Started::sockets, Started::local};
#else
  return {Started::sockets, Started::local};
#endif
}

std::pair<std::string, std::vector<std::string>> command_of(
    Started started, int ranks, const std::vector<std::string>& arguments) {
  const std::string program = shardwise::test::built("shardwise-run");
  std::vector<std::string> all;
  if (started == Started::threads || started == Started::local) {
    all = arguments;
    all.insert(all.begin(), "train");
    if (started == Started::local) all.insert(all.end(), {"--ranks-as", "processes"});
    return {program, all};
  }
  if (started == Started::mpi) {
    // Containers run as root, and have fewer cores than ranks.
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // Open MPI keeps memory until the process ends
    all = {"-np", std::to_string(ranks), "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"};
  } else {
    all = {std::to_string(ranks)};
  }
  all.insert(all.end(), {program, "train"});
  all.insert(all.end(), arguments.begin(), arguments.end());
  return {started == Started::mpi ? "mpirun" : "tests/executor/support/start_ranks.sh", all};
}

namespace {

/// What stands behind "key": in each line that has it.
std::vector<std::string> values_of(const std::string& metrics, const std::string& key, bool keyed) {
  const std::string begin = "\"" + key + "\":";
  std::vector<std::string> values;
  std::ifstream in(metrics);
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find(begin);
    if (at == std::string::npos) continue;
    const std::size_t from = keyed ? at : at + begin.size();
    values.push_back(line.substr(from, line.find(',', at) - from));
  }
  return values;
}

}  // namespace

std::vector<std::string> losses_of(const std::string& metrics) {
  return values_of(metrics, "loss", true);
}

std::vector<double> numbers_of(const std::string& metrics, const std::string& key) {
  std::vector<double> numbers;
  for (const std::string& each : values_of(metrics, key, false)) numbers.push_back(std::stod(each));
  return numbers;
}

}  // namespace shardwise::exec::test
