#include "tests/fuzz/fuzz_input.h"

#include <algorithm>

#include "planner/spec/text/check.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {

void check_messages(const Diagnostics& problems) {
  SHARDWISE_CHECK(!problems.empty(), "refused without a reason");
  for (const Diagnostic& problem : problems) {
    SHARDWISE_CHECK(!problem.message.empty(), problem.path);
    const std::string text = to_string(problem);
    SHARDWISE_CHECK(text.size() < 12'000, shown(text));
    const bool clean = std::none_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 && c != '\n';
    });
    SHARDWISE_CHECK(clean && first_not_utf8(text) == text.size(), shown(text));
  }
}

std::optional<JsonValue> parse_input(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  return read_input(text, [](std::string_view json) { return parse_json(json, "fuzz.json"); });
}

}  // namespace shardwise
