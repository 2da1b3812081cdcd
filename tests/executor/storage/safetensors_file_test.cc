#include "executor/storage/safetensors_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "executor/storage/safetensors_writer.h"
#include "tests/support/scratch.h"

namespace shardwise::exec {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::Scratch;
using testing::HasSubstr;

/// A length as eight little-endian bytes.
std::string length_bytes(std::size_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((length >> (8 * i)) & 0xffU);
  return bytes;
}
std::string file_of(const std::string& json, const std::string& data) {
  return length_bytes(json.size()) + json + data;
}

const std::array<float, 6> kCounting = {0, 1, 2, 3, 4, 5};

std::string counting_bytes() {
  return {reinterpret_cast<const char*>(kCounting.data()), sizeof(kCounting)};
}

// The file of the reference implementation's own test: safetensors/src/tensor.rs,
// test_serialization_forced_alignement: 72 bytes of header, of which 7 are spaces.
TEST(SafetensorsWriter, WritesTheBytesOfTheReferenceImplementation) {
  const Scratch scratch;
  SafetensorsWriter writer(scratch.path("a"), {{"attn0", StoredType::f32, {1, 1, 2, 3}}});
  writer.write(std::as_bytes(std::span(kCounting)));
  writer.finish();
  const std::string json = R"({"attn0":{"dtype":"F32","shape":[1,1,2,3],"data_offsets":[0,24]}})";
  const std::string expected = file_of(json + std::string(7, ' '), counting_bytes());
  EXPECT_EQ(bytes_of_file(scratch.path("a")), expected);
  EXPECT_EQ(writer.bytes(), std::ssize(expected));
}

// test_empty of the same file.
TEST(SafetensorsWriter, WritesFilesWithoutTensors) {
  const Scratch scratch;
  SafetensorsWriter(scratch.path("a"), {}).finish();
  EXPECT_EQ(bytes_of_file(scratch.path("a")), file_of("{}      ", ""));
  SafetensorsWriter(scratch.path("b"), {}, {{"framework", "pt"}}).finish();
  EXPECT_EQ(bytes_of_file(scratch.path("b")),
            file_of(R"({"__metadata__":{"framework":"pt"}}     )", ""));
}

TEST(SafetensorsFile, ReadsWhatWasWritten) {
  const Scratch scratch;
  const std::vector<TensorSpec> specs = {{"f64", StoredType::f64, {2}},
                                         {"i64", StoredType::i64, {}},
                                         {"f32 \"quoted\" ü", StoredType::f32, {2, 3}},
                                         {"bf16", StoredType::bf16, {3}},
                                         {"none", StoredType::f32, {4, 0}},
                                         {"u8", StoredType::u8, {5}}};
  std::string data;
  for (int i = 0; i < 16 + 8 + 24 + 6 + 5; ++i) data += static_cast<char>(i);
  SafetensorsWriter writer(scratch.path("a"), specs, {{"format", "pt"}, {"step", "7"}});
  for (const char& each : data) writer.write(std::as_bytes(std::span(&each, 1)));
  writer.finish();

  const Result<SafetensorsFile> file = SafetensorsFile::open(scratch.path("a"));
  ASSERT_TRUE(file) << to_string(file.problems());
  EXPECT_EQ(file->metadata(), (StoredMetadata{{"format", "pt"}, {"step", "7"}}));
  ASSERT_EQ(file->tensors().size(), specs.size());
  std::string back;
  for (const TensorSpec& spec : specs) {
    const StoredTensor* const tensor = file->find(spec.name);
    ASSERT_NE(tensor, nullptr) << spec.name;
    EXPECT_EQ(tensor->spec, spec);
    std::string bytes(static_cast<std::size_t>(spec.bytes()), '\0');
    file->read(*tensor, 0, std::as_writable_bytes(std::span(bytes)));
    back += bytes;
  }
  EXPECT_EQ(back, data);
  std::array<char, 2> middle{};
  file->read(*file->find("u8"), 2, std::as_writable_bytes(std::span(middle)));
  EXPECT_EQ(middle, (std::array<char, 2>{56, 57}));
  EXPECT_EQ(file->find("u9"), nullptr);
}

// Writers before 0.3 sorted by name, not by place.
TEST(SafetensorsFile, ReadsTensorsInAnyOrderOfTheHeader) {
  const Scratch scratch;
  const std::string path =
      scratch.write_bytes("a", file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                                       R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                                       "xyz"));
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << to_string(file.problems());
  EXPECT_EQ(file->tensors().front().spec.name, "b");
  std::string bytes(2, '\0');
  file->read(*file->find("a"), 0, std::as_writable_bytes(std::span(bytes)));
  EXPECT_EQ(bytes, "yz");
}

