// Files that ask for gigabytes: --memory-limit ends the run before they have them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"
#include "tests/support/sanitized.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Outcome;
using shardwise::test::run_program;
using testing::EndsWith;
using testing::HasSubstr;

class MemoryLimit : public testing::Test {
 protected:
  void SetUp() override {
    if (shardwise::test::kSanitized) GTEST_SKIP() << "under a sanitizer there is no bound";
  }

  /// A run of as many ranks that encodes a text with a tokenizer.
  Outcome run(const std::string& tokenizer, const std::string& text, const std::string& limit,
              Started started = Started::threads) const {
    const auto [program, arguments] =
        command_of(started, 2,
                   {scratch_.write(tiny_plan("shardwise", 0, 2, 1)), "--steps", "1", "--data",
                    scratch_.write_bytes("text", text), "--tokenizer",
                    scratch_.write_bytes("tokenizer.json", tokenizer), "--memory-limit", limit});
    return run_program(program, arguments);
  }

  static std::string tokenizer(const std::string& rest) {
    return R"({"model": {"type": "BPE", "unk_token": "a", "vocab": {"a": 0}, "merges": []})" +
           rest + "}";
  }
  static std::string replacing(const std::string& text, const std::string& content) {
    return fmt::format(R"({{"type": "Replace", "pattern": {{"String": "{}"}}, "content": "{}"}})",
                       text, content);
  }

  Scratch scratch_;
};

// Of each byte of the text the normalizer makes 60, of each of those a token of four.
TEST_F(MemoryLimit, EndsATextThatATokenizerMakesLong) {
  const std::string hostile =
      tokenizer(R"(, "normalizer": )" + replacing("x", std::string(60, 'a')));
  const std::string text(1'000'000, 'x');
  std::vector<Started> ways = ways_of_processes();
  ways.push_back(Started::threads);
  for (const Started started : ways) {
    const Outcome ended = run(hostile, text, "32MiB", started);
    EXPECT_EQ(ended.exit_code, 3) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("reading data and tokenizer: this takes more than the 32.0 "
                                     "MiB of memory that --memory-limit allows\n"));
  }
  const Outcome trained = run(hostile, text.substr(0, 10'000), "2");  // GiB
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
}

// Values of 130 bytes each, in a file that has two for each.
TEST_F(MemoryLimit, EndsATokenizerOfMillionsOfValues) {
  std::string many = "[0";
  for (int i = 0; i < 1'000'000; ++i) many += ",0";
  const Outcome ended = run(tokenizer(R"(, "post_processor": )" + many + "]"), "aaa", "32MiB");
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_THAT(ended.err, EndsWith("that --memory-limit allows\n"));
}

// A megabyte each, of a file of a hundred bytes each.
TEST_F(MemoryLimit, IsNotMetByAddedTokensThatTheNormalizerMakesLong) {
  std::string steps;
  for (int i = 0; i < 19; ++i) steps += (i > 0 ? ", " : "") + replacing("b", "bb");
  std::string tokens;
  for (int i = 0; i < 10'000; ++i) {
    tokens += fmt::format(R"({}{{"id": {}, "content": "b"}})", i > 0 ? ", " : "", i + 1);
  }
  const Outcome ended = run(
      tokenizer(fmt::format(
          R"(, "normalizer": {{"type": "Sequence", "normalizers": [{}]}}, "added_tokens": [{}])",
          steps, tokens)),
      "aaa", "256MiB");
  EXPECT_EQ(ended.exit_code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("/added_tokens/0/content: makes a token of 524288 bytes, of "
                                   "65536 at most\n"));
}

TEST_F(MemoryLimit, IsASize) {
  const Outcome wrong = run(tokenizer(""), "aaa", "12kg");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--memory-limit: 12kg "));
}

}  // namespace
}  // namespace shardwise::exec::test
