// The manifest of a checkpoint is either refused or has every tensor whole in its files, and
// written again it says the same. Its checksum is made right first, else nothing would get past it.

#include "executor/checkpoint/manifest.h"

#include <fmt/format.h>

#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

/// Every element of a tensor that is cut is one of a part's own.
void visit_parts(const shardwise::exec::SavedTensor& tensor) {
  constexpr std::int64_t kMostVisited = 4096;
  const shardwise::TensorCut& cut = tensor.cut;
  if (!cut.cut() || cut.outer > kMostVisited || cut.extent > kMostVisited) return;
  const std::int64_t rows = cut.outer * cut.extent;
  if (rows > kMostVisited || cut.inner > kMostVisited) return;
  std::int64_t next = 0;
  shardwise::for_part_runs(cut, 0, rows * cut.inner, [&](const shardwise::PartRun& run) {
    SHARDWISE_CHECK(run.whole == next && run.count > 0, tensor.name);
    SHARDWISE_CHECK(run.rank >= 0 && run.rank < cut.ways, tensor.name);
    SHARDWISE_CHECK(run.part >= 0 && run.part + run.count <= filled_part(cut, run.rank),
                    tensor.name);
    next += run.count;
  });
  SHARDWISE_CHECK(next == rows * cut.inner, tensor.name);
}

}  // namespace

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
  for (const SavedTensor& tensor : manifest->tensors) visit_parts(tensor);
  const std::string written = to_json(*manifest);
  const std::optional<Manifest> again = read_input(written, read);
  SHARDWISE_CHECK(again && to_json(*again) == written, written);
  return 0;
}
