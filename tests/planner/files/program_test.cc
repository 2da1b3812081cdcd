#include "planner/files/program.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

namespace shardwise {
namespace {

// D2: "std::bad_alloc" is no diagnosis.
TEST(RunProgramDeathTest, SaysThatMemoryIsShort) {
  EXPECT_EXIT(std::exit(run_program("shardwise", []() -> int { throw std::bad_alloc(); })),
              testing::ExitedWithCode(3),
              "shardwise: the system gives this process no more memory");
}

}  // namespace
}  // namespace shardwise
