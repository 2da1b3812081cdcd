#include "planner/spec/text/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shardwise {
namespace {

using literals::operator""_GiB;

TEST(ParseNumber, TakesDecimalNotation) {
  EXPECT_EQ(parse_number("3"), 3);
  EXPECT_EQ(parse_number("-0.5"), -0.5);
  EXPECT_EQ(parse_number("15e12"), 15e12);
  EXPECT_EQ(parse_number("1.5E-3"), 1.5e-3);
  EXPECT_EQ(parse_number(".5"), 0.5);
}

// (D10, D18) Each of these passed somewhere.
TEST(ParseNumber, RefusesWhatIsNoNumber) {
  for (const char* text :
       {"nan",    "NAN",   "-nan",  "nan(1)", "inf", "-inf", "INF", "infinity", "1e400",
        "-1e400", "0x10",  "0x1p3", "",       " ",   " 1",   "1 ",  "+1",       "1x",
        "1,5",    "1'000", "1_000", "--1",    "e5",  ".",    "-"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
    EXPECT_EQ(parse_unsigned(text), std::nullopt) << text;
  }
}

TEST(ParseNumber, HasNoNegativeZero) {
  ASSERT_TRUE(parse_number("-0").has_value());
  EXPECT_FALSE(std::signbit(*parse_number("-0")));
}

TEST(ParseInteger, IsExactToTheEndsOfItsType) {
  EXPECT_EQ(parse_integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_integer("-9223372036854775809"), std::nullopt);
  EXPECT_EQ(parse_unsigned("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_unsigned("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_unsigned("-1"), std::nullopt);
  EXPECT_EQ(parse_unsigned("-0.0"), 0U);
}

TEST(ParseInteger, TakesNumbersWithoutAFractionThatAreExact) {
  EXPECT_EQ(parse_integer("1e9"), 1'000'000'000);
  EXPECT_EQ(parse_integer("8.0"), 8);
  EXPECT_EQ(parse_integer("1.5"), std::nullopt);
  EXPECT_EQ(parse_integer("9007199254740992.0"), std::int64_t{1} << 53);
  EXPECT_EQ(parse_integer("9007199254740993.0"), std::int64_t{1} << 53);  // the double nearest
  EXPECT_EQ(parse_integer("1e17"), std::nullopt);
}

TEST(ReadNumber, SaysValueAndRangeAndLeavesTheValue) {
  double value = 7;
  EXPECT_EQ(read_number("nan", 0, 1, value), "nan is not a number from 0 to 1");
  EXPECT_EQ(read_number("1.5", 0, 1, value), "1.5 is not a number from 0 to 1");
  EXPECT_EQ(read_number("", 0, 1, value), "\"\" is not a number from 0 to 1");
  EXPECT_EQ(read_number(" ", 0.5, 1e6, value), "\" \" is not a number from 0.5 to 1000000");
  EXPECT_EQ(read_number("\x1b[31m", 0, 1, value), "\\u001b[31m is not a number from 0 to 1");
  EXPECT_EQ(value, 7);
  EXPECT_EQ(read_number("1", 0, 1, value), "");
  EXPECT_EQ(value, 1);
}

TEST(ReadNumber, LetsNoNaNPassTheWidestRange) {
  double value = 7;
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_NE(read_number("nan", -infinite, infinite, value), "");
  EXPECT_NE(read_number("inf", -infinite, infinite, value), "");
  EXPECT_EQ(value, 7);
}

TEST(ReadInteger, IncludesBothEnds) {
  std::int64_t value = 0;
  EXPECT_EQ(read_integer("1", 1, 3, value), "");
  EXPECT_EQ(read_integer("3", 1, 3, value), "");
  EXPECT_EQ(read_integer("0", 1, 3, value), "0 is not an integer from 1 to 3");
  EXPECT_EQ(read_integer("4", 1, 3, value), "4 is not an integer from 1 to 3");
  EXPECT_EQ(read_integer("2.5", 1, 3, value), "2.5 is not an integer from 1 to 3");
  std::uint64_t seed = 0;
  EXPECT_EQ(read_unsigned("18446744073709551616", 0, ~std::uint64_t{0}, seed),
            "18446744073709551616 is not an integer from 0 to 18446744073709551615");
}

std::int64_t size_of(const char* text) {
  Bytes value(-1);
  const std::string problem =
      read_size(text, Bytes(1), Bytes(0), Bytes(std::numeric_limits<std::int64_t>::max()), value);
  return problem.empty() ? value.value() : -1;
}

TEST(ReadSize, KnowsUnits) {
  EXPECT_EQ(size_of("17"), 17);
  EXPECT_EQ(size_of("17B"), 17);
  EXPECT_EQ(size_of("200MB"), 200'000'000);
  EXPECT_EQ(size_of("2 GiB"), std::int64_t{2} << 30);
  EXPECT_EQ(size_of("2gib"), std::int64_t{2} << 30);
  EXPECT_EQ(size_of("1.5KiB"), 1536);
  EXPECT_EQ(size_of("3TB"), 3'000'000'000'000);
  EXPECT_EQ(size_of("1e3kb"), 1'000'000);
  Bytes memory;
  EXPECT_EQ(read_size("70", 1_GiB, 1_GiB, 80_GiB, memory), "");
  EXPECT_EQ(memory, 70_GiB);
}

// (D18) "18446744073709551611 multiplied by gb".
TEST(ReadSize, NeitherOverflowsNorGoesBelowNothing) {
  EXPECT_EQ(size_of("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"-5GB", "9e30", "9223372036854775808", "8589934592GiB",
                           "18446744073709551611GB", "1e300TB", "nanGB", "infGB", "GB", "", " ",
                           "5 parsecs", "5GBs", "5  GB", "0x10GB", "9223372036.9GB"}) {
    EXPECT_EQ(size_of(text), -1) << text;
  }
  Bytes size;
  EXPECT_EQ(read_size("-5GB", Bytes(1), Bytes(1), 1024_GiB, size),
            "-5GB is not a size from 1 B to 1.00 TiB, such as 500MB or 70GiB");
}

}  // namespace
}  // namespace shardwise
