#include "executor/data/token_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/scratch.h"

namespace shardwise::exec {
namespace {

using shardwise::test::Scratch;
using testing::ElementsAre;
using testing::HasSubstr;

/// Bytes of numbers, one after the other.
template <class T>
std::string bytes(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

std::vector<std::int64_t> all(const Result<TokenStream>& stream) {
  EXPECT_TRUE(stream) << (stream ? "" : to_string(stream.problems()));
  if (!stream) return {};
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(stream->tokens()));
  stream->read(0, tokens);
  return tokens;
}

std::string refusal(const std::string& path, DataFormat format = DataFormat::detect) {
  const auto stream = open_tokens(path, format);
  EXPECT_FALSE(stream);
  return stream ? "" : to_string(stream.problems());
}

std::string llmc(std::int32_t magic, std::int32_t version, std::int32_t tokens,
                 const std::string& rest) {
  std::vector<std::int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = tokens;
  return bytes(header) + rest;
}

/// An index as Megatron-LM's _IndexWriter lays it out.
struct Index {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  std::uint64_t version = 1;
  std::uint8_t type = 8;
  std::vector<std::int32_t> lengths = {2, 0, 3};
  std::vector<std::int64_t> pointers = {0, 4, 4};
  std::vector<std::int64_t> documents = {0, 1, 3};