struct Wrong {
  std::string bytes;
  std::string message;
};

std::string one(const std::string& members, const std::string& data = "abcd") {
  return file_of("{\"w\":{" + members + "}}", data);
}

TEST(SafetensorsFile, RefusesWhatDoesNotFitAndNamesTheTensor) {
  const std::string good = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])";
  const std::vector<Wrong> cases = {
      {"abc", "3 bytes are no header"},
      {length_bytes(std::size_t{1} << 40) + "{}", "a header of 1099511627776 bytes"},
      {length_bytes(3) + "{}", "a header of 3 bytes in a file of 10"},
      {file_of("[]", ""), "object"},
      {file_of("{\"w\"", ""), "JSON"},
      {one(good, "abc"), "/w: ends at byte 4 of the data, the file has 3"},
      {one(good, "abcde"), "1 bytes belong to no tensor"},
      {one(R"("dtype":"F33","shape":[1],"data_offsets":[0,4])"), "/w/dtype"},
      {one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"),
       "/w: F32 of shape [2] is not what 4 bytes hold"},
      {one(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), "/w: shape is no list"},
      {one(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4])"),
       "is not what 4 bytes hold"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), "/w: data_offsets are no begin"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0])"), "/w: data_offsets are no begin"},
      {one(R"("dtype":"F32","shape":[1])"), "/w/data_offsets"},
      {one(good + R"(,"strides":[1])"), "/w/strides: unknown field"},
      // (D11) Programs in C would read the name "w".
      {file_of("{\"w\\u0000x\":{" + good + "}}", "abcd"), "a name with the character 0"},
      {file_of("{\"w\":{" + good + "},\"w\":{" + good + "}}", "abcd"), "/w: "},
      {file_of("{\"w\":{" + good + R"(},"v":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})",
               "abcd"),
       "/v: begins at byte 3 of the data, the one before ends at 4"},
      {one(R"("dtype":"U8","shape":[2],"data_offsets":[2,4])"), "/w: begins at byte 2"},
      {file_of(R"({"__metadata__":{"step":7}})", ""), "/__metadata__/step"}};
  const Scratch scratch;
  for (const Wrong& wrong : cases) {
    const std::string path = scratch.write_bytes("wrong.safetensors", wrong.bytes);
    const Result<SafetensorsFile> file = SafetensorsFile::open(path);
    ASSERT_FALSE(file) << wrong.message;
    ASSERT_EQ(file.problems().size(), 1) << to_string(file.problems());
    const std::string text = to_string(file.problems().front());
    EXPECT_THAT(text, HasSubstr("wrong.safetensors: "));
    EXPECT_THAT(text, HasSubstr(wrong.message));
  }
}

TEST(SafetensorsFile, RefusesWhatIsNotThereOrNoFile) {
  const Scratch scratch;
  const Result<SafetensorsFile> missing = SafetensorsFile::open(scratch.path("none"));
  ASSERT_FALSE(missing);
  EXPECT_THAT(to_string(missing.problems()), HasSubstr("none: no such file"));
  const Result<SafetensorsFile> folder = SafetensorsFile::open(scratch.folder());
  ASSERT_FALSE(folder);
  EXPECT_THAT(to_string(folder.problems()), HasSubstr("a folder, not a file"));
}

}  // namespace
}  // namespace shardwise::exec
