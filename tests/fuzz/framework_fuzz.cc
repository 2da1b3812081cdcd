// A configuration of a framework is either refused or becomes settings, findings and, where it says
// enough, a plan that keeps the rules. The first byte says as which kind of file it is read.

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "planner/export/check_configuration.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"
#include "planner/legality/legality.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  if (size == 0) return 0;
  constexpr std::array<const char*, 3> kNames = {"fuzz.json", "fuzz.yaml", "fuzz.sh"};
  const std::string name = kNames[data[0] % kNames.size()];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto read =
      read_input(text, [&](std::string_view t) { return read_configuration(t, name); });
  if (!read) return 0;
  static const std::vector<Framework> kFrameworks = [] {
    std::vector<Framework> all;
    for (const std::string& each : framework_names()) all.push_back(*load_framework(each, "--to"));
    return all;
  }();
  static const std::optional<ClusterSpec> kCluster = *find_cluster("dgx-h100");
  const Framework& framework = kFrameworks[data[0] / kNames.size() % kFrameworks.size()];
  read_input(*read, [&](const Configuration& c) {
    return check_configuration(framework, c, 16, kCluster);
  });
  AskedImport asked;
  asked.job = {"llama-tiny", "dgx-h100", "16", "", {}};
  const auto plan =
      read_input(*read, [&](const Configuration& c) { return import_plan(framework, c, asked); });
  if (plan) SHARDWISE_CHECK(check_plan(plan->plan).empty(), framework.name);
  return 0;
}
