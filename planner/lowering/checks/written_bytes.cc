#include "planner/lowering/checks/written_bytes.h"

namespace shardwise {
namespace {

bool differ(std::int32_t a, std::int32_t b) { return a >= 0 && b >= 0 && a != b; }

}  // namespace

void WrittenBytes::add(const ByteRange& bytes, const Content& content) {
  parts_.set(bytes, content);
}

void WrittenBytes::remove(const ByteRange& bytes) { parts_.erase(bytes); }

bool WrittenBytes::has(const ByteRange& bytes, std::int32_t unit, std::int32_t layer) const {
  std::int64_t missing = bytes.end - bytes.begin;
  parts_.visit(bytes, [&](const ByteRange& at, const Content& is) {
    if (!differ(unit, is.unit) && !differ(layer, is.layer)) missing -= at.end - at.begin;
  });
  return missing <= 0;
}

std::vector<WrittenBytes::Part> WrittenBytes::in(const ByteRange& bytes) const {
  std::vector<Part> found;
  parts_.visit(bytes, [&](const ByteRange& at, const Content& is) { found.push_back({at, is}); });
  return found;
}

}  // namespace shardwise
