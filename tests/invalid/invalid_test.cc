// Every file under tests/invalid/<kind>/ must be refused by the reader of that kind, with exactly
// the text of the .txt beside it, once its <lists> are filled in (tests/support/placeholders.h).

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "planner/model/hf_config.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/machine/collective_reader.h"
#include "planner/spec/machine/gpu_reader.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/report/report_json.h"
#include "simulator/traces/traced_run.h"
#include "tests/support/placeholders.h"

namespace shardwise {
namespace {

namespace fs = std::filesystem;

/// What a reader says about a file, "" when it accepts it.
using Refusal = std::string (*)(const fs::path&);

template <class T, Result<T> (*kRead)(const fs::path&)>
std::string refusal(const fs::path& path) {
  const Result<T> result = kRead(path);
  return result.ok() ? "" : to_string(result.problems());
}

Result<sim::TracedRun> read_trace(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const sim::ByteSource source = [&file](char* into, std::size_t room) {
    file.read(into, static_cast<std::streamsize>(room));
    return static_cast<std::size_t>(file.gcount());
  };
  return sim::read_trace(source, path.string());
}

Result<Plan> read_plan_file(const fs::path& path) { return read_plan(path); }

Result<JsonValue> read_any_json(const fs::path& path) { return read_json(path); }

const std::map<std::string, Refusal>& readers() {
  static const std::map<std::string, Refusal> kReaders = {
      {"cluster", refusal<ClusterSpec, read_cluster>},
      {"collectives", refusal<CollectiveCurve, read_collectives>},
      {"gpu", refusal<GpuSpec, read_gpu>},
      {"json", refusal<JsonValue, read_any_json>},
      {"model", refusal<ModelSpec, read_model_file>},
      {"plan", refusal<Plan, read_plan_file>},
      {"report", refusal<StepReport, read_report>},
      {"trace", refusal<sim::TracedRun, read_trace>},
  };
  return kReaders;
}

std::vector<fs::path> files() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator("tests/invalid")) {
    // tests/cli/check_test.cc reads those of frameworks.
    const bool theirs = entry.path().string().find("/framework/") != std::string::npos;
    if (entry.path().extension() == ".json" && !theirs) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

class Invalid : public testing::TestWithParam<fs::path> {};

TEST_P(Invalid, IsRefusedWithTheExactMessage) {
  const std::string kind = GetParam().parent_path().filename().string();
  ASSERT_TRUE(readers().count(kind)) << "no reader for tests/invalid/" << kind;
  fs::path expected = GetParam();
  expected.replace_extension(".txt");
  const Result<std::string> text = read_file(expected);
  ASSERT_TRUE(text.ok()) << expected << " is missing, the reader says:\n"
                         << readers().at(kind)(GetParam());
  EXPECT_EQ(readers().at(kind)(GetParam()), test::filled(*text));
}

INSTANTIATE_TEST_SUITE_P(Files, Invalid, testing::ValuesIn(files()), [](const auto& each) {
  std::string name =
      each.param.parent_path().filename().string() + "_" + each.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

TEST(InvalidFolder, HasFilesForEveryReader) {
  const std::vector<fs::path> all = files();
  for (const auto& reader : readers()) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const fs::path& path) {
      return path.parent_path().filename() == reader.first;
    })) << reader.first;
  }
}

}  // namespace
}  // namespace shardwise
