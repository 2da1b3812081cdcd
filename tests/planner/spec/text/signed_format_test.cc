#include "planner/spec/text/signed_format.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace shardwise {
namespace {

TEST(SignedFormat, HasASignAlways) {
  EXPECT_EQ(signed_seconds(Seconds(0.0123)), "+12.3 ms");
  EXPECT_EQ(signed_seconds(Seconds(-1.2)), "-1.20 s");
  EXPECT_EQ(signed_percent(0.0312), "+3.1 %");
  EXPECT_EQ(signed_percent(-0.2), "-20.0 %");
  EXPECT_EQ(signed_bytes(Bytes(std::int64_t{-3} * 1024)), "-3.00 KiB");
  EXPECT_EQ(signed_dollars(-16.1), "-$16.10");
}

TEST(SignedFormat, CallsNothingPositive) {
  EXPECT_EQ(signed_seconds(Seconds(0)), "+0 s");
  EXPECT_EQ(signed_seconds(Seconds(-1e-12)), "+0 s");
  EXPECT_EQ(signed_percent(-0.0002), "+0.0 %");
  EXPECT_EQ(signed_bytes(Bytes(0)), "+0 B");
  EXPECT_EQ(signed_dollars(-0.001), "+$0.00");
}

}  // namespace
}  // namespace shardwise
