// A group whose other ranks send whatever the input says: its texts are refused, or are what came,
// and no more memory is taken than came. The input is what each call of all_gather_bytes()
// receives.

#include <algorithm>
#include <string>
#include <vector>

#include "executor/comm/control_group.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/error.h"

namespace {

using namespace shardwise;
using namespace shardwise::exec;

/// Thrown where the input is over, as a rank that sends no more ends a run.
struct Over {};

/// Rank 1 of three.
class InputGroup : public ControlGroup {
 public:
  explicit InputGroup(std::span<const std::byte> input) : input_(input) {}
  int rank() const override { return 1; }
  int size() const override { return 3; }
  void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override {
    SHARDWISE_CHECK(all.size() == 3 * mine.size(), "places for other sizes than are sent");
    SHARDWISE_CHECK(mine.size() <= std::size_t{1} << 16, "a block is too long");
    for (std::size_t r = 0; r < 3; ++r) {
      const std::span<std::byte> place = all.subspan(r * mine.size(), mine.size());
      if (r == 1) {
        std::ranges::copy(mine, place.begin());
        continue;
      }
      if (input_.empty()) throw Over();
      const std::size_t count = std::min(place.size(), input_.size());
      std::ranges::copy(input_.first(count), place.begin());
      input_ = input_.subspan(count);
    }
  }

  void broadcast(std::span<std::byte>, int) override {}
  void send(std::span<const std::byte>, int) override {}
  void receive(std::span<std::byte>, int) override {}

 private:
  std::span<const std::byte> input_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string own(size % 100, 'o');
  InputGroup group(std::as_bytes(std::span(data, size)));
  try {
    const std::vector<std::string> said = all_gather_texts(group, own);
    SHARDWISE_CHECK(said.size() == 3 && said[1] == own, "this rank's text is another");
    SHARDWISE_CHECK(said[0].size() + said[2].size() <= 2 * (size + (1 << 16)), "more than came");
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): a length that no text has
  } catch (const Over&) {     // NOLINT(bugprone-empty-catch)
  }
  return 0;
}
