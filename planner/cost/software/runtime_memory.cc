#include "planner/cost/software/runtime_memory.h"

#include <string_view>
#include <vector>

#include "planner/cost/software/engine_configs.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;

struct Architecture {
  std::string name;
  RuntimeMemory memory;
};

struct Allocator {
  std::string engine;
  std::string data;  // of the fit, of all ranks and of those that share no states
  RuntimeMemory memory;
};

template <class Entry>
using ReadEntry = Entry (*)(ObjectReader);

Architecture read_architecture(ObjectReader entry) {
  Architecture result;
  result.name = entry.string("architecture");
  result.memory.context = entry.integer("context_bytes", 0, kMostBytes);
  result.memory.framework_workspace = entry.integer("framework_workspace_bytes", 0, kMostBytes);
  result.memory.engine_workspace = entry.integer("engine_workspace_bytes", 0, kMostBytes);
  result.memory.communicator = entry.integer("communicator_bytes", 0, kMostBytes);
  result.memory.fp8_needs_transposes = entry.boolean_or("fp8_needs_transposes", false);
  return result;
}

Allocator read_allocator(ObjectReader entry) {
  Allocator result;
  result.engine = entry.string("engine");
  RuntimeMemory& m = result.memory;
  m.slack_bytes = entry.integer("slack_bytes", -kMostBytes, kMostBytes);
  m.slack_share = entry.number("slack_share", 0, 1);
  m.slack_states_share = entry.number("states_share", 0, 10);
  m.slack_least_share = entry.number("least_share", 0, 1);
  m.slack_most_share = entry.number("most_share", 0, 10);
  m.slack_whole_share = entry.number_or("whole_share", 0, 0, 1);
  m.slack_most_bytes = entry.integer_or("most_bytes", 0, 0, kMostBytes);
  m.doubt_share = entry.number("doubt_share", 0, 1);
  if (const JsonValue* found = entry.object("fit")) {
    ObjectReader fit = entry.nested("fit", *found);
    result.data = fit.string("data");
    if (const JsonValue* whole = fit.object("whole", false)) {
      result.data += "; " + fit.nested("whole", *whole).string("data");
    }
  }
  return result;
}

/// All entries of the array `key` of a file that was built in.
template <class Entry>
std::vector<Entry> read_entries(std::string_view text, const char* name, const char* key,
                                ReadEntry<Entry> read) {
  const Result<JsonValue> json = parse_json(text, name);
  SHARDWISE_CHECK(json.ok(), name);
  Diagnostics problems;
  ObjectReader root(*json, name, "", problems);
  std::vector<Entry> entries;
  const JsonValue* list = root.array(key);
  SHARDWISE_CHECK(list != nullptr, name);
  for (std::size_t i = 0; i < list->elements.size(); ++i) {
    entries.push_back(read(root.nested(key, i, list->elements[i])));
  }
  SHARDWISE_CHECK(problems.empty(), to_string(problems));
  return entries;
}

const RuntimeMemory& machine_part(std::string_view architecture) {
  static const std::vector<Architecture> kAll = read_entries<Architecture>(
      runtime_config(), "runtime.json", "architectures", read_architecture);
  for (const Architecture& each : kAll) {
    if (architecture.starts_with(each.name)) return each.memory;
  }
  // An architecture after those listed is most like the newest NVIDIA one.
  for (const Architecture& each : kAll) {
    if (each.name == "blackwell") return each.memory;
  }
  return kAll.front().memory;
}

const Allocator* allocator_of(std::string_view engine) {
  static const std::vector<Allocator> kAll =
      read_entries<Allocator>(allocator_config(), "allocator.json", "engines", read_allocator);
  for (const Allocator& each : kAll) {
    if (each.engine == engine) return &each;
  }
  return nullptr;
}

}  // namespace

RuntimeMemory runtime_memory(const EngineProfile& engine, const GpuSpec& gpu) {
  if (engine.runtime != RuntimeMemory{}) return engine.runtime;
  RuntimeMemory result;
  if (const Allocator* allocator = allocator_of(engine.known_as())) result = allocator->memory;
  const RuntimeMemory& machine = machine_part(gpu.architecture);
  result.context = machine.context;
  result.framework_workspace = machine.framework_workspace;
  result.engine_workspace = machine.engine_workspace;
  result.communicator = machine.communicator;
  result.fp8_needs_transposes = machine.fp8_needs_transposes;
  return result;
}

const std::string& allocator_data(const EngineProfile& engine) {
  static const std::string kNone;
  const Allocator* allocator = allocator_of(engine.known_as());
  return allocator == nullptr ? kNone : allocator->data;
}

}  // namespace shardwise
