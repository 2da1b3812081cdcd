// A tokenizer.json is either refused or encodes any text into its own tokens.

#include <fmt/format.h>

#include "executor/tokenizer/tokenizer.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  const auto json = parse_input(data, size);
  if (!json) return 0;
  const auto tokenizer = read_input(
      *json, [](const JsonValue& value) { return exec::Tokenizer::from_json(value, "fuzz.json"); });
  if (!tokenizer) return 0;
  for (const std::string_view text :
       {"", " ", "We the  People,\r\n\n  it's 1787!", "caf\xC3\xA9 \xE6\x97\xA5 \xF0\x9F\x98\x80",
        "<s><|endoftext|> </s>", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "broken \xFF"}) {
    const auto tokens = tokenizer->encode(text);
    if (!tokens) {
      check_messages(tokens.problems());
      continue;
    }
    for (const std::uint32_t token : *tokens) {
      SHARDWISE_CHECK(token < tokenizer->vocab_size(), fmt::format("token {}", token));
    }
  }
  return 0;
}
