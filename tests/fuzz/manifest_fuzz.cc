// The manifest of a checkpoint is either refused or has every tensor whole in its files, and
// written again it says the same. Its checksum is made right first, else nothing would get past it.

#include "executor/checkpoint/manifest.h"

#include <fmt/format.h>

#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  using namespace shardwise::exec;
  const std::string text = with_checksum(std::string(reinterpret_cast<const char*>(data), size));
  const auto read = [](const std::string& input) { return parse_manifest(input, "fuzz.json"); };
  const std::optional<Manifest> manifest = read_input(text, read);
  if (!manifest) return 0;
  // Sums of numbers near 2^60 go round, both alike.
  std::uint64_t held = 0;
  for (const SavedFile& file : manifest->files) {
    for (const SavedSlice& slice : file.slices) held += static_cast<std::uint64_t>(slice.count);
  }
  std::uint64_t elements = 0;
  for (const SavedTensor& tensor : manifest->tensors) {
    std::uint64_t product = 1;
    for (const std::int64_t length : tensor.shape) product *= static_cast<std::uint64_t>(length);
    elements += product;
  }
  SHARDWISE_CHECK(held == elements, fmt::format("{} of {}", held, elements));
  const std::string written = to_json(*manifest);
  const std::optional<Manifest> again = read_input(written, read);
  SHARDWISE_CHECK(again && to_json(*again) == written, written);
  return 0;
}
