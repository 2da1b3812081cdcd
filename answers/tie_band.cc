#include "answers/tie_band.h"

#include <vector>

#include "answers/ranking_config.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/check.h"

namespace shardwise::sim {
namespace {

constexpr std::int64_t kMostPairs = 1'000'000'000;

TieBand read_band(ObjectReader reader) {
  TieBand band;
  band.share = reader.number("share", 0, 1);
  band.pairs = reader.integer("pairs", 1, kMostPairs);
  band.sources = reader.integer("sources", 1, kMostPairs);
  band.engine = reader.string_or("engine", "");
  reader.reject_unknown();
  return band;
}

/// Those of engines, and last that of all.
std::vector<TieBand> read_bands() {
  const char* const kName = "configs/ranking.json";
  const Result<JsonValue> json = parse_json(ranking_config(), kName);
  SHARDWISE_CHECK(json.ok(), to_string(json.problems()));
  Diagnostics problems;
  ObjectReader root(*json, kName, "", problems);
  root.require_schema("shardwise.ranking/1");
  std::vector<TieBand> bands;
  if (const JsonValue* engines = root.array("engines"); engines != nullptr) {
    for (std::size_t i = 0; i < engines->elements.size(); ++i) {
      bands.push_back(read_band(root.nested("engines", i, engines->elements[i])));
    }
  }
  if (const JsonValue* all = root.object("all"); all != nullptr) {
    bands.push_back(read_band(root.nested("all", *all)));
  }
  const std::string method = root.string("method");
  const std::string source = root.string("source");
  root.reject_unknown();
  SHARDWISE_CHECK(problems.empty(), to_string(problems));
  for (TieBand& band : bands) {
    band.method = method;
    band.source = source;
  }
  return bands;
}

}  // namespace

TieBand tie_band(std::string_view engine) {
  static const std::vector<TieBand> kBands = read_bands();
  for (const TieBand& band : kBands) {
    if (band.engine == engine) return band;
  }
  return kBands.back();
}

}  // namespace shardwise::sim
