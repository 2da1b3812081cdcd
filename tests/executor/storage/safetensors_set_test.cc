#include "executor/storage/safetensors_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/scratch.h"

namespace shardwise::exec {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::Scratch;
using testing::HasSubstr;

const std::vector<TensorSpec> kTensors = {{"a", StoredType::f32, {2}},
                                          {"b", StoredType::f32, {6}},
                                          {"c", StoredType::f32, {1}},
                                          {"d", StoredType::f32, {2}}};

/// Files of at most 12 bytes: a | b, which is larger | c and d.
void write_set(const Scratch& scratch, std::int64_t most_bytes) {
  std::string data;
  for (int i = 0; i < 44; ++i) data += static_cast<char>('a' + i % 26);
  SafetensorsSetWriter writer(scratch.folder(), kTensors, most_bytes, {{"format", "pt"}});
  writer.write(std::as_bytes(std::span(data)).first(30));
  writer.write(std::as_bytes(std::span(data)).subspan(30));
  writer.finish();
}

std::string read(const SafetensorsSet& set, const std::string& tensor) {
  const SafetensorsSet::Place* const place = set.find(tensor);
  if (place == nullptr) return "";
  std::string bytes(static_cast<std::size_t>(place->tensor->spec.bytes()), '\0');
  set.read(*place, 0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

TEST(SafetensorsSet, ReadsOneFileOrManyAlike) {
  for (const std::int64_t most_bytes : {12, 1000}) {
    const Scratch scratch;
    write_set(scratch, most_bytes);
    const Result<SafetensorsSet> set = SafetensorsSet::open(scratch.folder());
    ASSERT_TRUE(set) << to_string(set.problems());
    EXPECT_EQ(set->files().size(), most_bytes == 12 ? 3 : 1);
    EXPECT_EQ(set->size(), 4);
    EXPECT_EQ(read(*set, "a") + read(*set, "b") + read(*set, "c") + read(*set, "d"),
              "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqr");
  }
}

TEST(SafetensorsSet, NamesFilesAndWritesTheIndexAsHuggingFaceDoes) {
  const Scratch scratch;
  write_set(scratch, 12);
  EXPECT_EQ(bytes_of_file(scratch.path("model.safetensors.index.json")), R"({
  "metadata": {
    "total_size": 44
  },
  "weight_map": {
    "a": "model-00001-of-00003.safetensors",
    "b": "model-00002-of-00003.safetensors",
    "c": "model-00003-of-00003.safetensors",
    "d": "model-00003-of-00003.safetensors"
  }
}
)");
}

// A model of one file written over one of many is not read through the old index.
TEST(SafetensorsSet, ForgetsTheIndexOfFilesThatWereThereBefore) {
  const Scratch scratch;
  write_set(scratch, 12);
  write_set(scratch, 1000);
  const Result<SafetensorsSet> set = SafetensorsSet::open(scratch.folder());
  ASSERT_TRUE(set) << to_string(set.problems());
  EXPECT_EQ(set->files().size(), 1);
}

TEST(SafetensorsSet, NamesTensorsThatTheIndexHasElsewhereOrNot) {
  const Scratch scratch;
  write_set(scratch, 12);
  const std::string index = scratch.write_bytes("index.json", R"({"metadata": {}, "weight_map": {
      "a": "model-00001-of-00003.safetensors", "b": "model-00003-of-00003.safetensors",
      "c": "model-00003-of-00003.safetensors", "e": "model-00001-of-00003.safetensors"}})");
  const Result<SafetensorsSet> set = SafetensorsSet::open(index);
  ASSERT_FALSE(set);
  const std::string text = to_string(set.problems());
  EXPECT_THAT(text, HasSubstr("model-00003-of-00003.safetensors: /d: is not there by "));
  EXPECT_THAT(text, HasSubstr("model-00003-of-00003.safetensors: /b: is missing"));
  EXPECT_THAT(text, HasSubstr("model-00001-of-00003.safetensors: /e: is missing"));
}

TEST(SafetensorsSet, RefusesFilesOutsideItsFolderAndFilesThatAreNotThere) {
  const Scratch scratch;
  const std::string outside =
      scratch.write_bytes("outside.json", R"({"weight_map": {"a": "../model.safetensors"}})");
  const Result<SafetensorsSet> refused = SafetensorsSet::open(outside);
  ASSERT_FALSE(refused);
  EXPECT_THAT(to_string(refused.problems()), HasSubstr("/weight_map/a: ../model.safetensors is"));
  const std::string lacking =
      scratch.write_bytes("lacking.json", R"({"weight_map": {"a": "none.safetensors"}})");
  const Result<SafetensorsSet> missing = SafetensorsSet::open(lacking);
  ASSERT_FALSE(missing);
  EXPECT_THAT(to_string(missing.problems()), HasSubstr("none.safetensors: no such file"));
}

}  // namespace
}  // namespace shardwise::exec
