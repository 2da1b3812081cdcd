// A GPU file either becomes a GPU with memory and bandwidth or is refused.

#include "planner/spec/machine/gpu_reader.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  const std::optional<JsonValue> value = parse_input(data, size);
  if (!value) return 0;
  const auto gpu =
      read_input(*value, [](const JsonValue& v) { return gpu_from_json(v, "fuzz.json"); });
  if (!gpu) return 0;
  SHARDWISE_CHECK(gpu->hbm_bytes > Bytes(0), std::to_string(gpu->hbm_bytes.value()));
  SHARDWISE_CHECK(gpu->memory_bandwidth.value() > 0, gpu->name);
  return 0;
}
