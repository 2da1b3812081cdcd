#include "planner/spec/text/format.h"

#include <gtest/gtest.h>

namespace shardwise {
namespace {

TEST(FormatBytes, CountsIn1024s) {
  EXPECT_EQ(format_bytes(0_B), "0 B");
  EXPECT_EQ(format_bytes(1023_B), "1023 B");
  EXPECT_EQ(format_bytes(1_KiB), "1.00 KiB");
  EXPECT_EQ(format_bytes(80_GiB), "80.0 GiB");
  EXPECT_EQ(format_bytes(Bytes((80_GiB).value() - 1)), "80.0 GiB");
  EXPECT_EQ(format_bytes(Bytes(-(3_GiB).value())), "-3.00 GiB");
}

TEST(FormatBytes, TakesTheNextUnitWhereItWouldPrint1024) {
  EXPECT_EQ(format_bytes(Bytes((1_GiB).value() - 1)), "1.00 GiB");
  EXPECT_EQ(format_bytes(1023_MiB), "1023 MiB");
}

TEST(FormatGib, LeavesNothingAsADash) {
  EXPECT_EQ(format_gib(0_B), "-");
  EXPECT_EQ(format_gib(1_B), "0.00");
  EXPECT_EQ(format_gib(Bytes((1_GiB).value() * 3 / 2)), "1.50");
}

TEST(FormatSeconds, ChoosesTheUnitPeopleUse) {
  EXPECT_EQ(format_seconds(Seconds(0)), "0 s");
  EXPECT_EQ(format_seconds(Seconds(4e-9)), "0 s");
  EXPECT_EQ(format_seconds(Seconds(6e-9)), "0.01 us");
  EXPECT_EQ(format_seconds(Seconds(4.5e-6)), "4.50 us");
  EXPECT_EQ(format_seconds(Seconds(999.6e-6)), "1.00 ms");
  EXPECT_EQ(format_seconds(Seconds(0.01234)), "12.3 ms");
  EXPECT_EQ(format_seconds(Seconds(0.9996)), "1.00 s");
  EXPECT_EQ(format_seconds(Seconds(3.214)), "3.21 s");
  EXPECT_EQ(format_seconds(Seconds(1500)), "25.0 min");
  EXPECT_EQ(format_seconds(Seconds(36000)), "10.0 h");
  EXPECT_EQ(format_seconds(Seconds(12 * 86400)), "12.0 days");
  EXPECT_EQ(format_seconds(Seconds(-0.0021)), "-2.10 ms");
}

TEST(FormatRates, AreDecimal) {
  EXPECT_EQ(format_bandwidth(450_GBps), "450 GB/s");
  EXPECT_EQ(format_bandwidth(BytesPerSecond(3.35e12)), "3350 GB/s");
  EXPECT_EQ(format_flops_rate(FlopsPerSecond(989.4e12)), "989 TFLOP/s");
  EXPECT_EQ(format_flops_rate(FlopsPerSecond(2.25e15)), "2250 TFLOP/s");
  EXPECT_EQ(format_flops_rate(FlopsPerSecond(5e10)), "50.0 GFLOP/s");
  EXPECT_EQ(format_flops(Flops(51.47e9)), "51.5 GFLOP");
}

TEST(FormatCount, GroupsDigits) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(8'030'261'248), "8,030,261,248");
  EXPECT_EQ(format_count(-16384), "-16,384");
}

TEST(FormatScaled, RoundsToThreeDigits) {
  EXPECT_EQ(format_scaled(8.03e9), "8.03 B");
  EXPECT_EQ(format_scaled(1e12), "1.00 T");
  EXPECT_EQ(format_scaled(124'439'808), "124 M");
  EXPECT_EQ(format_scaled(5000), "5,000");
}

TEST(FormatMoneyAndShares, SayTheirUnit) {
  EXPECT_EQ(format_percent(0.3841), "38.4 %");
  EXPECT_EQ(format_dollars(0.874), "$0.87");
  EXPECT_EQ(format_dollars(4210.4), "$4,210");
}

}  // namespace
}  // namespace shardwise
