#include "executor/tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/scratch.h"

namespace shardwise::exec {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kModel =
    R"({"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2, "ab": 3, "aab": 4},
        "merges": ["a b", ["a", "ab"]]})";

std::string file(const std::string& model, const std::string& rest = "") {
  return R"({"version": "1.0", "model": )" + model + rest + "}";
}

Result<Tokenizer> read(const std::string& text) {
  const Result<JsonValue> json = parse_json(text, "tokenizer.json");
  if (!json) return json.problems();
  return Tokenizer::from_json(*json, "tokenizer.json");
}

std::string refusal(const std::string& text) {
  const auto tokenizer = read(text);
  EXPECT_FALSE(tokenizer) << text;
  return tokenizer ? "" : to_string(tokenizer.problems());
}

// aabab: "a b" twice, then "a ab" once, by hand.
TEST(Tokenizer, MergesTheEarliestPairFirstAndTheLeftmostOfThose) {
  EXPECT_THAT(*read(file(kModel))->encode("aabab"), ElementsAre(4, 3));
  EXPECT_THAT(*read(file(kModel))->encode("bacab"), ElementsAre(2, 1, 0, 3));
}

TEST(Tokenizer, FindsTheLongestAddedToken) {
  const auto tokenizer = read(
      file(kModel,
           R"(, "added_tokens": [{"id": 7, "content": "<a>", "normalized": false, "special": true},
                            {"id": 8, "content": "<a>b", "normalized": false}])"));
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->vocab_size(), 9);
  EXPECT_THAT(*tokenizer->encode("a<a>a<a>b"), ElementsAre(1, 7, 1, 8));
}

// 281,000 merges of 530 letters, as many values as o200k's files have, more than people write.
TEST(Tokenizer, ReadsAVocabularyOfHundredsOfThousands) {
  constexpr int kLetters = 530;
  const auto letter = [](int i) {  // U+4E00 and on, three bytes each
    const int code = 0x4E00 + i;
    return std::string{static_cast<char>(0xE0 | code >> 12),
                       static_cast<char>(0x80 | (code >> 6 & 63)),
                       static_cast<char>(0x80 | (code & 63))};
  };
  std::string vocabulary = R"({"?": 0)";
  std::string merges;
  for (int i = 0; i < kLetters; ++i) {
    vocabulary += fmt::format(", \"{}\": {}", letter(i), i + 1);
  }
  for (int i = 0; i < kLetters * kLetters; ++i) {
    const std::string left = letter(i / kLetters);
    const std::string right = letter(i % kLetters);
    vocabulary += fmt::format(",\"{}{}\":{}", left, right, kLetters + 1 + i);
    merges += fmt::format("{}[\"{}\",\"{}\"]", i > 0 ? "," : "", left, right);
  }
  const shardwise::test::Scratch scratch;
  const auto tokenizer = Tokenizer::read(scratch.write_bytes(
      "tokenizer.json", file(R"({"type": "BPE", "unk_token": "?", "vocab": )" + vocabulary +
                             R"(}, "merges": [)" + merges + "]}")));
  ASSERT_TRUE(tokenizer) << to_string(tokenizer.problems());
  EXPECT_EQ(tokenizer->vocab_size(), 1 + kLetters + kLetters * kLetters);
  EXPECT_THAT(*tokenizer->encode(letter(2) + letter(3) + letter(4)),
              ElementsAre(1 + kLetters + 2 * kLetters + 3, 5));
}

