#include "simulator/drawing/markup.h"

#include <gtest/gtest.h>

#include <string>

#include "planner/spec/text/utf8.h"

namespace shardwise::sim {
namespace {

const std::string kReplaced = "\xEF\xBF\xBD";

TEST(Escaped, KeepsText) {
  for (const char* text :
       {"", "llama-3.1-70b", "2 x 4, ZeRO-3", "größer 日本語 🙂", "a\xC2\xA0z"}) {
    EXPECT_EQ(escaped(text), text);
  }
}

TEST(Escaped, LeavesNoCharacterThatHasAMeaning) {
  EXPECT_EQ(escaped("<svg onload=\"x\">&'"), "&lt;svg onload=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(escaped("&lt;"), "&amp;lt;");
}

TEST(Escaped, ReplacesWhatSteersTheReader) {
  for (const char* text : {"\x1b", "\x7f", "\n", "\t", "\xC2\x85", "\xE2\x80\xAE", "\xE2\x80\x8F",
                           "\xE2\x81\xA7", "\xE2\x80\xA8", "\xEF\xBF\xBF"}) {
    EXPECT_EQ(escaped(std::string("a") + text + "b"), "a" + kReplaced + "b");
  }
  EXPECT_EQ(escaped(std::string("a\0b", 3)), "a" + kReplaced + "b");
}

// Of every code point up to the end of the first plane: UTF-8 stays UTF-8.
TEST(Escaped, GivesUtf8ForEveryCharacter) {
  for (int code = 0; code < 0x10000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;  // surrogates
    std::string text;
    const auto add = [&text](int byte) { text += static_cast<char>(byte); };
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xC0 | (code >> 6));
      add(0x80 | (code & 0x3F));
    } else {
      add(0xE0 | (code >> 12));
      add(0x80 | ((code >> 6) & 0x3F));
      add(0x80 | (code & 0x3F));
    }
    const std::string made = escaped(text);
    ASSERT_EQ(first_not_utf8(made), made.size()) << code;
    ASSERT_EQ(made.find_first_of("<>\"'\n\x1b"), std::string::npos) << code;
  }
}

}  // namespace
}  // namespace shardwise::sim
