// An index of Megatron-LM's is either refused or names no more than it has room for.

#include <fmt/format.h>

#include "executor/data/token_files.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto index = read_input(bytes, [](std::span<const std::byte> input) {
    return exec::read_megatron_index(input, "fuzz.idx");
  });
  if (!index) return 0;
  SHARDWISE_CHECK(index->sequences >= 0 && index->documents >= 0 && index->tokens >= 0,
                  fmt::format("{} sequences", index->sequences));
  SHARDWISE_CHECK(12 * index->sequences + 8 * index->documents < static_cast<std::int64_t>(size),
                  fmt::format("{} sequences", index->sequences));
  return 0;
}
