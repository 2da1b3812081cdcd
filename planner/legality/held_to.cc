#include "planner/legality/held_to.h"

#include <algorithm>
#include <vector>

#include "planner/cost/software/engine_configs.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

std::vector<HeldTo> read_held_to() {
  constexpr const char* kName = "held_to.json";
  const Result<JsonValue> json = parse_json(held_to_config(), kName);
  SHARDWISE_CHECK(json.ok(), kName);
  Diagnostics problems;
  ObjectReader root(*json, kName, "", problems);
  root.require_schema("shardwise.held_to/1");
  root.string("sources");
  std::vector<HeldTo> all;
  const JsonValue& engines = *root.object("engines");
  ObjectReader by_name = root.nested("engines", engines);
  for (const auto& [name, entry] : engines.members) {
    ObjectReader reader = by_name.nested(name, entry);
    all.push_back({name, reader.string("version"), reader.string("held"),
                   reader.integer("cases", 1, 1 << 20)});
    reader.reject_unknown();
  }
  root.reject_unknown();
  SHARDWISE_CHECK(problems.empty(), to_string(problems));
  return all;
}

}  // namespace

const HeldTo* held_to(const EngineProfile& engine) {
  static const std::vector<HeldTo> kAll = read_held_to();
  const auto found =
      std::ranges::find_if(kAll, [&](const HeldTo& each) { return each.engine == engine.name; });
  return found == kAll.end() ? nullptr : &*found;
}

}  // namespace shardwise
