// The raw reader agrees with nlohmann on what is JSON and on every value, and the place it gives
// for a value is where that value's first character stands.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

namespace shardwise {
namespace {

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  while (true) {
    const std::size_t end = text.find('\n', start);
    lines.push_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return lines;
    start = end + 1;
  }
}

/// Character `column` (1-based) of `line` is one that a value of this kind can begin with.
bool starts_here(const JsonValue& value, const std::vector<std::string_view>& lines) {
  if (value.line < 1 || static_cast<std::size_t>(value.line) > lines.size()) return false;
  std::string_view line = lines[static_cast<std::size_t>(value.line - 1)];
  if (value.line == 1 && line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
  int column = 0;
  for (const char c : line) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++column;
    if (column < value.column) continue;
    static constexpr const char* kFirst[] = {"n", "tf", "-0123456789", "-0123456789", "\"",
                                             "[", "{"};
    return std::string_view(kFirst[static_cast<std::size_t>(value.kind)]).find(c) !=
           std::string_view::npos;
  }
  return false;
}

void compare(const JsonValue& ours, const nlohmann::json& theirs,
             const std::vector<std::string_view>& lines) {
  SHARDWISE_CHECK(starts_here(ours, lines), fmt::format("{}:{}", ours.line, ours.column));
  switch (ours.kind) {
    case JsonValue::Kind::null:
      SHARDWISE_CHECK(theirs.is_null(), theirs.dump());
      break;
    case JsonValue::Kind::boolean:
      SHARDWISE_CHECK(theirs.get<bool>() == ours.boolean, theirs.dump());
      break;
    case JsonValue::Kind::integer:
      SHARDWISE_CHECK(theirs.get<std::int64_t>() == ours.integer, theirs.dump());
      break;
    case JsonValue::Kind::number:
      SHARDWISE_CHECK(theirs.get<double>() == ours.number, theirs.dump());
      break;
    case JsonValue::Kind::string:
      SHARDWISE_CHECK(theirs.get<std::string>() == ours.string, theirs.dump());
      break;
    case JsonValue::Kind::array:
      SHARDWISE_CHECK(theirs.size() == ours.elements.size(), theirs.dump());
      for (std::size_t i = 0; i < theirs.size(); ++i) compare(ours.elements[i], theirs[i], lines);
      break;
    case JsonValue::Kind::object:
      SHARDWISE_CHECK(theirs.size() == ours.members.size(), theirs.dump());
      for (const auto& [key, value] : ours.members) compare(value, theirs.at(key), lines);
      break;
  }
}

}  // namespace
}  // namespace shardwise

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<JsonValue> ours = parse_input(data, size);
  if (!ours) return 0;
  const nlohmann::json theirs = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  SHARDWISE_CHECK(!theirs.is_discarded(), "accepted what is not JSON");
  compare(*ours, theirs, split_lines(text));

  Diagnostics problems;
  ObjectReader reader(*ours, "fuzz.json", "", problems);
  reader.require_schema("shardwise.plan/1");
  reader.integer("a", 1, 8);
  reader.number("b", 0, 1);
  reader.boolean_or("c", false);
  reader.choice("d", {"bf16", "fp32"});
  if (const JsonValue* list = reader.array("e", false)) {
    for (std::size_t i = 0; i < list->elements.size(); ++i) {
      reader.nested("e", i, list->elements[i]).reject_unknown();
    }
  }
  reader.reject_unknown();
  if (!problems.empty()) check_messages(problems);
  return 0;
}