  std::string file() const {
    return magic + bytes<std::uint64_t>({version}) + bytes<std::uint8_t>({type}) +
           bytes<std::uint64_t>({lengths.size(), documents.size()}) + bytes(lengths) +
           bytes(pointers) + bytes(documents);
  }
};
const std::string kFive = bytes<std::uint16_t>({5, 6, 7, 65535, 9});

TEST(OpenTokens, ReadsTextAByteAToken) {
  const Scratch scratch;
  EXPECT_THAT(all(open_tokens(scratch.write_bytes("text", "a\xFFz"), DataFormat::detect)),
              ElementsAre('a', 0xFF, 'z'));
}

TEST(OpenTokens, ReadsWhatNanoGptWrites) {
  const Scratch scratch;
  EXPECT_THAT(all(open_tokens(scratch.write_bytes("train.bin", kFive), DataFormat::detect)),
              ElementsAre(5, 6, 7, 65535, 9));
  EXPECT_THAT(refusal(scratch.write_bytes("odd.bin", "abc")),
              HasSubstr("odd.bin: --data: 3 bytes are no whole number of uint16 tokens"));
}

TEST(OpenTokens, ReadsWhatLlmCWrites) {
  const Scratch scratch;
  EXPECT_THAT(all(open_tokens(scratch.write_bytes("gpt2.bin", llmc(20240520, 1, 5, kFive)),
                              DataFormat::detect)),
              ElementsAre(5, 6, 7, 65535, 9));
  const std::string wide = bytes<std::uint32_t>({128000, 1, 4000000000});
  EXPECT_THAT(all(open_tokens(scratch.write_bytes("llama3.data", llmc(20240801, 7, 3, wide)),
                              DataFormat::detect)),
              ElementsAre(128000, 1, 4000000000));
}

TEST(OpenTokens, RefusesFilesOfLlmCThatTheirHeaderContradicts) {
  const Scratch scratch;
  EXPECT_THAT(refusal(scratch.write_bytes("a.bin", llmc(20240520, 1, 6, kFive))),
              HasSubstr("a.bin: --data: its header states 6 tokens, the file has 5"));
  EXPECT_THAT(refusal(scratch.write_bytes("b.bin", llmc(20240520, 1, -1, kFive))),
              HasSubstr("its header states -1 tokens, the file has 5"));
  EXPECT_THAT(refusal(scratch.write_bytes("c.bin", llmc(20240520, 2, 5, kFive)), DataFormat::llmc),
              HasSubstr("version 2 of llm.c's token files, 1 is read"));
  EXPECT_THAT(refusal(scratch.write_bytes("d.bin", llmc(20240522, 1, 5, kFive)), DataFormat::llmc),
              HasSubstr("20240522 is not a magic number of llm.c's token files"));
  EXPECT_THAT(refusal(scratch.write_bytes("e.bin", kFive), DataFormat::llmc),
              HasSubstr("10 bytes are less than llm.c's header of 1024"));
}

TEST(OpenTokens, JoinsTheDocumentsOfMegatronsFilesByEveryNameTheyHave) {
  const Scratch scratch;
  scratch.write_bytes("corpus.bin", kFive);
  scratch.write_bytes("corpus.idx", Index().file());
  for (const char* name : {"corpus", "corpus.bin", "corpus.idx"}) {
    EXPECT_EQ(detected_format(scratch.path(name)), DataFormat::megatron) << name;
    EXPECT_THAT(all(open_tokens(scratch.path(name), DataFormat::detect)),
                ElementsAre(5, 6, 7, 65535, 9));
  }
  EXPECT_THAT(all(open_tokens(scratch.path("corpus.bin"), DataFormat::nanogpt)),
              ElementsAre(5, 6, 7, 65535, 9));
}

TEST(OpenTokens, ReadsEveryIntegerTypeOfMegatrons) {
  const Scratch scratch;
  const auto read = [&](int type, const std::string& file, std::int64_t token_bytes) {
    Index index;
    index.type = static_cast<std::uint8_t>(type);
    index.lengths = {1, 1};
    index.pointers = {0, token_bytes};
    index.documents = {0, 2};
    scratch.write_bytes("t.idx", index.file());
    scratch.write_bytes("t.bin", file);
    return all(open_tokens(scratch.path("t"), DataFormat::megatron));
  };
  EXPECT_THAT(read(1, bytes<std::uint8_t>({3, 200}), 1), ElementsAre(3, 200));
  EXPECT_THAT(read(2, bytes<std::int8_t>({3, -2}), 1), ElementsAre(3, -2));
  EXPECT_THAT(read(3, bytes<std::int16_t>({3, -2}), 2), ElementsAre(3, -2));
  EXPECT_THAT(read(4, bytes<std::int32_t>({3, 1 << 30}), 4), ElementsAre(3, 1 << 30));
  EXPECT_THAT(read(5, bytes<std::int64_t>({3, 1LL << 40}), 8), ElementsAre(3, 1LL << 40));
  EXPECT_THAT(read(8, bytes<std::uint16_t>({3, 65535}), 2), ElementsAre(3, 65535));
}

TEST(OpenTokens, RefusesMegatronFilesThatAreNoPair) {
  const Scratch scratch;
  const auto refused = [&](const Index& index, const std::string& file) {
    scratch.write_bytes("c.idx", index.file());
    scratch.write_bytes("c.bin", file);
    return refusal(scratch.path("c.bin"));
  };
  EXPECT_THAT(refused({}, kFive.substr(2)),
              HasSubstr("c.bin: --data: 8 bytes, its index has 10\n    the file is truncated"));
  Index other;
  other.magic[0] = 'X';
  EXPECT_THAT(refused(other, kFive), HasSubstr("c.idx: --data: does not begin with MMIDIDX"));
  other = {};
  other.version = 2;
  EXPECT_THAT(refused(other, kFive), HasSubstr("version 2, 1 is read"));
  other = {};
  other.type = 7;
  EXPECT_THAT(refused(other, kFive), HasSubstr("type 7 holds no tokens"));
  other = {};
  other.pointers[2] = 6;
  EXPECT_THAT(refused(other, kFive),
              HasSubstr("sequence 2 begins at byte 6, the one before ends at 4"));
  other = {};
  other.lengths[1] = -1;
  EXPECT_THAT(refused(other, kFive), HasSubstr("sequence 1 has -1 tokens"));
  other = {};
  other.documents = {0, 4, 3};
  EXPECT_THAT(refused(other, kFive), HasSubstr("document 1 begins at sequence 4 of 3"));
  other = {};
  other.documents = {0, 1};
  EXPECT_THAT(refused(other, kFive), HasSubstr("documents end at sequence 1 of 3"));
}

// Files of tests/golden/make_token_index.py.
TEST(OpenTokens, ReadsTheIndexThatMegatronsWriterMakes) {
  const auto read = [](const char* name) {
    const std::string path = std::string("tests/fuzz/corpus/token_index/") + name;
    const Result<MappedFile> file = MappedFile::open(path, "--data");
    return *read_megatron_index(file->bytes(), path);
  };
  const auto numbers = [](const MegatronIndex& index) {
    return std::vector<std::int64_t>{index.sequences, index.documents, index.tokens};
  };
  EXPECT_EQ(read("uint16.idx").type, TokenType::uint16);
  EXPECT_THAT(numbers(read("uint16.idx")), ElementsAre(5, 3, 7));
  EXPECT_EQ(read("int32.idx").type, TokenType::int32);
  EXPECT_THAT(numbers(read("int32.idx")), ElementsAre(2, 2, 8));
  EXPECT_THAT(numbers(read("modes.idx")), ElementsAre(2, 1, 3));
}

// Every length at which an index can be cut.
TEST(OpenTokens, RefusesAnIndexThatWasCut) {
  const std::string whole = Index().file();
  ASSERT_TRUE(read_megatron_index(std::as_bytes(std::span(whole)), "c.idx"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    EXPECT_FALSE(read_megatron_index(std::as_bytes(std::span(cut)), "c.idx")) << size;
  }
}

TEST(OpenTokens, RefusesFilesThatAreNotThereOrEmpty) {
  const Scratch scratch;
  EXPECT_THAT(refusal("no/such/text"), HasSubstr("no/such/text: --data: no such file"));
  EXPECT_THAT(refusal(scratch.path("none.idx")), HasSubstr("none.idx: --data: no such file"));
  EXPECT_THAT(refusal("tests"), HasSubstr("tests: --data: a folder, not a file"));
  EXPECT_THAT(refusal(scratch.write_bytes("empty.txt", "")),
              HasSubstr("empty.txt: --data: is empty"));
}

}  // namespace
}  // namespace shardwise::exec
