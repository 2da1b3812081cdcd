// same_picture A.png B.png: exit code 0 where both show the same, 1 where not.

#include <fmt/format.h>

#include <exception>

#include "tests/gui/picture_difference.h"
#include "tests/gui/png_reader.h"
#include "tests/support/scratch.h"

int main(int argc, char** argv) {
  using namespace shardwise;
  if (argc != 3) return 2;
  try {
    const view::Image a = test::from_png(test::bytes_of_file(argv[1]));
    const view::Image b = test::from_png(test::bytes_of_file(argv[2]));
    if (a.width != b.width || a.height != b.height) {
      fmt::print("{} x {} and {} x {} pixels\n", a.width, a.height, b.width, b.height);
      return 1;
    }
    const std::size_t different = test::differing_channels(a, b);
    if (different > 0) fmt::print("{} channels of pixels differ\n", different);
    return different > 0 ? 1 : 0;
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    return 1;
  }
}
