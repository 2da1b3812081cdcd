#include "planner/spec/text/memory_unit.h"

#include <gtest/gtest.h>

#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

TEST(MemoryUnit, IsThatInWhichTheLargestAmountIsWritten) {
  EXPECT_EQ(memory_unit(0_B).name, "B");
  EXPECT_EQ(memory_unit(1023_B).name, "B");
  EXPECT_EQ(memory_unit(108_MiB).name, "MiB");
  EXPECT_EQ(memory_unit(Bytes((1_GiB).value() - 1)).name, "GiB");  // 1024 MiB is written 1.00 GiB
  EXPECT_EQ(memory_unit(7_GiB * 1024).name, "TiB");
  EXPECT_EQ(memory_unit(5_GiB * 1024 * 1024).name, "PiB");
  for (Bytes bytes = 1_B; bytes < 1_GiB * 4096; bytes = Bytes(bytes.value() * 3 + 1)) {
    EXPECT_TRUE(format_bytes(bytes).ends_with(memory_unit(bytes).name)) << bytes.value();
  }
}

TEST(MemoryUnit, GivesSmallerAmountsInTheSameUnit) {
  EXPECT_EQ(memory_unit(108_MiB).number(Bytes((1_MiB).value() / 2)), "0.50");
  EXPECT_EQ(memory_unit(7_GiB * 1024).number(512_GiB), "0.50");
  EXPECT_EQ(memory_unit(80_GiB).number(73_GiB), "73.00");
  EXPECT_EQ(memory_unit(80_GiB).number(0_B), "-");
  EXPECT_EQ(memory_unit(900_B).number(37_B), "37");
}

}  // namespace
}  // namespace shardwise
