#include "planner/score/releases.h"

#include "planner/spec/json/reader.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

constexpr std::int64_t kMostCounted = 1'000'000'000;

OverallScore read_overall(ObjectReader reader) {
  OverallScore score;
  score.sources = static_cast<std::size_t>(reader.integer("sources", 1, kMostCounted));
  score.rows = static_cast<std::size_t>(reader.integer("rows", 1, kMostCounted));
  score.median_abs_error = reader.number("median_abs_error", 0, 100);
  score.p90_abs_error = reader.number("p90_abs_error", 0, 100);
  score.bias = reader.number("bias", -100, 100);
  reader.reject_unknown();
  return score;
}

ReleaseScore read_release(ObjectReader reader) {
  ReleaseScore release;
  release.date = reader.string("date");
  release.commit = reader.string("commit");
  for (const auto& [key, score] :
       {std::pair("memory", &release.memory), std::pair("time", &release.time)}) {
    if (const JsonValue* found = reader.object(key)) {
      *score = read_overall(reader.nested(key, *found));
    }
  }
  reader.reject_unknown();
  return release;
}

std::vector<ReleaseScore> read_releases() {
  const char* const kName = "configs/accuracy.json";
  const Result<JsonValue> json = parse_json(accuracy_config(), kName);
  SHARDWISE_CHECK(json.ok(), to_string(json.problems()));
  Diagnostics problems;
  ObjectReader root(*json, kName, "", problems);
  root.require_schema("shardwise.accuracy/1");
  std::vector<ReleaseScore> releases;
  if (const JsonValue* list = root.array("releases")) {
    for (std::size_t i = 0; i < list->elements.size(); ++i) {
      releases.push_back(read_release(root.nested("releases", i, list->elements[i])));
    }
  }
  root.string("source");
  root.reject_unknown();
  SHARDWISE_CHECK(problems.empty(), to_string(problems));
  return releases;
}

}  // namespace

const std::vector<ReleaseScore>& release_scores() {
  static const std::vector<ReleaseScore> kReleases = read_releases();
  return kReleases;
}

}  // namespace shardwise
