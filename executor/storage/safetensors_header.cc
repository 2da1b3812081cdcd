#include "executor/storage/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/units.h"

namespace shardwise::exec {
namespace {

constexpr const char* kMetadata = "__metadata__";
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

/// The whole numbers of an array; nothing when one of its elements is none.
std::optional<std::vector<std::int64_t>> whole_numbers(const JsonValue* array) {
  if (array == nullptr) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const JsonValue& each : array->elements) {
    if (each.kind != JsonValue::Kind::integer || each.integer < 0) return std::nullopt;
    numbers.push_back(each.integer);
  }
  return numbers;
}

/// Bytes of a shape; nothing when they do not fit 63 bits.
std::optional<std::int64_t> bytes_of_shape(const std::vector<std::int64_t>& shape,
                                           StoredType type) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::int64_t product = bytes_of(type);
  for (const std::int64_t length : shape) {
    if (length > kMost / product) return std::nullopt;
    product *= length;
  }
  return product;
}

class HeaderReader {
 public:
  HeaderReader(const std::string& file, Diagnostics& problems) : file_(file), problems_(problems) {}

  void read(const JsonValue& root) {
    ObjectReader reader(root, file_, "", problems_);
    for (const JsonMember& member : root.members) {
      if (member.key == kMetadata) {
        read_metadata(reader.nested(member.key, member.value), member.value);
      } else {
        read_tensor(reader.nested(member.key, member.value), member.key);
      }
    }
  }

  /// Tensors lie one after the other, from the first byte of the data to the last.
  void check_order(std::int64_t data_bytes) {
    std::ranges::stable_sort(made_.tensors, {}, [](const StoredTensor& tensor) {
      return std::tuple(tensor.begin, tensor.end());
    });
    std::int64_t at = 0;
    for (const StoredTensor& tensor : made_.tensors) {
      if (tensor.begin != at) {
        fail(tensor.spec.name,
             fmt::format("begins at byte {} of the data, the one before ends at {}", tensor.begin,
                         at));
        return;
      }
      at = tensor.end();
      if (at > data_bytes) {
        fail(tensor.spec.name,
             fmt::format("ends at byte {} of the data, the file has {}", at, data_bytes),
             "the file is truncated");
        return;
      }
    }
    if (at < data_bytes) fail("", fmt::format("{} bytes belong to no tensor", data_bytes - at));
  }

  SafetensorsHeader take() { return std::move(made_); }

 private:
  void fail(const std::string& tensor, std::string message, std::string hint = {}) {
    problems_.push_back({file_, 0, 0, tensor.empty() ? "" : json_pointer("", tensor),
                         std::move(message), std::move(hint)});
  }

  void read_metadata(ObjectReader reader, const JsonValue& value) {
    for (const JsonMember& each : value.members) {
      made_.metadata[each.key] = reader.string(each.key);
    }
  }

  void read_tensor(ObjectReader reader, const std::string& name) {
    StoredTensor tensor;
    tensor.spec.name = name;
    if (name.find('\0') != std::string::npos) {
      // Programs in C would take such a name for the part before.
      fail(name, "a name with the character 0");
    }
    tensor.spec.type = static_cast<StoredType>(reader.choice("dtype", stored_type_names()));
    const auto shape = whole_numbers(reader.array("shape"));
    const auto offsets = whole_numbers(reader.array("data_offsets"));
    reader.reject_unknown();
    if (!reader.ok()) return;
    if (!shape) {
      fail(name, "shape is no list of whole numbers");
    } else if (!offsets || offsets->size() != 2 || offsets->front() > offsets->back()) {
      fail(name, "data_offsets are no begin and end");
    } else {
      tensor.spec.shape = *shape;
      tensor.begin = offsets->front();
      const std::optional<std::int64_t> bytes = bytes_of_shape(*shape, tensor.spec.type);
      const std::int64_t given = offsets->back() - offsets->front();
      if (bytes == given) {
        made_.tensors.push_back(std::move(tensor));
        return;
      }
      fail(name, fmt::format("{} of shape [{}] is not what {} bytes hold",
                             name_of(tensor.spec.type), fmt::join(*shape, ", "), given));
    }
  }

  const std::string& file_;
  Diagnostics& problems_;
  SafetensorsHeader made_;
};

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, std::int64_t data_bytes,
                                                   const std::string& file) {
  const Result<JsonValue> root = parse_json(json, file);
  Diagnostics problems;
  HeaderReader reader(file, problems);
  if (root) {
    reader.read(*root);
  } else {
    problems = root.problems();
  }
  if (problems.empty()) reader.check_order(data_bytes);
  if (problems.empty()) return reader.take();
  // A line of a file that is no text says nothing.
  for (Diagnostic& each : problems) each.line = 0;
  return problems;
}

std::string safetensors_header(const std::vector<TensorSpec>& tensors,
                               const StoredMetadata& metadata) {
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  std::vector<std::string> members;
  if (!metadata.empty()) {
    members.push_back(fmt::format("\"{}\":{}", kMetadata, nlohmann::json(metadata).dump()));
  }
  std::set<std::string> names = {kMetadata};
  std::int64_t at = 0;
  for (const TensorSpec& tensor : tensors) {
    SHARDWISE_CHECK(names.insert(tensor.name).second, tensor.name);
    members.push_back(fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                                  quoted(tensor.name), name_of(tensor.type),
                                  fmt::join(tensor.shape, ","), at, at + tensor.bytes()));
    at += tensor.bytes();
  }
  std::string text = fmt::format("{{{}}}", fmt::join(members, ","));
  constexpr std::size_t kAlignment = 8;
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string header;
  for (std::size_t i = 0; i < kSafetensorsLengthBytes; ++i) {
    header += static_cast<char>((text.size() >> (8 * i)) & 0xffU);
  }
  return header + text;
}

}  // namespace shardwise::exec
