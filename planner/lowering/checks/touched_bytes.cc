#include "planner/lowering/checks/touched_bytes.h"

#include <utility>

namespace shardwise {

TouchedBytes::Race TouchedBytes::touch(const DependencyOrder& order, OpId op,
                                       const ByteRange& bytes, bool writes) {
  Race race;
  const auto races = [&](OpId earlier) {
    return race.op == kNone && earlier != kNone && earlier != op && !order.before(earlier, op);
  };
  touches_.visit(bytes, [&](const ByteRange& /*at*/, const Touches& touches) {
    if (races(touches.writer)) race = {touches.writer, true};
    if (!writes) return;
    for (const OpId reader : touches.readers) {
      if (races(reader)) race = {reader, false};
    }
  });
  if (race.op != kNone) return race;
  if (writes) {
    // What comes after this operation comes after those whose bytes it wrote over.
    touches_.set(bytes, {op, {}});
    return race;
  }
  touches_.update(bytes, [&](Touches& touches) {
    std::erase_if(touches.readers,
                  [&](OpId reader) { return reader == op || order.before(reader, op); });
    touches.readers.push_back(op);
  });
  return race;
}

}  // namespace shardwise
