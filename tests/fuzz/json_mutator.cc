// Changes JSON as JSON: bytes changed blindly rarely get past the parser, so the readers behind it
// would hardly be met. One change in four is still blind.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* bytes, std::size_t size, std::size_t most);

namespace {

using Json = nlohmann::json;

void gather(Json& value, std::vector<Json*>& all, int depth = 0) {
  all.push_back(&value);
  if (value.is_structured() && depth < 100) {
    for (Json& child : value) gather(child, all, depth + 1);
  }
}

/// Values at the edges of what readers accept.
const std::vector<Json>& edges() {
  static const std::vector<Json> kEdges = {nullptr,
                                           true,
                                           false,
                                           0,
                                           1,
                                           -1,
                                           2,
                                           3,
                                           7,
                                           64,
                                           65535,
                                           1'000'000'007,
                                           2147483648LL,
                                           9007199254740993LL,
                                           9223372036854775807LL,
                                           -9223372036854775807LL - 1,
                                           0.5,
                                           -0.0,
                                           1e-300,
                                           1e18,
                                           1e300,
                                           "",
                                           "x",
                                           "\n\x1b[31m",
                                           "bf16",
                                           Json::array(),
                                           Json::object(),
                                           Json::array({1, 1})};
  return kEdges;
}

void change(Json& root, std::mt19937& random) {
  std::vector<Json*> all;
  gather(root, all);
  Json& value = *all[random() % all.size()];
  switch (random() % 5) {
    case 0:
      value = edges()[random() % edges().size()];
      break;
    case 1:  // near the value that was there
      if (value.is_number_integer()) {
        const auto n = static_cast<std::uint64_t>(value.get<std::int64_t>());
        value = static_cast<std::int64_t>(n * (random() % 4) + random() % 3);
      } else {
        value = edges()[random() % edges().size()];
      }
      break;
    case 2:  // a value from elsewhere in the same text
      value = Json(*all[random() % all.size()]);
      break;
    case 3:  // one member or element less
      if (value.is_object() && !value.empty()) {
        value.erase(std::next(value.begin(), static_cast<std::ptrdiff_t>(random() % value.size())));
      } else if (value.is_array() && !value.empty()) {
        value.erase(random() % value.size());
      }
      break;
    default:  // one more
      if (value.is_object()) {
        value["x" + std::to_string(random() % 3)] = edges()[random() % edges().size()];
      } else if (value.is_array()) {
        value.push_back(value.empty() ? edges()[random() % edges().size()]
                                      : Json(value[random() % value.size()]));
      }
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* bytes, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  if (random() % 4 == 0) return LLVMFuzzerMutate(bytes, size, most);
  Json root = Json::parse(bytes, bytes + size, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return LLVMFuzzerMutate(bytes, size, most);
  for (auto changes = 1 + random() % 3; changes > 0; --changes) change(root, random);
  const std::string text = root.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > most) return LLVMFuzzerMutate(bytes, size, most);
  std::memcpy(bytes, text.data(), text.size());
  return text.size();
}
