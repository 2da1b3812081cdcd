#pragma once

#include <string>

#include "gui/draw/image.h"

namespace shardwise::test {

/// Reads what to_png() writes, from the specification alone. \throws std::runtime_error
view::Image from_png(const std::string& png);

}  // namespace shardwise::test
