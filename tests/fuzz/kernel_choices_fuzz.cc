// A file of kernel choices is either ignored with one line, which cannot steer a terminal, or
// written again it says the same.

#include <algorithm>
#include <string_view>

#include "executor/kernels/cuda/kernel_choices.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  using namespace shardwise::exec;
  const KernelMachine machine = {"fake", 13000, 130100, 0};
  const auto read = [&](std::string_view text) {
    return parse_kernel_choices(text, "fuzz.json", machine);
  };
  const ReadKernelChoices choices = read({reinterpret_cast<const char*>(data), size});
  const bool steers = std::ranges::any_of(choices.ignored, [](char each) {
    return static_cast<unsigned char>(each) < ' ' || each == '\x7f';
  });
  SHARDWISE_CHECK(!steers, choices.ignored);
  if (!choices.ignored.empty()) return 0;
  const ReadKernelChoices again = read(to_json(machine, choices.choices));
  SHARDWISE_CHECK(again.ignored.empty() && again.choices == choices.choices, again.ignored);
  return 0;
}
