#include "planner/spec/text/utf8.h"

#include <gtest/gtest.h>

namespace shardwise {
namespace {

TEST(FirstNotUtf8, AcceptsEveryLengthOfSequence) {
  EXPECT_EQ(first_not_utf8("a\xC2\x80\xE0\xA0\x80\xED\x9F\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"),
            17U);
}

TEST(FirstNotUtf8, FindsOverlongSurrogateTruncatedAndStrayBytes) {
  EXPECT_EQ(first_not_utf8("a\xC0\xAF"), 1U);         // overlong '/'
  EXPECT_EQ(first_not_utf8("ab\xE0\x9F\xBF"), 2U);    // overlong
  EXPECT_EQ(first_not_utf8("\xED\xA0\x80"), 0U);      // surrogate
  EXPECT_EQ(first_not_utf8("\xF4\x90\x80\x80"), 0U);  // above U+10FFFF
  EXPECT_EQ(first_not_utf8("abc\xE2\x82"), 3U);       // truncated
  EXPECT_EQ(first_not_utf8("\x80"), 0U);              // continuation alone
  EXPECT_EQ(first_not_utf8("\xF0\x80\x80\x80"), 0U);  // overlong
  EXPECT_EQ(first_not_utf8("\xFF"), 0U);
}

TEST(Shown, EscapesWhatWouldSteerATerminal) {
  EXPECT_EQ(shown("a\nb\x1b[31m\x7f\xC2\x9B"), "a\\nb\\u001b[31m\\u007f\\u009b");
  EXPECT_EQ(shown("é\xFF"), "é\\xff");
}

// A text of many lines, or one that is read from right to left, would pass for what we print.
TEST(Shown, EscapesLineEndsOfUnicodeAndWhatTurnsTheDirectionOfReading) {
  EXPECT_EQ(shown("a\u0085b\u2028c\u2029d"), "a\\u0085b\\u2028c\\u2029d");
  for (const char* turning : {"\u061C", "\u200E", "\u200F", "\u202A", "\u202B", "\u202C", "\u202D",
                              "\u202E", "\u2066", "\u2067", "\u2068", "\u2069"}) {
    const std::string text = std::string("a") + turning + "b";
    EXPECT_EQ(shown(text).size(), 8U) << text;
    EXPECT_TRUE(has_control_character(text)) << text;
  }
  // Their neighbours, letters of scripts read from right to left, and joiners stay.
  for (const char* plain : {"\u061B", "\u061D", "\u200D", "\u2010", "\u2027", "\u202F", "\u2065",
                            "\u206A", "שלום", "é😀"}) {
    EXPECT_EQ(shown(plain), plain);
    EXPECT_FALSE(has_control_character(plain)) << plain;
  }
  EXPECT_FALSE(has_control_character("\xE2\x80"));
}

TEST(Shown, CutsBetweenCharacters) {
  EXPECT_EQ(shown("abcdef", 6), "abcdef");
  EXPECT_EQ(shown("abcdefg", 6), "abcdef…");
  EXPECT_EQ(shown("abcdeé", 6), "abcde…");
}

}  // namespace
}  // namespace shardwise