// Long runs, over which expressions go back and forth.
TEST(Tokenizer, EncodesRunsOfAnyLength) {
  for (const char* name : {"gpt2", "llama3", "qwen2", "llama2"}) {
    const auto tokenizer =
        Tokenizer::read(std::string("tests/golden/tokenizers/") + name + ".json");
    ASSERT_TRUE(tokenizer);
    for (const char c : {' ', '\n', 'q', '!', '7'}) {
      const auto tokens = tokenizer->encode("x" + std::string(100'000, c) + "y");
      ASSERT_TRUE(tokens) << name << " " << c;
      EXPECT_GT(tokens->size(), 1000U);
    }
  }
}

TEST(Tokenizer, SaysWhereATextIsNotUtf8) {
  const auto refused = read(file(kModel))->encode("ab\xFFz");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.problems().front().message, "byte 2 is not UTF-8");
}

TEST(Tokenizer, NamesWhatOfAFileItDoesNotDo) {
  const auto model = [](const std::string& members) {
    return file(R"({"type": "BPE", "unk_token": "a", "vocab": {"a": 0}, "merges": [])" + members +
                "}");
  };
  EXPECT_THAT(refusal(file(R"({"type": "Unigram", "vocab": []})")),
              HasSubstr("/model/type: \"Unigram\" is not one of the choices\n    use BPE"));
  EXPECT_THAT(refusal(model(R"(, "dropout": 0.1)")), HasSubstr("/model/dropout: merges are never"));
  EXPECT_THAT(refusal(model(R"(, "continuing_subword_prefix": "##")")),
              HasSubstr("/model/continuing_subword_prefix: words have none"));
  EXPECT_THAT(refusal(model(R"(, "speed": 3)")), HasSubstr("/model/speed: unknown field"));
  EXPECT_THAT(refusal(file(kModel, R"(, "normalizer": {"type": "Lowercase"})")),
              HasSubstr("/normalizer/type: \"Lowercase\" is not one of the choices"));
  EXPECT_THAT(
      refusal(file(kModel, R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                                       {"type": "Whitespace"}]})")),
      HasSubstr("/pre_tokenizer/pretokenizers/0/type: \"Whitespace\" is not one of the choices"));
  EXPECT_THAT(
      refusal(file(kModel, R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"},
                               "behavior": "Isolated"})")),
      HasSubstr("/pre_tokenizer/pattern/Regex: the pattern \"(a\" cannot be used"));
  EXPECT_THAT(
      refusal(file(kModel, R"(, "pre_tokenizer": {"type": "Split", "pattern": {"String": "-"},
                               "behavior": "Contiguous"})")),
      HasSubstr("/pre_tokenizer/behavior"));
  EXPECT_THAT(refusal(file(kModel, R"(, "added_tokens": [{"id": 9, "content": "x",
                                       "single_word": true}])")),
              HasSubstr("/added_tokens/0/single_word"));
}

// Defect N10: 10,000 took seconds for 13 kB of text.
TEST(Tokenizer, RefusesMoreStepsThanItCouldTake) {
  const auto sequence = [](const std::string& key, const std::string& step, int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ", ") + step;
    return R"({"type": "Sequence", ")" + key + R"(": [)" + list + "]}";
  };
  const auto with = [](const std::string& normalizer, const std::string& pre_tokenizer) {
    return file(kModel,
                R"(, "normalizer": )" + normalizer + R"(, "pre_tokenizer": )" + pre_tokenizer);
  };
  const std::string form = R"({"type": "NFC"})";
  const std::string split = R"({"type": "Digits"})";
  const auto tokenizer =
      read(with(sequence("normalizers", form, 100), sequence("pretokenizers", split, 100)));
  ASSERT_TRUE(tokenizer);
  EXPECT_THAT(*tokenizer->encode("aab"), ElementsAre(4));
  EXPECT_THAT(refusal(with(sequence("normalizers", form, 10'000), "null")),
              AllOf(HasSubstr(": /normalizer/normalizers/100/type: more than 100 normalizers\n"),
                    HasSubstr("1 problem, nothing was run")));
  // Also where sequences are in sequences.
  EXPECT_THAT(refusal(with(sequence("normalizers", sequence("normalizers", form, 11), 11), "null")),
              HasSubstr("more than 100 normalizers"));
  EXPECT_THAT(refusal(with("null", sequence("pretokenizers", split, 101))),
              HasSubstr("more than 100 pre-tokenizers"));
}

// Each doubles a text, and there may be 100.
TEST(Tokenizer, RefusesStepsThatDoubleATextAgainAndAgain) {
  const std::string bytes = R"({"type": "ByteLevel", "use_regex": false})";
  EXPECT_THAT(refusal(file(kModel, R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [)" +
                                       bytes + ", " + bytes + "]}")),
              HasSubstr("a second ByteLevel"));
  EXPECT_THAT(
      refusal(file(kModel, R"(, "pre_tokenizer": {"type": "Metaspace", "replacement": "  "})")),
      HasSubstr("has a space"));
  std::string steps;
  for (int i = 0; i < 60; ++i) {
    steps += R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}, )";
  }
  const auto tokenizer =
      read(file(kModel, R"(, "normalizer": {"type": "Sequence", "normalizers": [)" + steps +
                            R"({"type": "NFC"}]})"));
  ASSERT_TRUE(tokenizer);
  const auto refused = tokenizer->encode("aaa");
  ASSERT_FALSE(refused);
  EXPECT_THAT(to_string(refused.problems()), HasSubstr("makes more than 1000192 bytes of 3"));
}

// The library of expressions takes no longer ones, which once ended the program.
TEST(Tokenizer, RefusesATextToReplaceThatIsTooLong) {
  const auto normalizer = [](std::size_t length) {
    return file(kModel, R"(, "normalizer": {"type": "Replace", "content": "", "pattern":
                            {"String": ")" +
                            std::string(length, 'x') + R"("}})");
  };
  ASSERT_TRUE(read(normalizer(30'000)));
  EXPECT_THAT(
      refusal(normalizer(40'000)),
      AllOf(HasSubstr("/normalizer/pattern/String: the pattern \"xxx"), HasSubstr("too large")));
}

TEST(Tokenizer, RefusesAVocabularyThatCannotWriteEveryText) {
  const auto model = [](const std::string& members, const std::string& rest = "") {
    return file(R"({"type": "BPE", "vocab": {"a": 0, "<0x00>": 1}, "merges": [])" + members + "}",
                rest);
  };
  EXPECT_THAT(refusal(model("")), HasSubstr("characters that are no token would be lost"));
  EXPECT_THAT(refusal(model(R"(, "byte_fallback": true)")), HasSubstr("there is no token <0x01>"));
  EXPECT_THAT(refusal(model("", R"(, "pre_tokenizer": {"type": "ByteLevel"})")),
              HasSubstr("/model/vocab: has no \"Ā\", the character of byte 0"));
  EXPECT_THAT(refusal(model(R"(, "unk_token": "b")")), HasSubstr("is no token of the vocabulary"));
}

TEST(Tokenizer, RefusesMergesOfWhatIsNoToken) {
  EXPECT_THAT(refusal(file(R"({"unk_token": "a", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]})")),
              HasSubstr("/model/merges: number 0 makes \"ab\" of \"a\" and \"b\""));
  EXPECT_THAT(refusal(file(R"({"unk_token": "a", "vocab": {"a": 0}, "merges": ["a"]})")),
              HasSubstr("number 0 is no pair of tokens"));
  EXPECT_THAT(refusal(file(R"({"unk_token": "a", "vocab": {"a": -1}, "merges": []})")),
              HasSubstr("/model/vocab: \"a\" has no number from 0 on"));
}

}  // namespace
}  // namespace shardwise::exec
