// Prints the logits that the weights of a folder give, a number a line, for
// tests/golden/load_saved_model.py.

#include <fmt/format.h>

#include "tests/executor/support/tiny_model.h"
#include "tests/executor/weights/stored_model.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (const float each :
       shardwise::exec::test::stored_logits(argv[1], shardwise::exec::golden_shape())) {
    fmt::print("{}\n", each);
  }
  return 0;
}
