// The header of a safetensors file is either refused or covers its data without gap or overlap, and
// written again it says the same.

#include <fmt/format.h>

#include "executor/storage/safetensors_header.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  using namespace shardwise::exec;
  // The JSON text of a header, of a file with so many bytes of data.
  constexpr std::int64_t kBytes = 24;
  const auto read = [&](std::string_view json) {
    return read_input(json, [&](std::string_view text) {
      return parse_safetensors_header(text, kBytes, "fuzz");
    });
  };
  const std::optional<SafetensorsHeader> header = read({reinterpret_cast<const char*>(data), size});
  if (!header) return 0;
  std::int64_t at = 0;
  std::vector<TensorSpec> specs;
  for (const StoredTensor& tensor : header->tensors) {
    SHARDWISE_CHECK(tensor.begin == at, fmt::format("{} at {}", tensor.spec.name, at));
    at = tensor.end();
    specs.push_back(tensor.spec);
  }
  SHARDWISE_CHECK(at == kBytes, fmt::format("{} of {}", at, kBytes));

  const std::string written = safetensors_header(specs, header->metadata);
  SHARDWISE_CHECK(written.size() % 8 == 0, written);
  const auto again = read(std::string_view(written).substr(kSafetensorsLengthBytes));
  SHARDWISE_CHECK(again && again->metadata == header->metadata, written);
  SHARDWISE_CHECK(again->tensors.size() == specs.size(), written);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    SHARDWISE_CHECK(again->tensors[i].spec == specs[i], specs[i].name);
  }
  return 0;
}
